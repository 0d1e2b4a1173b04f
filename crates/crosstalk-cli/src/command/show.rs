//! The commands that show conversations: `show`, `threads`, `waiting` and `search`.

use crate::clock;
use crate::console::{Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::report::{
    AskedReport, MessageReport, SearchReport, ShowReport, ThreadReport, ThreadsReport,
    WaitingReport,
};
use crate::schema::{SEARCH, SHOW, THREADS, WAITING};
use crate::service::deliver::with_primer;
use crate::service::dismiss::{Awaited, dismiss};
use crate::service::lookup::{self, Reference, is_sound, show_before};
use crate::service::relay::outbox::{Outbox, Reach};
use crate::service::workspace::{NOTHING, Workspace, listed};
use crate::view::{self, Compared, Look};
use clap::Args;
use crosstalk_envelope::fence;
use crosstalk_protocol::store::{self, AskedMessage, Page, Record, Thread, ThreadFilter};
use crosstalk_store::SqliteStore;
use std::collections::HashMap;

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
        let workspace = Workspace::open(console)?;
        let store = workspace.kept(console)?;
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
                tell_due(console, &workspace, &store, &records)?;
            }
        }
        if self.copy {
            records.iter().try_for_each(lookup::require_text)?;
            if !records.iter().all(|r| is_sound(r.verdict)) {
                console.warning("nobody may act on it")?;
            }
            let texts: Vec<String> = records
                .iter()
                .map(|r| match self.primer {
                    true => with_primer(&r.text, &r.receiver),
                    false => fence(&r.text),
                })
                .collect();
            let mut clipboard = workspace.clipboard()?;
            let copied = clipboard.write(&texts.join("\n"))?;
            let outbox = Outbox::of(&workspace);
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
            Failure::failed("nothing to compare")
                .help("`crosstalk send chatgpt,claude \"…\"` asks several")
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
    workspace: &Workspace,
    store: &SqliteStore,
    records: &[Record],
) -> Result<(), Failure> {
    for record in records {
        let Some(reach) = Reach::here(workspace, record) else {
            continue;
        };
        let id = view::short(store, &record.id)?;
        for sentence in reach.sentences(&workspace.config, &id) {
            console.note(&format!("{id} was {sentence}"))?;
        }
    }
    Ok(())
}

/// List the conversations, the latest first
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk threads\n  crosstalk threads --open --with CHATGPT\n  crosstalk threads --json --limit 1000 | jq -r '.threads[].id'"
)]
pub(crate) struct ThreadsCommand {
    /// Only those that are not closed
    #[arg(long)]
    open: bool,
    /// Only those in which something waits for you
    #[arg(long)]
    waiting: bool,
    /// Only those with this party
    #[arg(long, value_name = "WHO")]
    with: Option<String>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.threads/1
    #[arg(long)]
    json: bool,
}

impl ThreadsCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = Workspace::open(console)?;
        let filter = ThreadFilter {
            open: self.open,
            waiting: self.waiting,
            with: self.with.clone(),
            after: None,
        };
        let store = workspace.messages(console)?;
        let (items, more) = listed(store.as_ref(), |s| s.threads(&filter, self.paging.page()))?;
        if self.json {
            let threads = items.iter().map(ThreadReport::new).collect();
            return console.report(THREADS, &ThreadsReport { threads, more });
        }
        let Some(store) = store else {
            return console.talk(&format!("{NOTHING}\n"));
        };
        if items.is_empty() {
            let is_filtered = self.open || self.with.is_some() || self.paging.page().skip > 0;
            let asked = match self.waiting {
                true => store.asked(Page::first(1))?.items.len(),
                false => 0,
            };
            console.talk(&match (self.waiting, asked) {
                (true, 0) => "nothing waits for you\n".to_owned(),
                (true, _) => "nothing waits for you; `crosstalk waiting` lists the answers that you wait for\n"
                    .to_owned(),
                (false, _) if is_filtered => "there is no such conversation\n".to_owned(),
                (false, _) => format!("{NOTHING}\n"),
            })?;
        }
        let short = view::shortener(&store);
        console.show(&view::threads(&items, short, &Look::of(console)))?;
        self.paging.tell_more(console, more)?;
        Ok(())
    }
}

/// Show the answers that you wait for, from whom, and since when
///
/// Lists the questions that you sent and that are not answered. For a poll, names the voters that have not answered yet. Says which
/// messages were not copied or handed over, and asks the relays of the settings, for two seconds in all, how far the others are.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk waiting\n  crosstalk waiting --local                  # ask no relay\n  crosstalk waiting --done 01K74V8Q          # you want no answer any more\n  crosstalk waiting --json | jq -r '.messages[].waits_for[]'\n\nExit codes: 0 shown, also if you wait for nothing; 1 a message of --done did not wait for an answer."
)]
pub(crate) struct WaitingCommand {
    /// Wait for no answer to this message any more; may be given again
    #[arg(long, value_name = "ID", conflicts_with = "skip")]
    done: Vec<String>,
    /// Ask no relay how far the messages are
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.waiting/1
    #[arg(long)]
    json: bool,
}

