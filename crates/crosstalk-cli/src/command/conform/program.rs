//! `crosstalk conform --program CMD`: runs the case files against a program.

use super::{Conform, ReportFormat};
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::schema::CONFORM_PROGRAM;
use crate::{json, shell, view};
use crosstalk_conform::program::{
    AreaCount, DEFAULT_TIMEOUT, ProgramOutcome, ProgramReport, ProgramResult, TestedProgram,
};
use crosstalk_conform::{CaseSet, CaseSource, SpecLevel};
use crosstalk_envelope::unicode::escape;
use serde_json::json;
use std::fmt::Write as _;
use std::time::Duration;

/// How long an answer may take by default.
pub(super) const TIMEOUT_SECONDS: u64 = DEFAULT_TIMEOUT.as_secs();

/// How many failed cases the text shows; the JSON has all of them.
const TOLD: usize = 10;
/// How many lines of expected or received text are shown.
const MAX_LINES: usize = 24;

impl Conform {
    /// Runs the case files against a program, or lists them.
    pub(super) fn run_files(self, console: &mut Console) -> Result<Exit, Failure> {
        let (set, level) = self.chosen_files()?;
        let Some(command) = self.program.as_deref().filter(|_| !self.list) else {
            return self.list_files(&set, console);
        };
        if command.trim().is_empty() {
            return Err(Failure::usage("--program needs a command line"));
        }
        let program = TestedProgram::new(command, Duration::from_secs(self.timeout))
            .map_err(|e| Failure::io("the runtime", e))?;
        let report = program.run(&set, level, |_| {});
        match self.format {
            ReportFormat::Json => console.report(CONFORM_PROGRAM, &report.summary())?,
            ReportFormat::Junit => console.data(report.to_junit())?,
            ReportFormat::Text => {
                if let [source] = set.sources() {
                    console.show(&exchange(source, &program))?;
                }
                let is_whole = self.only.is_empty() && self.case.is_empty();
                console.show(&text(&report, &self.again(command), is_whole))?;
            }
        }
        Ok(Exit::of_check(report.is_good()))
    }

    /// The case files that are chosen, and the level that was asked for.
    fn chosen_files(&self) -> Result<(CaseSet, SpecLevel), Failure> {
        let mut set = match &self.cases {
            Some(folder) => CaseSet::of_folder(folder),
            None => CaseSet::embedded(),
        }
        .map_err(|fault| Failure::failed(view::line(&fault)))?;
        let name = |id: &str| id.trim_end_matches(".case").to_owned();
        let ids: Vec<String> = self.case.iter().map(|id| name(id)).collect();
        let unknown = ids
            .iter()
            .find(|id| !set.sources().iter().any(|source| source.id == **id));
        if let Some(id) = unknown {
            return Err(
                Failure::usage(format!("there is no case file `{}`", view::line(id)))
                    .help("`crosstalk conform --list --level L3` lists them"),
            );
        }
        let unknown = self
            .only
            .iter()
            .find(|word| !set.sources().iter().any(|source| is_meant(source, word)));
        if let Some(word) = unknown {
            return Err(Failure::usage(format!(
                "there is no rule, area or case `{}` in the case files",
                view::line(word)
            ))
            .help("`crosstalk conform --list --level L3` lists them"));
        }
        let level = self.level.unwrap_or(match ids.is_empty() {
            true => SpecLevel::L2,
            false => SpecLevel::L3,
        });
        set.retain(|source| {
            let is_named = ids.is_empty() || ids.contains(&source.id);
            let is_chosen =
                self.only.is_empty() || self.only.iter().any(|word| is_meant(source, word));
            is_named && is_chosen && source.level <= level
        });
        match set.sources().is_empty() {
            true => Err(Failure::usage(format!(
                "none of the chosen case files has the level {level} or a lower one"
            ))
            .help("choose a higher --level")),
            false => Ok((set, level)),
        }
    }

