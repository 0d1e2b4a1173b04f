//! What an agent may read: the messages to its own address, and its own.

use crate::failure::Failure;
use crate::service::lookup::veiled;
use crosstalk_protocol::store::{Record, is_same_party};
use crosstalk_store::{AgentFacts, SqliteStore};

/// The most messages that are looked at for a number.
const COUNTED: usize = 1_000;

/// Whether an address may read a message: it is to or from it.
pub(super) fn may_read(record: &Record, address: &str) -> bool {
    is_same_party(&record.sender, address) || is_to(record, address)
}

/// Whether a message is to an address.
pub(super) fn is_to(record: &Record, address: &str) -> bool {
    let is_address = |one: &str| is_same_party(one, address);
    if is_address(&record.receiver) {
        return true;
    }
    let document = record.document();
    let targets = document.envelope().routing().target_list();
    targets.iter().any(|target| is_address(target.as_ref()))
}

/// The messages to an address that were neither read nor answered, the oldest first, and whether there are more.
pub(super) fn unread(
    store: &SqliteStore,
    facts: &AgentFacts,
    limit: usize,
) -> Result<(Vec<Record>, bool), Failure> {
    let most = limit.saturating_add(facts.read.len());
    let listing = store.addressed(&facts.address, facts.read_through, most)?;
    let is_new = |record: &Record| {
        !facts.has_read(record.seq) && !is_same_party(&record.sender, &facts.address)
    };
    let found = listing.items.into_iter().filter(is_new).map(veiled);
    let mut found: Vec<Record> = found.filter(|record| !record.text.is_empty()).collect();
    let more = listing.more || found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}

/// How many messages wait for an agent.
pub(crate) fn unread_count(store: &SqliteStore, facts: &AgentFacts) -> Result<usize, Failure> {
    let (found, _) = unread(store, facts, COUNTED)?;
    Ok(found.len())
}