impl WaitingCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        if !self.done.is_empty() {
            return dismiss(console, &workspace, &self.done, Awaited::OfOthers);
        }
        let store = workspace.messages(console)?;
        let (items, more) = listed(store.as_ref(), |s| s.asked(self.paging.page()))?;
        let items: Vec<AskedMessage> = items.into_iter().map(veiled).collect();
        let records: Vec<&Record> = items.iter().map(|asked| &asked.record).collect();
        let reached = match self.local {
            true => here(&workspace, &records),
            false => Reach::of_all(&workspace, &records),
        };
        if self.json {
            let report = |asked: &AskedMessage| report(asked, &workspace, &reached);
            let messages = items.iter().map(report).collect();
            console.report(WAITING, &WaitingReport { messages, more })?;
            return Ok(Exit::SUCCESS);
        }
        let Some(store) = store else {
            console.talk(&format!("{NOTHING}\n"))?;
            return Ok(Exit::SUCCESS);
        };
        if items.is_empty() {
            console.talk("You wait for nothing.\n")?;
            return Ok(Exit::SUCCESS);
        }
        let short = view::shortener(&store);
        let notes = |record: &Record| {
            let reach = reached.get(&record.id);
            reach.map_or_else(Vec::new, |r| {
                r.sentences(&workspace.config, &short(&record.id))
            })
        };
        console.show(&view::asked(&items, (&short, notes), &Look::of(console)))?;
        self.paging.tell_more(console, more)?;
        // An answer that comes by a relay is fetched, and not copied.
        let is_carried = |r: &Record| workspace.config.relay_for(&r.receiver).is_none();
        if items.iter().any(|asked| is_carried(&asked.record)) {
            let hint = "`crosstalk paste` keeps an answer that you copied.";
            console.talk(&format!("{}\n", styled(DIM, hint)))?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// A message whose consent is over has no text any more.
fn veiled(asked: AskedMessage) -> AskedMessage {
    AskedMessage {
        record: lookup::veiled(asked.record),
        of: asked.of,
    }
}

/// How far messages are, as this machine knows by itself.
fn here(workspace: &Workspace, records: &[&Record]) -> HashMap<String, Reach> {
    let known = records
        .iter()
        .filter_map(|r| Some((r.id.clone(), Reach::here(workspace, r)?)));
    known.collect()
}

fn report(
    asked: &AskedMessage,
    workspace: &Workspace,
    reached: &HashMap<String, Reach>,
) -> AskedReport {
    let id = &asked.record.id;
    AskedReport {
        message: MessageReport::new(&asked.record),
        waits_for: asked.of.clone(),
        since: asked.record.at.to_string(),
        delivery: reached
            .get(id)
            .map(|reach| reach.report(&workspace.config, id)),
    }
}

/// Find messages by their words, the latest first
///
/// A message has to have every word, in upper or lower case and with or without accents. The last word may be the beginning of one,
/// as any word with a * may: auth* finds authority. "Some words" in quotes have to be whole and follow each other; from:, to:,
/// context: and intent: before a word search only there.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk search jwt expi\n  crosstalk search '\"short expiry\"' from:chatgpt\n  crosstalk search --json 'auth*' | jq -r '.messages[].id'\n\nExit codes: 0 found, 1 nothing found, 2 no word to look for."
)]
pub(crate) struct SearchCommand {
    /// The words to look for
    #[arg(value_name = "WORDS", required = true)]
    words: Vec<String>,
    #[command(flatten)]
    paging: super::Paging,
    /// Print JSON of the form crosstalk.search/1
    #[arg(long)]
    json: bool,
}

impl SearchCommand {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let query = self.words.join(" ");
        let search =
            store::Search::parse_typed(&query).map_err(|e| Failure::usage(e.to_string()))?;
        let workspace = Workspace::open(console)?;
        let kept = workspace.messages(console)?;
        let (mut items, more) = listed(kept.as_ref(), |s| s.search(&search, self.paging.page()))?;
        items.retain(|r| !r.is_expired(clock::exact()));
        let exit = Exit::of_check(!items.is_empty());
        if self.json {
            let messages = MessageReport::all(&items);
            let report = SearchReport {
                query,
                messages,
                more,
            };
            console.report(SEARCH, &report)?;
            return Ok(exit);
        }
        match kept {
            Some(kept) if !items.is_empty() => {
                let look = Look::of(console);
                let extract = |body: &str| view::around(body, &search, look.width);
                let shown =
                    view::messages(&items, view::shortener(&kept), (extract, |_| None), &look);
                console.show(&shown)?;
                self.paging.tell_more(console, more)?;
            }
            _ => console.talk("nothing found\n")?,
        }
        Ok(exit)
    }
}
