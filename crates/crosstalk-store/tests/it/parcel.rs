//! Messages for the tests of what a relay asks of a store.

use crate::at;
use crate::letter::Letter;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::port::InboxQuery;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Handler, IndexProgress, Priority, Recipient,
};
use crosstalk_protocol::store::Way;
use crosstalk_store::SqliteStore;
use std::sync::Arc;

/// A message that may be taken: to its receiver, by its inbox.
pub(crate) fn parcel(letter: Letter) -> Admission {
    let arrival = letter.way(Way::Relayed).arrival();
    let recipients = vec![Recipient {
        address: arrival.receiver.clone(),
        by: Handler::Inbox,
    }];
    Admission {
        raw: Digest::of(arrival.text.as_bytes()),
        speaker: arrival.sender.clone(),
        arrival: Arc::new(arrival),
        peer: "ci".to_owned(),
        recipients,
        priority: Priority::Normal,
        answer_by: None,
        expires: None,
        blobs: Vec::new(),
        readable: Vec::new(),
        claim: None,
        proof: Proof::default(),
        is_authority: false,
        backing: None,
        is_brief: false,
        held: None,
    }
}

/// What tests change about a message.
pub(crate) trait Parcel {
    fn to(self, recipients: &[(&str, Handler)]) -> Self;
    fn priority(self, priority: Priority) -> Self;
    fn answer_by(self, seconds: i64) -> Self;
    fn expires(self, seconds: i64) -> Self;
    fn blob(self, digest: Digest) -> Self;
}

impl Parcel for Admission {
    fn to(mut self, recipients: &[(&str, Handler)]) -> Self {
        let one = |(address, by): &(&str, Handler)| Recipient {
            address: (*address).to_owned(),
            by: *by,
        };
        self.recipients = recipients.iter().map(one).collect();
        self
    }

    fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    fn answer_by(mut self, seconds: i64) -> Self {
        self.answer_by = Some(at(seconds));
        self
    }

    fn expires(mut self, seconds: i64) -> Self {
        self.expires = Some(at(seconds));
        self
    }

    fn blob(mut self, digest: Digest) -> Self {
        self.blobs.push(digest);
        self
    }
}

/// A store of a relay, whichever way it is asked.
pub(crate) trait TakesParcels {
    /// Takes messages in, in their order.
    fn take_all(&mut self, batch: &[Admission]) -> Vec<AcceptOutcome>;

    /// Files everything that is left.
    fn file_all(&mut self) -> IndexProgress;

    /// The ids in an inbox.
    fn inbox_ids(&self, address: &str) -> Vec<String>;
}

impl TakesParcels for SqliteStore {
    fn take_all(&mut self, batch: &[Admission]) -> Vec<AcceptOutcome> {
        self.accept_batch(batch).unwrap()
    }

    fn file_all(&mut self) -> IndexProgress {
        loop {
            let filing = self.index(3).unwrap();
            if filing.left == 0 {
                return filing;
            }
        }
    }

    fn inbox_ids(&self, address: &str) -> Vec<String> {
        let asked = InboxQuery {
            address: address.to_owned(),
            after: None,
            limit: 100,
        };
        let entries = self.inbox_of(&asked).unwrap();
        entries.into_iter().map(|e| e.record.id).collect()
    }
}

/// Takes one message in.
pub(crate) fn take(store: &mut impl TakesParcels, parcel: &Admission) -> AcceptOutcome {
    let mut taken = store.take_all(std::slice::from_ref(parcel));
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

/// Takes messages in that are new. Their places.
pub(crate) fn take_new(store: &mut impl TakesParcels, parcels: &[Admission]) -> Vec<u64> {
    let place = |taken| match taken {
        AcceptOutcome::Accepted { seq, .. } => seq,
        other => panic!("{other:?}"),
    };
    store.take_all(parcels).into_iter().map(place).collect()
}

/// Takes messages in that are new, and files them.
pub(crate) fn take_and_file(store: &mut impl TakesParcels, parcels: &[Admission]) {
    take_new(store, parcels);
    file_all(store);
}

/// The code and the words of a refusal.
pub(crate) fn refused(store: &mut impl TakesParcels, parcel: &Admission) -> (String, String) {
    match take(store, parcel) {
        AcceptOutcome::Rejected(refusal) => (refusal.code.as_str().to_owned(), refusal.detail()),
        other => panic!("{other:?}"),
    }
}

/// Files everything that is left.
pub(crate) fn file_all(store: &mut impl TakesParcels) -> IndexProgress {
    store.file_all()
}

/// The ids in an inbox.
pub(crate) fn inbox(store: &impl TakesParcels, address: &str) -> Vec<String> {
    store.inbox_ids(address)
}
