//! Finds kept messages and threads: by what a person types, or by what waits for an answer.

use crate::clock::age;
use crate::console::{BOLD, Console, styled};
use crate::failure::Failure;
use crate::screen::clip_cells;
use crate::service::workspace::NOTHING;
use crate::view::{self, Look};
use crate::{clock, paragraph};
use crosstalk_envelope::{CoreHeader, ErrorCode, Intent};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Page, Record, ReferenceMatch, Side, Thread, ThreadFilter, Wait, Way,
};
use crosstalk_store::SqliteStore;
use std::collections::BTreeSet;

/// The word that means the latest message.
pub(crate) const LAST: &str = "last";

/// The message or thread that a reference on the command line means.
#[derive(Debug)]
pub(crate) enum Reference {
    Message(Box<Record>),
    Thread(Box<Thread>),
}

/// Finds what an id, the beginning of one, or `last` means.
pub(crate) fn reference(store: &SqliteStore, text: &str) -> Result<Reference, Failure> {
    if text.eq_ignore_ascii_case(LAST) {
        return Ok(Reference::Message(Box::new(latest(store)?)));
    }
    let nothing = || {
        Failure::failed(format!("no message or thread here begins with `{text}`"))
            .help("`crosstalk threads` lists them")
    };
    match store.find(text)? {
        ReferenceMatch::Thread(id) => {
            let thread = store.thread(&id)?.ok_or_else(nothing)?;
            Ok(Reference::Thread(Box::new(thread)))
        }
        ReferenceMatch::Message(id) => {
            let record = store.message(&id)?.ok_or_else(nothing)?;
            Ok(Reference::Message(Box::new(veiled(record))))
        }
        ReferenceMatch::Nothing if !is_long_enough(text) => {
            Err(Failure::usage(format!("`{text}` is too short"))
                .help("write at least four characters of the id"))
        }
        ReferenceMatch::Several(ids) => Err(several(store, text, &ids)?),
        ReferenceMatch::Nothing => Err(nothing()),
    }
}

/// Whether the beginning of an id is long enough to look for the rest.
pub(crate) fn is_long_enough(prefix: &str) -> bool {
    prefix.chars().count() >= 4
}

/// The beginning of several ids, with what each of them is, so that a person can tell them apart.
pub(crate) fn several(store: &SqliteStore, text: &str, ids: &[String]) -> Result<Failure, Failure> {
    let mut rows = format!("`{text}` can mean several; write more of it:");
    for id in ids {
        let (at, what) = match (store.message(id)?.map(veiled), store.thread(id)?) {
            (_, Some(thread)) => {
                let about = view::line(thread.context.as_deref().unwrap_or("(no context)"));
                (thread.last_at, format!("thread: {about}"))
            }
            (Some(record), None) => {
                let words = view::first_line(&record.document().body_text());
                (record.at, format!("{}: {words}", view::parties(&record)))
            }
            (None, None) => continue,
        };
        let line = format!(
            "{}  {}  {what}",
            view::short(store, id)?,
            age(at, clock::now())
        );
        rows.push_str(&format!(
            "\n  {}",
            clip_cells(&line, paragraph::width().saturating_sub(2))
        ));
    }
    Ok(Failure::usage(rows))
}

/// The message that a reference means where somebody else's is meant: `last` is the latest one that the person did not write,
/// or the latest of all if there is none.
pub(crate) fn others_message(store: &SqliteStore, text: &str) -> Result<Record, Failure> {
    let latest = match text.eq_ignore_ascii_case(LAST) {
        true => recent(store, |r| r.side != Side::Mine)?.into_iter().next(),
        false => None,
    };
    latest.map_or_else(|| message(store, text), Ok)
}

/// The message that a reference means where a question is meant: `last` is the latest one that waits for the person, or the
/// latest of somebody else if none does; of several ids that begin alike, the only one that waits; of a thread, the latest one that
/// waits.
pub(crate) fn question(store: &SqliteStore, text: &str) -> Result<Record, Failure> {
    if text.eq_ignore_ascii_case(LAST)
        && let Some(waiting) = latest_open(store, &[Wait::Me])?
    {
        return Ok(waiting);
    }
    if let ReferenceMatch::Several(ids) = store.find(text)? {
        let mut waiting = Vec::new();
        for id in &ids {
            waiting.extend(store.message(id)?.filter(|r| r.wait == Wait::Me));
        }
        if let [only] = waiting.as_slice() {
            return Ok(veiled(only.clone()));
        }
    }
    if let Reference::Thread(thread) = reference(store, text)? {
        let mut records = everything(store, &thread.id)?.into_iter();
        if let Some(waiting) = records.rfind(|r| r.wait == Wait::Me) {
            return Ok(waiting);
        }
    }
    others_message(store, text)
}

/// The latest message that was sent from here.
pub(crate) fn latest_sent(store: &SqliteStore) -> Result<Option<Record>, Failure> {
    let sent = recent(store, |r| r.side == Side::Mine && r.way == Way::Sent)?;
    Ok(sent.into_iter().next())
}

