//! `crosstalk migrate`: rewrites v1.0 envelopes as v1.1 (ENV-093).

use crate::caret::Carets;
use crate::console::{BOLD, Console, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Files, Input};
use crate::render;
use clap::Args;
use crosstalk_binding::migrated_text;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{BodyKind, Defaults, Document, LineIndex, Migration, Migrator, Reading};

/// Turn v1.0 envelopes into v1.1
///
/// Adds thread and message ids, writes `response:` as a RESPOND and legacy intents as core intents. Messages of one session join
/// one thread, over all files of one run. Copies signed envelopes and those that are v1.1 already unchanged, and reports on stderr
/// what it did.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk migrate old.aict > new.crosstalk\n  crosstalk migrate --user kalle --context archive *.aict > all.crosstalk"
)]
pub(crate) struct Migrate {
    #[command(flatten)]
    files: Files,
    /// The user of a response that names none
    #[arg(long, value_name = "USER", default_value = "unknown")]
    user: String,
    /// The context of a response that names none
    #[arg(long, value_name = "CONTEXT", default_value = "unknown")]
    context: String,
}

impl Migrate {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let mut migrator = Migrator::new(Defaults {
            user: self.user,
            context: self.context,
        });
        let mut first = true;
        self.files.each(console, |console, input| {
            one(console, input, &mut migrator, &mut first)
        })
    }
}

fn one(
    console: &mut Console,
    input: &Input,
    migrator: &mut Migrator,
    first: &mut bool,
) -> Result<Exit, Failure> {
    let (text, scan) = input.scan(Reading::Paste);
    let name = input.shown_name();
    let lines = LineIndex::new(&text);
    let mut exit = Exit::of(&scan.rejected);
    for document in &scan.documents {
        let line = lines.position(document.span().start).line;
        let sides = format!("{} → {}", document.sender(), document.receiver());
        let sides = styled(BOLD, &escape(&sides));
        let done = match migrator.migrate(document) {
            Ok(migration) => {
                console.data(if *first { "" } else { "\n" })?;
                console.text(&migrated_text(document, &migration))?;
                *first = false;
                changes_made(document, &migration)
            }
            Err(fault) => {
                exit = exit.worst(Exit::of(&fault.diagnostics));
                format!("left out: {fault}")
            }
        };
        console.talk(&format!("{name}:{line}: {sides}: {}\n", escape(&done)))?;
    }
    let carets = Carets::new(&name, &text);
    let all = scan.documents.iter().flat_map(|d| d.diagnostics().iter());
    for finding in all
        .chain(&scan.rejected)
        .filter(|d| render::is_worth_telling(d))
    {
        console.talk(&carets.draw(finding))?;
    }
    Ok(exit)
}

fn changes_made(document: &Document<'_>, migration: &Migration) -> String {
    let after = match migration {
        Migration::Signed(_) => {
            return "left as it is: it is signed, and the signature would no longer fit".into();
        }
        Migration::Current(_) => return "left as it is: it is v1.1 already".into(),
        Migration::Migrated(text) => Document::parse(text, Reading::Strict),
    };
    let (old, new) = (document.envelope(), after.envelope());
    let mut done = Vec::new();
    let added = |name: &str, old: Option<&str>, new: Option<&str>| match (old, new) {
        (None, Some(value)) => Some(format!("{name} {value} added")),
        _ => None,
    };
    done.extend(added("user", old.user, new.user));
    done.extend(added("thread", old.thread, new.thread));
    done.extend(added("message", old.message, new.message));
    done.extend(added("context", old.context, new.context));
    if old.body_kind == BodyKind::Response {
        done.push("response: written as body:".into());
    }
    match (old.intent.map(|i| i.written), new.intent.map(|i| i.written)) {
        (None, Some(new)) => done.push(format!("intent {new} added")),
        (Some(old), Some(new)) if old != new => {
            done.push(format!("intent {old} written as {new}"));
        }
        _ => {}
    }
    if new.message.is_none() {
        done.push("no message id, since it names no parent".into());
    }
    done.join(", ")
}