    fn list_files(&self, set: &CaseSet, console: &mut Console) -> Result<Exit, Failure> {
        if self.format == ReportFormat::Json {
            let entry = |c: &CaseSource| json!({"id": c.id, "rule": c.rule, "title": c.about, "level": c.level.as_str()});
            let list: Vec<_> = set.sources().iter().map(entry).collect();
            console.data(json::pretty(&list)?)?;
            return Ok(Exit::SUCCESS);
        }
        for case in set.sources() {
            let told = format!("{}: {}", view::line(&case.id), view::line(&case.about));
            console.show(&format!(
                "{} {}  {}\n",
                case.level,
                styled(BOLD, &view::line(&case.rule)),
                wrap(&told, 12, 12)
            ))?;
        }
        Ok(Exit::SUCCESS)
    }

    /// The command that runs one case again, up to its id.
    fn again(&self, command: &str) -> String {
        let mut again = format!("crosstalk conform --program {}", shell::word(command));
        if let Some(folder) = &self.cases {
            let folder = folder.display().to_string();
            let _ = write!(again, " --cases {}", shell::word(&folder));
        }
        again + " --case"
    }
}

/// Whether a word chooses a case: the beginning of its rule, its area, or its id.
fn is_meant(source: &CaseSource, word: &str) -> bool {
    let is_rule = source.rule.starts_with(&word.to_ascii_uppercase());
    let is_area = source
        .id
        .split_once('/')
        .is_some_and(|(area, _)| area == word);
    !word.is_empty() && (is_rule || is_area || source.id == word)
}

/// The case file, and the questions and answers.
fn exchange(source: &CaseSource, program: &TestedProgram) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} ({}.case)",
        styled(BOLD, "the case file"),
        view::line(&source.id)
    );
    for line in lines(&source.text()) {
        let _ = writeln!(out, "  {line}");
    }
    for exchange in program.exchanges() {
        let _ = writeln!(
            out,
            "{}\n  {}",
            styled(BOLD, "question"),
            view::line(&exchange.question)
        );
        let answer = exchange.answer.as_deref().unwrap_or("none");
        let _ = writeln!(out, "{}\n  {}", styled(BOLD, "answer"), view::line(answer));
    }
    out.push('\n');
    out
}

/// The first lines of an untrusted text, escaped.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(view::line).collect();
    let count = lines.len();
    if count > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.push(format!("… ({} more lines)", count - MAX_LINES));
    }
    lines
}

fn text(report: &ProgramReport, again: &str, is_whole: bool) -> String {
    let mut out = table(report);
    let failed: Vec<&ProgramResult> = report
        .results
        .iter()
        .filter(|r| matches!(r.outcome, ProgramOutcome::Failed { .. }))
        .collect();
    for result in failed.iter().take(TOLD) {
        out.push('\n');
        out.push_str(&failure(result));
    }
    if failed.len() > TOLD {
        let _ = writeln!(
            out,
            "\n{} more cases failed; --json lists all of them.",
            failed.len() - TOLD
        );
    }
    let unsupported = report
        .results
        .iter()
        .filter(|r| r.outcome == ProgramOutcome::Unsupported);
    let unsupported: Vec<&str> = unsupported.map(|r| r.id.as_str()).collect();
    if let Some(first) = unsupported.first() {
        let told = format!(
            "The program does not support {} that {} needs, for example {}.",
            match unsupported.len() {
                1 => "one case".to_owned(),
                count => format!("{count} cases"),
            },
            report.level,
            view::line(first)
        );
        let _ = writeln!(out, "\n{}", wrap(&told, 0, 0));
    }
    if !report.stderr.is_empty() {
        let _ = writeln!(
            out,
            "\n{}",
            styled(DIM, "The program wrote to stderr, at the end:")
        );
        for line in lines(&report.stderr) {
            let _ = writeln!(out, "  {line}");
        }
    }
    if let Some(result) = failed.first().copied().or_else(|| {
        let mut results = report.results.iter();
        results.find(|r| r.outcome == ProgramOutcome::Unsupported)
    }) && report.results.len() > 1
    {
        let _ = writeln!(
            out,
            "\nTo run one case and see what is asked and answered:\n  {again} {}",
            shell::word(&result.id)
        );
    }
    if let Some(stopped) = &report.stopped {
        let told = format!("{stopped} The other cases were not run.");
        let _ = writeln!(out, "\n{}", styled(YELLOW, &told));
    }
    out.push('\n');
    out.push_str(&verdict(report, is_whole));
    out
}