/// The most columns of a text that is quoted in a sentence.
const QUOTED: usize = 40;

/// A message for a sentence: its id, who sent it, and its first words.
pub(crate) fn named(store: &SqliteStore, record: &Record) -> Result<String, Failure> {
    let head = format!(
        "{} from {}",
        view::short(store, &record.id)?,
        view::line(&record.sender)
    );
    let words = view::first_line(&record.document().body_text());
    Ok(match words.is_empty() {
        true => head,
        false => format!("{head}: {}", clip_cells(&words, QUOTED)),
    })
}

/// The thread that a reference means, by itself or by one of its messages.
pub(crate) fn thread(store: &SqliteStore, text: &str) -> Result<Thread, Failure> {
    match reference(store, text)? {
        Reference::Thread(thread) => Ok(*thread),
        Reference::Message(record) => {
            let thread = store.thread(&record.thread)?;
            thread.ok_or_else(|| Failure::failed("the thread of this message is gone"))
        }
    }
}

/// The message that a reference means; of a thread, the latest one.
pub(crate) fn message(store: &SqliteStore, text: &str) -> Result<Record, Failure> {
    match reference(store, text)? {
        Reference::Message(record) => Ok(*record),
        Reference::Thread(thread) => {
            let record = store.message(&thread.last)?.map(veiled);
            record.ok_or_else(|| Failure::failed("the thread has no message"))
        }
    }
}

/// A closed thread takes no new messages.
pub(crate) fn require_open(store: &SqliteStore, thread: &str) -> Result<(), Failure> {
    let thread = store.thread(thread)?;
    let Some((at, last)) = thread.and_then(|t| Some((t.closed_at?, t.last))) else {
        return Ok(());
    };
    Err(
        Failure::denied(format!("the thread was closed on {at}")).help(format!(
            "begin a new one with `crosstalk send NAME \"…\"`, or add --reopen to go on, as in `crosstalk reply {} \
             --reopen`",
            view::short(store, &last)?
        )),
    )
}

/// The latest message of all.
fn latest(store: &SqliteStore) -> Result<Record, Failure> {
    let threads = store.threads(&ThreadFilter::default(), Page::first(1))?;
    let last = threads.items.first().map(|t| store.message(&t.last));
    let record = last.transpose()?.flatten().map(veiled);
    record.ok_or_else(|| Failure::failed(NOTHING.to_owned()))
}

/// How many of the latest threads are looked through for a message.
const RECENT: usize = 50;

/// Messages of the latest threads that a name or an address has a part in, the first ones of each thread.
pub(crate) fn seen(store: &SqliteStore, address: &str) -> Result<Vec<Record>, Failure> {
    const MESSAGES: usize = 200;
    let filter = ThreadFilter {
        with: Some(address.to_owned()),
        ..ThreadFilter::default()
    };
    let mut seen = Vec::new();
    for thread in store.threads(&filter, Page::first(RECENT))?.items {
        seen.extend(store.messages(&thread.id, None, MESSAGES)?.items);
    }
    Ok(seen)
}

/// The latest question without an answer that waits in one of these ways, in the latest threads.
pub(crate) fn latest_open(store: &SqliteStore, waits: &[Wait]) -> Result<Option<Record>, Failure> {
    let filter = ThreadFilter {
        waiting: !waits.contains(&Wait::Them),
        ..ThreadFilter::default()
    };
    let threads = store.threads(&filter, Page::first(RECENT))?.items;
    let mut latest: Option<Record> = None;
    for thread in threads.iter().filter(|t| t.waiting + t.asked > 0) {
        // The threads with the latest messages come first: no later one has a later question.
        if latest.as_ref().is_some_and(|l| l.at > thread.last_at) {
            break;
        }
        let records = everything(store, &thread.id)?.into_iter();
        let open = records.filter(|r| waits.contains(&r.wait));
        latest = open.chain(latest).max_by_key(|r| r.seq);
    }
    Ok(latest)
}

/// The questions without an answer that wait in one of these ways, in the latest threads; the latest first.
pub(crate) fn open(store: &SqliteStore, waits: &[Wait]) -> Result<Vec<Record>, Failure> {
    recent(store, |r| waits.contains(&r.wait))
}

