//! `crosstalk demo`: a story on a real relay that explains itself.
//!
//! ```text
//! story  the chapters, as a script of steps
//! stage  the steps; the folder, the relay on this machine, and the participants
//! page   the output of a chapter: text for people, facts for programs
//! ```

mod page;
mod stage;
mod story;

use crate::console::{BOLD, Console, DIM, GREEN, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::wrap_to;
use crate::report::{ChapterReport, DemoReport};
use crate::schema::DEMO;
use crate::service::relay::progress::ProgressLine;
use crate::shell;
use crate::view::Look;
use clap::Args;
use stage::Stage;
use std::path::{Path, PathBuf};
use std::time::Duration;
use story::{CHAPTERS, Chapter};

/// How long a chapter is left to be read on a terminal.
const PAUSE: Duration = Duration::from_millis(900);
/// Lines are not made longer than this, however wide the terminal is.
const WIDEST: usize = 96;

/// Show what Crosstalk does: a story of a few seconds
///
/// A question, a poll, an escalation to a person, a hand-off with consent, a revocation and an audit without the relay.
/// Everything is real: new keys, a relay on this machine, and results that are looked up before the demo tells about them.
/// The demo uses a temporary folder, does not read or change your data, and sends nothing to other machines.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk demo\n  crosstalk demo --keep story/ --no-pause\n  crosstalk demo --json\n\nExit codes: 0 every chapter succeeded, 1 one failed: the output names it."
)]
pub(crate) struct Demo {
    /// Keep everything in this folder, a new or an empty one: the envelopes, the data of the relay, the audit bundle
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Don't stop between chapters on a terminal
    #[arg(long, visible_alias = "fast")]
    no_pause: bool,
    /// Print JSON of the form crosstalk.demo/1
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut stage = Stage::open(self.keep.as_deref())?;
        let told = self.tell(console, &mut stage, &CHAPTERS);
        stage.stop();
        let report = DemoReport { chapters: told? };
        let failure = report.chapters.iter().find_map(|c| c.error.clone());
        if self.json {
            console.report(DEMO, &report)?;
        } else if failure.is_none() {
            self.close(console, &stage, report.chapters.len())?;
        }
        match failure {
            None => Ok(Exit::SUCCESS),
            Some(what) => Err(Failure::failed(what)),
        }
    }

    /// Runs the chapters, up to the first one that fails.
    fn tell(
        &self,
        console: &mut Console,
        stage: &mut Stage,
        chapters: &[Chapter],
    ) -> Result<Vec<ChapterReport>, Failure> {
        let mut told = Vec::new();
        let all = chapters.len();
        if !self.json {
            self.open(console)?;
        }
        for (number, chapter) in (1..).zip(chapters) {
            let progress = ProgressLine::start(chapter.title);
            progress.at(number, all as u64);
            let end = (chapter.tell)(stage);
            let page = std::mem::take(&mut stage.page);
            progress.end();
            let error = end.err().map(|fault| {
                format!(
                    "chapter {number} of {all}, \u{201c}{}\u{201d}: {fault}",
                    chapter.title
                )
            });
            if !self.json {
                let columns = Look::of(console).width.min(WIDEST);
                console.show(&heading(number, all, chapter.title, columns))?;
                let shown = page.render(console, columns);
                console.show(&shown)?;
                console.flush()?;
            }
            let is_over = error.is_some();
            told.push(ChapterReport {
                title: chapter.title,
                ok: !is_over,
                facts: page.facts,
                error,
            });
            if is_over {
                break;
            }
            if console.is_terminal() && !self.json && !self.no_pause && number < all as u64 {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(told)
    }

    fn open(&self, console: &mut Console) -> Result<(), Failure> {
        let columns = Look::of(console).width.min(WIDEST);
        let text = "Three participants, a relay and seven chapters. All of it happens now, on this machine, in a folder of \
                    its own; every sentence with a \u{2713} was checked.";
        console.show(&format!(
            "{}\n{}\n",
            styled(BOLD, "Crosstalk: the demo"),
            wrap_to(columns, text, 0, 0)
        ))
    }

    fn close(&self, console: &mut Console, stage: &Stage, chapters: usize) -> Result<(), Failure> {
        let columns = Look::of(console).width.min(WIDEST);
        let mut out = format!(
            "\n{}\n",
            styled(GREEN, &format!("All {chapters} chapters succeeded."))
        );
        let folder = stage.folder();
        let kept = match &self.keep {
            Some(_) => format!(
                "Everything is in {}: each envelope in envelopes/, the data of the relay in relay/, the audit in bundle/.",
                shown_path(&folder.to_string_lossy())
            ),
            None => {
                "The folder is removed; `crosstalk demo --keep story` keeps everything.".to_owned()
            }
        };
        out.push_str(&format!("{}\n\n", wrap_to(columns, &kept, 0, 0)));
        out.push_str(&format!("{}\n", styled(BOLD, "To try next")));
        for (what, command) in next(self.keep.is_some().then_some(folder)) {
            out.push_str(&format!("  {}\n      {command}\n", styled(DIM, what)));
        }
        console.show(&out)
    }
}

fn heading(number: u64, all: usize, title: &str, columns: usize) -> String {
    let count = format!("{number} of {all}");
    let used = title.chars().count() + count.chars().count() + 5;
    let line = "\u{2500}".repeat(columns.saturating_sub(used));
    format!(
        "\n{} {} {}\n",
        styled(BOLD, &format!("{number}  {title}")),
        styled(DIM, &line),
        styled(DIM, &count)
    )
}

/// Commands that go on from here.
fn next(kept: Option<&Path>) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if let Some(folder) = kept {
        let file = |name: &str| shell::word(&folder.join(name).to_string_lossy());
        all.push((
            "the audit again, as an outsider does it",
            format!(
                "crosstalk audit verify {} --key {} --checkpoint {}",
                file("bundle"),
                file("relay.key"),
                file("held.note")
            ),
        ));
        all.push((
            "the audit of the changed copy",
            format!(
                "crosstalk audit verify {} --key {}",
                file("tampered"),
                file("relay.key")
            ),
        ));
        all.push((
            "the poll, counted from text files",
            format!(
                "crosstalk poll collate {}",
                file("envelopes/poll.crosstalk")
            ),
        ));
    }
    let others = [
        ("a relay of your own", "crosstalk serve"),
        (
            "a message for a chat, on the clipboard",
            "crosstalk send claude \"What would you ask first?\"",
        ),
        (
            "a poll over chats and people",
            "crosstalk poll new \"When?\" --option Friday --option Monday --target claude --target gemini",
        ),
        ("everything else", "crosstalk --help"),
    ];
    all.extend(others.map(|(what, command)| (what, command.to_owned())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Color;
    use story::chapter;

    fn goes_well(stage: &mut Stage) -> Result<(), Failure> {
        stage.fact("seen", 1);
        Ok(())
    }

    fn goes_wrong(stage: &mut Stage) -> Result<(), Failure> {
        stage.verify("[[A\u{2192}B v1]]\n")
    }

    #[test]
    fn a_chapter_that_goes_wrong_is_named_and_ends_the_story() {
        let demo = Demo {
            keep: None,
            no_pause: true,
            json: true,
        };
        let chapters = [
            chapter("One", goes_well),
            chapter("Two", goes_wrong),
            chapter("Three", goes_well),
        ];
        let mut stage = Stage::open(None).unwrap();
        let folder = stage.folder().to_owned();
        let mut console = Console::new(Color::Never, None);
        let chapters = demo.tell(&mut console, &mut stage, &chapters).unwrap();
        stage.stop();
        let report = serde_json::to_value(DemoReport { chapters }).unwrap();
        let [one, two] = report["chapters"].as_array().unwrap().as_slice() else {
            panic!("{report}");
        };
        assert_eq!(one["facts"]["seen"], 1);
        assert!(one["ok"] == true && one["error"].is_null());
        assert_eq!(two["ok"], false);
        let said = two["error"].as_str().unwrap();
        let wanted = "chapter 2 of 3, \u{201c}Two\u{201d}: a message does not verify: ";
        assert!(said.starts_with(wanted), "{said}");
        drop(stage);
        assert!(!folder.exists(), "nothing is left behind");
    }
}
