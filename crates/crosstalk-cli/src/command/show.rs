//! `crosstalk show`: a message, or a thread as a tree.

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{MessageReport, ShowReport, ThreadReport};
use crate::schema::SHOW;
use crate::service::deliver::with_primer;
use crate::service::lookup::{self, Reference, is_sound, show_before};
use crate::service::relay::outbox::Outbox;
use crate::service::relay::outbox::Reach;
use crate::service::workspace::Desk;
use crate::view::{self, Compared, Look};
use clap::Args;
use crosstalk_envelope::fence;
use crosstalk_protocol::store::{Record, Store as _, Thread};
use crosstalk_store::SqliteStore;

/// Show a message, or a thread as a tree
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk show last\n  crosstalk show 01K74V6R0074\n  crosstalk show 01K74V6R0074 --full\n  crosstalk show last --compare             # what each of several answered\n  crosstalk show 01K74V8QF857 --copy        # to carry it to another chat\n  crosstalk show 01K74V8QF857 --envelope > message.crosstalk"
)]
pub(crate) struct Show {
    /// The id of a message or a thread, the beginning of one, or `last`, which --compare takes without an id
    #[arg(value_name = "ID|THREAD", required_unless_present = "compare")]
    what: Option<String>,
    /// Everything: all lines of a thread's messages, all headers of a message
    #[arg(long)]
    full: bool,
    /// Show texts that are folded because of a content warning
    #[arg(long)]
    unfold: bool,
    /// Print the envelope itself
    #[arg(long, conflicts_with_all = ["json", "received"])]
    envelope: bool,
    /// Print what was pasted, before anything was repaired
    #[arg(long, conflicts_with = "json")]
    received: bool,
    /// Put the envelope on the clipboard, in a code fence
    #[arg(long)]
    copy: bool,
    /// With the text in front that teaches its receiver the format
    #[arg(long, requires = "copy")]
    primer: bool,
    /// Put the answers to a question that was put to several side by side; where there is no room, in turn
    #[arg(long, conflicts_with_all = ["json", "envelope", "received", "copy", "full"])]
    compare: bool,
    /// Print JSON of the form crosstalk.show/1
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let desk = Desk::open(console)?;
        let store = desk.kept(console)?;
        if self.compare {
            return self.compare(console, &store);
        }
        let (thread, records, whole) = match lookup::reference(&store, self.what())? {
            Reference::Thread(thread) => {
                let records = lookup::everything(&store, &thread.id)?;
                (Some(*thread), records, true)
            }
            Reference::Message(record) => (store.thread(&record.thread)?, vec![*record], false),
        };
        if self.json {
            let messages = MessageReport::all(&records);
            let thread = thread.as_ref().map(ThreadReport::new);
            console.report(SHOW, &ShowReport { thread, messages })?;
        } else if self.envelope || self.received {
            self.print(console, &records)?;
        } else {
            self.render(console, &store, thread.filter(|_| whole), &records)?;
            if !self.copy {
                tell_due(console, &desk, &store, &records)?;
            }
        }
        if self.copy {
            records.iter().try_for_each(lookup::require_text)?;
            if !records.iter().all(|r| is_sound(r.verdict)) {
                console.warning("it must not be acted on")?;
            }
            let texts: Vec<String> = records
                .iter()
                .map(|r| match self.primer {
                    true => with_primer(&r.text, &r.receiver),
                    false => fence(&r.text),
                })
                .collect();
            let mut clipboard = desk.clipboard()?;
            let copied = clipboard.write(&texts.join("\n"))?;
            let outbox = Outbox::of(&desk);
            records.iter().for_each(|r| outbox.remove_uncopied(&r.id));
            console.talk(&format!("{}\n", copied.sentence()))?;
        }
        Ok(Exit::SUCCESS)
    }

    fn what(&self) -> &str {
        self.what.as_deref().unwrap_or(lookup::LAST)
    }

    fn compare(&self, console: &mut Console, store: &SqliteStore) -> Result<Exit, Failure> {
        let (thread, wanted) = match lookup::reference(store, self.what())? {
            Reference::Thread(thread) => (thread.id, None),
            Reference::Message(record) => (record.thread, Some(record.id)),
        };
        let records = lookup::everything(store, &thread)?;
        // The latest message of a thread may be beside the question.
        let wanted = wanted.filter(|_| !self.what().eq_ignore_ascii_case(lookup::LAST));
        let compared = Compared::find(&records, wanted.as_deref()).ok_or_else(|| {
            Failure::failed("there is nothing to compare")
                .help("`crosstalk send chatgpt,claude \"…\"` puts a question to several")
        })?;
        let look = Look {
            unfold: self.unfold,
            ..Look::of(console)
        };
        console.show(&view::compare(&compared, view::shortener(store), &look))?;
        Ok(Exit::SUCCESS)
    }

    fn print(&self, console: &mut Console, records: &[Record]) -> Result<(), Failure> {
        records.iter().try_for_each(lookup::require_text)?;
        for (number, record) in records.iter().enumerate() {
            if number > 0 {
                console.data("\n")?;
            }
            let text = match &record.received {
                Some(received) if self.received => received,
                _ => &record.text,
            };
            console.text(text)?;
            if !text.ends_with('\n') {
                console.data("\n")?;
            }
        }
        Ok(())
    }

    fn render(
        &self,
        console: &mut Console,
        store: &SqliteStore,
        thread: Option<Thread>,
        records: &[Record],
    ) -> Result<(), Failure> {
        let look = Look {
            full: self.full,
            unfold: self.unfold,
            ..Look::of(console)
        };
        let short = view::shortener(store);
        if let Some(thread) = thread {
            return console.show(&view::tree(&thread, records, short, &look));
        }
        for record in records {
            console.show(&view::message(record, &short, &look))?;
            show_before(console, store, record, &look)?;
        }
        Ok(())
    }
}

/// Says what was meant for a relay and is not there, and what was not copied.
fn tell_due(
    console: &mut Console,
    desk: &Desk,
    store: &SqliteStore,
    records: &[Record],
) -> Result<(), Failure> {
    for record in records {
        let Some(reach) = Reach::here(desk, record) else {
            continue;
        };
        let id = view::short(store, &record.id)?;
        for sentence in reach.sentences(&desk.config, &id) {
            console.note(&format!("{id} was {sentence}"))?;
        }
    }
    Ok(())
}