/// The messages of a kind in the latest threads, the latest first.
pub(crate) fn recent(
    store: &SqliteStore,
    is_wanted: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, Failure> {
    let mut found = Vec::new();
    for thread in store
        .threads(&ThreadFilter::default(), Page::first(RECENT))?
        .items
    {
        let records = everything(store, &thread.id)?.into_iter();
        found.extend(records.filter(&is_wanted));
    }
    found.sort_by_key(|r| std::cmp::Reverse(r.seq));
    Ok(found)
}

/// The latest message of a kind in the latest threads.
pub(crate) fn find_recent(
    store: &SqliteStore,
    is_wanted: impl Fn(&Record) -> bool,
) -> Result<Option<Record>, Failure> {
    let threads = store.threads(&ThreadFilter::default(), Page::first(RECENT))?;
    for thread in &threads.items {
        let records = everything(store, &thread.id)?;
        if let Some(found) = records.into_iter().rev().find(&is_wanted) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// A message whose consent is over has no text any more for anybody who asks.
pub(crate) fn veiled(mut record: Record) -> Record {
    if record.is_expired(clock::exact()) {
        record.text.clear();
        record.received = None;
    }
    record
}

/// Why a message has no text, as the end of a sentence; nothing if it has one.
pub(crate) fn why_gone(record: &Record) -> Option<String> {
    if !record.text.is_empty() {
        return None;
    }
    Some(match record.expires {
        Some(end) if end <= clock::exact() => format!("its consent expired on {end}"),
        _ => "its consent was revoked, and the text erased".to_owned(),
    })
}

/// A message that is handed on has a text.
pub(crate) fn require_text(record: &Record) -> Result<(), Failure> {
    match why_gone(record) {
        None => Ok(()),
        Some(why) => Err(Failure::refused(
            ErrorCode::Consent,
            format!("the message {} has no text any more: {why}", record.id),
        )
        .help("ask for a new consent (`crosstalk consent list --all` lists the consents)")),
    }
}

/// All messages of a thread, in the order in which they came, without the texts whose consent is over.
pub(crate) fn everything(store: &SqliteStore, thread: &str) -> Result<Vec<Record>, Failure> {
    let records = whole(store, thread)?;
    Ok(records.into_iter().map(veiled).collect())
}

/// All messages of a thread as they are kept.
pub(crate) fn whole(store: &SqliteStore, thread: &str) -> Result<Vec<Record>, Failure> {
    const AT_ONCE: usize = 1000;
    let mut records: Vec<Record> = Vec::new();
    loop {
        let after = records.last().map(|r| r.seq);
        let page = store.messages(thread, after, AT_ONCE)?;
        records.extend(page.items);
        if !page.more {
            return Ok(records);
        }
    }
}

/// How many messages before an ESCALATE or a HANDOFF are shown with it.
const SHOWN_BEFORE: usize = 4;

/// The messages before an ESCALATE or a HANDOFF, the oldest first: its reader needs the question.
pub(crate) fn before(store: &SqliteStore, record: &Record) -> Result<Vec<Record>, Failure> {
    let mut earlier: Vec<Record> = Vec::new();
    let is_passed_on = matches!(record.meaning, Some(Intent::Escalate | Intent::Handoff));
    // One that was written here or pasted says in its text what came before.
    if !is_passed_on || record.way != Way::Relayed || record.side != Side::ToMe {
        return Ok(earlier);
    }
    let mut parent = record.parent.clone();
    while let Some(id) = parent.take().filter(|_| earlier.len() < SHOWN_BEFORE) {
        let is_known = earlier.iter().chain([record]).any(|r| r.id == id);
        let Some(found) = store.message(&id)?.filter(|_| !is_known) else {
            break;
        };
        parent.clone_from(&found.parent);
        earlier.push(veiled(found));
    }
    earlier.reverse();
    Ok(earlier)
}

/// The messages of other threads that messages belong to: by what their envelopes say, or because they were filed there
/// before somebody moved them.
pub(crate) fn elsewhere(store: &SqliteStore, records: &[Record]) -> Result<Vec<Record>, Failure> {
    let mut threads: BTreeSet<String> = BTreeSet::new();
    for record in records {
        let document = record.document();
        threads.extend(document.header(CoreHeader::Thread).map(str::to_owned));
        if let Some(parent) = document.header(CoreHeader::Parent) {
            threads.extend(store.message(parent)?.map(|question| question.thread));
        }
        threads.extend(store.first_thread(&record.id)?);
    }
    let mut all = Vec::new();
    for thread in &threads {
        if records.iter().all(|record| record.thread != *thread) {
            all.extend(whole(store, thread)?);
        }
    }
    Ok(all)
}

/// Whether nothing speaks against a message.
pub(crate) const fn is_sound(verdict: VerdictWord) -> bool {
    !matches!(
        verdict,
        VerdictWord::Damaged | VerdictWord::NotVerified | VerdictWord::Revoked
    )
}

/// Shows what an ESCALATE or a HANDOFF goes back to.
pub(crate) fn show_before(
    console: &mut Console,
    store: &SqliteStore,
    record: &Record,
    look: &Look,
) -> Result<(), Failure> {
    let earlier = before(store, record)?;
    if earlier.is_empty() {
        return Ok(());
    }
    let title = styled(BOLD, "What came before:");
    let shown = view::before(&earlier, view::shortener(store), look);
    console.show(&format!("\n{title}\n{shown}"))
}

/// The messages that still have a text; says how many are left out.
pub(crate) fn with_text(
    console: &mut Console,
    records: Vec<Record>,
) -> Result<Vec<Record>, Failure> {
    let all = records.len();
    let kept: Vec<Record> = records.into_iter().filter(|r| !r.text.is_empty()).collect();
    if kept.len() < all {
        let what = paragraph::count(all - kept.len(), "message");
        console.note(&format!(
            "{what} left out: the consent has expired or was revoked"
        ))?;
    }
    Ok(kept)
}
