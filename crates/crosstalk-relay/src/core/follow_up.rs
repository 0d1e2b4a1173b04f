//! What the reply to a question of an agent goes back to, at a relay.

use super::Relay;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::{HOPS, RelayStore, Rules};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use crosstalk_protocol::{Ancestor, FollowUp};

impl Relay {
    /// What a message to an agent follows up, if it is the reply to an ESCALATE or a REQUEST of this agent. Nothing once the
    /// time of the question is over.
    pub(crate) async fn follow_up(&self, agent: &str, reply: &Record) -> Option<FollowUp> {
        let (rules, agent, reply) = (self.rules(), agent.to_owned(), reply.clone());
        let now = self.now();
        let find = move |store: &dyn RelayStore| find(store, &rules, &agent, &reply, now);
        self.read(find).await.ok().flatten()
    }
}

/// What a message to an agent follows up. Who may speak for its sender was checked when it came in.
pub(crate) fn find(
    store: &dyn RelayStore,
    rules: &Rules,
    agent: &str,
    reply: &Record,
    now: Timestamp,
) -> Result<Option<FollowUp>, StoreError> {
    let is = |one: &str, other: &str| is_same_party(rules.routes.named(one), other);
    let replier = rules.routes.named(&reply.sender);
    let mut ancestors = Vec::new();
    let mut parent = reply.parent.clone();
    while let Some(id) = parent.take().filter(|_| ancestors.len() < HOPS) {
        let Some(record) = store.taken_as(&id)? else {
            break;
        };
        let ways = store.deliveries(&id)?;
        let is_for = |address: &str| ways.iter().any(|way| is_same_party(&way.to, address));
        parent.clone_from(&record.parent);
        ancestors.push(Ancestor {
            is_own: is(&record.sender, agent),
            is_for_agent: is_for(agent),
            // The relay itself reports in the name that the agent wrote to.
            is_for_replier: is_for(replier) || is_same_party(&record.receiver, &reply.sender),
            record,
        });
    }
    let found = FollowUp::find(reply, ancestors, now);
    // Without tokens, everybody on the machine speaks for everybody.
    let has_tokens = found.is_some() && store.token_counts()?.made > 0;
    Ok(found.map(|found| found.with_credential(has_tokens)))
}
