//! `crosstalk conform`: checks a relay against `spec/http.md`, and any program against the case files.

mod program;

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::json;
use crate::paragraph::wrap;
use crate::schema::CONFORM;
use crate::service::relay::start::runtime;
use clap::{Args, ValueEnum};
use crosstalk_conform::SpecLevel;
use crosstalk_conform::relay::{
    RelayCase, RelayOutcome, RelayReport, RelayResult, Suite, base_url, cases,
};
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::url::Url;
use serde_json::json;
use std::path::PathBuf;

/// Check a relay, or any program, against the specification
///
/// With a URL, runs the relay suite (level L3) against any server that claims to be a relay, and reports by rule. It uses addresses
/// of its own, below claude://conform/ and human://conform/, and simple names that begin with CONFORM-, so that it can run beside
/// others; its messages stay there. If the relay requires credentials, pass a token for these addresses, best that of an
/// administrator. The exit code is 0 only if a case was run and none failed.
///
/// With --program, runs the case files of a level against a program. It reads one JSON object per line from stdin and
/// answers each with one JSON object per line: conformance/README.md defines the questions and the results. To the question
/// {"id":1,"op":"id","input":"x"} the answer is {"id":1,"result":{"form":"opaque"}}, or {"id":1,"unsupported":true}. The exit
/// code is 0 only if every case passes; a program may leave out redaction.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk conform http://127.0.0.1:8799\n  crosstalk conform https://relay.example --token-file admin.token --format junit > conform.xml\n  crosstalk conform http://127.0.0.1:8799 --only HTP-012 --only inbox-text\n  crosstalk conform --list\n  crosstalk conform --program 'python3 my_crosstalk.py' --level L0\n  crosstalk conform --program ./my-crosstalk --case env/arrow-ascii\n  crosstalk conform --list --level L0"
)]
pub(crate) struct Conform {
    /// The base URL of the relay
    #[arg(value_name = "URL", required_unless_present_any = ["list", "program", "level", "case", "cases"], value_parser = base_url)]
    url: Option<Url>,
    /// The command line of a program to check instead of a relay; the shell reads it
    #[arg(long, value_name = "CMD", conflicts_with_all = ["url", "token_file", "flood"])]
    program: Option<String>,
    /// Run the case files up to this level: L0, L1, L2 or L3 [default: L2, with --case L3]
    #[arg(long, value_name = "LEVEL", conflicts_with = "url")]
    level: Option<SpecLevel>,
    /// Run only this case file, and show the questions and answers
    #[arg(long, value_name = "ID", conflicts_with = "url")]
    case: Vec<String>,
    /// Read the case files of this folder instead of those in this program
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    cases: Option<PathBuf>,
    /// How many seconds the program may take for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = program::TIMEOUT_SECONDS, conflicts_with = "url", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// A file with the token to use, on its first line
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_name = "FORM", value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Print the result as JSON, as --format json does
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Run only these rules, beginnings of rules, or cases
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    only: Vec<String>,
    /// List the cases and run none; with --level, --case or --cases, the case files
    #[arg(long)]
    list: bool,
    /// Run the heavy cases too: thousands of requests, and slow ones
    #[arg(long)]
    flood: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A line for each case, and what was wrong
    Text,
    /// crosstalk.conform/1, or crosstalk.conform-program/1 with --program
    Json,
    /// JUnit XML, for build servers
    Junit,
}