/// How the cases of each area ended; columns without a number are left out.
fn table(report: &ProgramReport) -> String {
    type Column = (&'static str, fn(&AreaCount) -> usize);
    let columns: [Column; 5] = [
        ("passed", |a| a.passed),
        ("failed", |a| a.failed),
        ("unsupported", |a| a.unsupported),
        ("left out", |a| a.left_out),
        ("not run", |a| a.not_run),
    ];
    let (areas, total) = (report.areas(), report.total());
    let is_shown = |(number, (_, count)): &(usize, &Column)| *number < 3 || count(&total) > 0;
    let columns = columns.iter().enumerate().filter(is_shown).map(|(_, c)| c);
    let columns: Vec<&Column> = columns.collect();
    let name = |area: &str| view::line(area);
    let widest = areas.iter().map(|a| name(&a.area).chars().count()).max();
    let width = widest.unwrap_or(0).max("total".len());
    let mut out = format!("{:<width$}", "area");
    for (title, _) in &columns {
        let _ = write!(out, "  {title:>6}");
    }
    out.push('\n');
    let mut row = |title: &str, counts: &AreaCount| {
        let _ = write!(out, "{title:<width$}");
        for (title, count) in &columns {
            let _ = write!(out, "  {:>1$}", count(counts), title.len().max(6));
        }
        out.push('\n');
    };
    for area in &areas {
        row(&name(&area.area), area);
    }
    if areas.len() > 1 {
        row("total", &total);
    }
    out
}

fn failure(result: &ProgramResult) -> String {
    let title = format!("{}: {}", view::line(&result.id), view::line(&result.about));
    let mut out = format!(
        "{} {} {} {}\n",
        styled(RED, "FAIL"),
        result.level,
        view::line(&result.rule),
        wrap(&title, 16, 16)
    );
    let mut add = |name: &str, text: &str| {
        let mut name = format!("{name:<9}");
        for line in lines(text) {
            let told = styled(DIM, &name);
            let _ = writeln!(out, "     {told} {}", wrap(&line, 15, 15));
            name = " ".repeat(9);
        }
    };
    if let ProgramOutcome::Failed { expected, received } = &result.outcome {
        match expected {
            Some(expected) => {
                add("expected", expected);
                add("received", received);
            }
            None => add("because", received),
        }
    }
    out
}

fn verdict(report: &ProgramReport, is_whole: bool) -> String {
    let (total, level) = (report.total(), report.level);
    let told = match (report.is_good(), is_whole) {
        (true, true) => styled(GREEN, &format!("The program conforms to {level}")),
        (true, false) => styled(GREEN, "The program passes the chosen cases"),
        (false, true) => styled(RED, &format!("The program does not conform to {level}")),
        (false, false) => styled(RED, "The program does not pass the chosen cases"),
    };
    let mut counts = vec![
        format!("{} passed", total.passed),
        format!("{} failed", total.failed),
        format!("{} unsupported", total.unsupported),
    ];
    if total.left_out > 0 {
        counts.push(format!("{} left out", total.left_out));
    }
    if total.not_run > 0 {
        counts.push(format!("{} not run", total.not_run));
    }
    let by_level = SpecLevel::ALL.into_iter().filter_map(|level| {
        let of_level = || report.results.iter().filter(|r| r.level == level);
        let passed = of_level().filter(|r| r.outcome == ProgramOutcome::Passed);
        let needed = of_level().filter(|r| r.outcome != ProgramOutcome::LeftOut);
        let (passed, needed) = (passed.count(), needed.count());
        (needed > 0).then(|| format!("{level} {passed} of {needed}"))
    });
    let by_level: Vec<String> = by_level.collect();
    format!(
        "{told}\n{}; {}; {}\n",
        counts.join(", "),
        by_level.join(", "),
        escape(&report.program).replace('\n', " ")
    )
}
