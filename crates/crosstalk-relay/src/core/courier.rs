//! Answers that a person brings back from a chat.

use super::Relay;
use crosstalk_envelope::Document;
use crosstalk_protocol::relay::{Pattern, Peer, RelayStore, Role};

impl Relay {
    /// The chat in whose name a caller hands a message in, if it answers one that this caller carries there. What it says
    /// is never the word of a person.
    pub(super) async fn carried_chat(
        &self,
        document: &Document<'_>,
        caller: &Peer,
    ) -> Option<Peer> {
        let envelope = document.envelope();
        let parent = envelope.parent.filter(|_| caller.is_person())?.to_owned();
        // A question has deliveries once it is indexed.
        self.write_filed(|_| Ok(())).await.ok()?;
        let find = move |store: &dyn RelayStore| {
            let Some(question) = store.taken_as(&parent)? else {
                return Ok(None);
            };
            let deliveries = store.deliveries(&question.id)?;
            Ok(Some((question, deliveries)))
        };
        let (question, deliveries) = self.read(find).await.ok()??;
        let rules = self.rules();
        let may = rules.lets_bring_back(caller, &envelope, &question, &deliveries);
        may.then(|| Peer {
            name: caller.name.clone(),
            role: Role::Agent,
            addresses: vec![Pattern::exact(document.sender())],
            ..Peer::stranger()
        })
    }
}
