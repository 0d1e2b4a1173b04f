//! Intake of a relay: loads what a batch asks for, and writes what the rules decide ([`plan_accept`]).
//!
//! ```text
//! AcceptNeeds ── load ──> AcceptFacts ── plan_accept ──> AcceptChanges ── apply ──> rows
//! ```

mod apply;
mod load;

use crosstalk_protocol::relay::{AcceptNeeds, AcceptOutcome, Admission, plan_accept, report};
use rusqlite::Connection;

use super::queue;
use super::unindexed::UnindexedMessages;
use crate::sqlite::fault::SqlResult;
use crate::sqlite::ledger;
use crate::sqlite::sql::number;

/// Accepts messages. Only inside a transaction.
pub(super) fn accept_all(
    db: &Connection,
    batch: &[Admission],
    unindexed: &mut UnindexedMessages,
) -> SqlResult<Vec<AcceptOutcome>> {
    let mut outcomes = Vec::with_capacity(batch.len());
    while let Some(rest) = batch.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
        let before = outcomes.len();
        // A plan ends with a REVOKE: what comes after it is looked up then.
        let revokes = |a: &Admission| a.claim.as_ref().is_some_and(|c| c.is_revoke);
        let end = rest
            .iter()
            .position(revokes)
            .map_or(rest.len(), |at| at + 1);
        let some = rest.get(..end).unwrap_or(rest);
        outcomes.extend(accept_some(db, some, &AcceptNeeds::of(some), unindexed)?);
        if outcomes.len() == before {
            return Err(rusqlite::Error::QueryReturnedNoRows);
        }
    }
    Ok(outcomes)
}

/// Accepts a message that a person approved. Only inside a transaction.
pub(super) fn accept_approved(
    db: &Connection,
    admission: &Admission,
    unindexed: &mut UnindexedMessages,
) -> SqlResult<AcceptOutcome> {
    let needs = AcceptNeeds::of_approved(admission);
    let mut outcomes = accept_some(db, std::slice::from_ref(admission), &needs, unindexed)?;
    outcomes.pop().ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Accepts the first messages of a batch: as many as one plan is for.
fn accept_some(
    db: &Connection,
    batch: &[Admission],
    needs: &AcceptNeeds<'_>,
    unindexed: &mut UnindexedMessages,
) -> SqlResult<Vec<AcceptOutcome>> {
    let facts = load::load(db, needs, unindexed)?;
    let plan = plan_accept(batch, &facts);
    let numbers = apply::apply(db, &plan.changes, unindexed)?;
    let mut withdrawn = None;
    let last = batch.get(plan.outcomes.len().saturating_sub(1));
    if let (Some(order), Some(revoke)) = (&plan.revocation, last) {
        let seq = numbers.seqs.last().copied().map(number);
        let result = ledger::revoke(db, seq, order)?;
        queue::enqueue_notices(db, report::revocation_notices(&revoke.arrival, &result))?;
        withdrawn = Some(result);
    }
    let count = plan.outcomes.len();
    let outcomes = (1..).zip(plan.outcomes);
    let outcomes = outcomes.map(|(place, outcome)| {
        let withdrawn = withdrawn.take_if(|_| place == count);
        outcome.number(&numbers, withdrawn)
    });
    Ok(outcomes.collect())
}