impl Conform {
    pub(super) fn run(mut self, console: &mut Console) -> Result<Exit, Failure> {
        if self.json {
            self.format = ReportFormat::Json;
        }
        let is_about_files = self.level.is_some() || self.cases.is_some() || !self.case.is_empty();
        if self.program.is_some() || (self.list && is_about_files) {
            return self.run_files(console);
        }
        if is_about_files {
            return Err(
                Failure::usage("--level, --case and --cases choose case files")
                    .help("add --program CMD to run them against a program, or --list"),
            );
        }
        let chosen = self
            .only
            .iter()
            .find(|w| !cases().iter().any(|c| c.is_meant_by(w)));
        if let Some(word) = chosen {
            return Err(Failure::usage(format!(
                "there is no rule and no case `{word}` in the relay suite"
            ))
            .help("`crosstalk conform --list` lists them"));
        }
        let Some(base) = self.url.clone().filter(|_| !self.list) else {
            return self.list(console);
        };
        let suite = Suite {
            base,
            token: self.token()?,
            only: self.only,
            flood: self.flood,
        };
        let runtime = runtime(Some(2))?;
        runtime
            .block_on(suite.reach())
            .map_err(|fault| Failure::refused(ErrorCode::Route, fault))?;
        let mut written = Ok(());
        let report = runtime.block_on(suite.run(|result| {
            if self.format == ReportFormat::Text && written.is_ok() {
                written = console.show(&line(result)).and_then(|()| console.flush());
            }
        }));
        written?;
        match self.format {
            ReportFormat::Text => console.show(&summary(&report))?,
            ReportFormat::Json => console.report(CONFORM, &report.summary())?,
            ReportFormat::Junit => console.data(report.to_junit())?,
        }
        Ok(Exit::of_check(report.is_good()))
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.token_file else {
            return Ok(None);
        };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io(name.clone(), e))?;
        let token = text.lines().next().unwrap_or_default().trim();
        let is_token = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
        match is_token {
            true => Ok(Some(token.to_owned())),
            false => Err(Failure::failed(format!(
                "{}: there is no token on its first line",
                shown_path(&name)
            ))),
        }
    }

    fn list(&self, console: &mut Console) -> Result<Exit, Failure> {
        let is_chosen =
            |c: &RelayCase| self.only.is_empty() || self.only.iter().any(|w| c.is_meant_by(w));
        let chosen: Vec<RelayCase> = cases().into_iter().filter(is_chosen).collect();
        if self.format == ReportFormat::Json {
            let entry = |c: &RelayCase| json!({"id": c.id, "rule": c.rule.id, "title": c.title, "heavy": c.is_heavy});
            let list: Vec<_> = chosen.iter().map(entry).collect();
            console.data(json::pretty(&list)?)?;
            return Ok(Exit::SUCCESS);
        }
        for case in chosen {
            let heavy = if case.is_heavy { " (with --flood)" } else { "" };
            let text = format!("{}: {}{heavy}", case.id, case.title);
            console.show(&format!(
                "{}  {}\n",
                styled(BOLD, case.rule.id),
                wrap(&text, 9, 9)
            ))?;
        }
        Ok(Exit::SUCCESS)
    }
}

fn line(result: &RelayResult) -> String {
    let case = &result.case;
    let (style, word) = match result.outcome {
        RelayOutcome::Passed => (GREEN, "ok  "),
        RelayOutcome::Failed { .. } => (RED, "FAIL"),
        RelayOutcome::Skipped(_) => (YELLOW, "skip"),
    };
    let mut out = format!(
        "{} {} {}\n",
        styled(style, word),
        case.rule.id,
        wrap(&format!("{}: {}", case.id, case.title), 13, 13)
    );
    let mut add = |name: &str, text: &str| {
        let text = escape(text).replace('\n', " ⏎ ");
        let text = wrap(&text, 15, 15);
        out.push_str(&format!(
            "     {} {text}\n",
            styled(DIM, &format!("{name:<9}"))
        ));
    };
    match &result.outcome {
        RelayOutcome::Passed => {}
        RelayOutcome::Skipped(reason) => add("because", reason),
        RelayOutcome::Failed { expected, got } => {
            add("rule", case.rule.title);
            add("expected", expected);
            add("got", got);
        }
    }
    out
}

fn summary(report: &RelayReport) -> String {
    let count = |word| report.count(word);
    let verdict = match report.is_good() {
        true => styled(GREEN, "The relay keeps the rules that were tried"),
        false if count("failed") == 0 => styled(YELLOW, "Nothing was tried"),
        false => {
            let rules = report.broken_rules().join(" ");
            styled(RED, &format!("The relay breaks {}", wrap(&rules, 17, 2)))
        }
    };
    format!(
        "\n{verdict}\n{} passed, {} failed, {} skipped; {}\n",
        count("passed"),
        count("failed"),
        count("skipped"),
        escape(&report.base)
    )
}
