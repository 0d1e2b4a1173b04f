//! Threads as a store gives them back.

use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_envelope::{Builder, Document, Reading, Timestamp};
use crosstalk_protocol::store::{Arrival, ArrivalContext, Mine, Record, Wait, Way};
use crosstalk_protocol::{Admitted, Trust, VerdictWord, VerifyContext, verify};

pub(crate) const THREAD: &str = "01K74V6R0074G0T7MAHPXVDNXW";

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// The id of the message with this number.
pub(crate) fn id(number: usize) -> String {
    format!("01K74V6VX0S86Z5JATM5{number:06}")
}

/// A message with this number, from CLAUDE to CHATGPT and back.
pub(crate) fn message(number: usize, intent: &str, body: &str) -> Builder {
    let (from, to) = if number % 2 == 1 {
        ("CLAUDE", "CHATGPT")
    } else {
        ("CHATGPT", "CLAUDE")
    };
    let builder = Builder::new(from, to)
        .user("kalle")
        .session("2025-10-09T16Z abc123")
        .thread(THREAD)
        .message(id(number))
        .context("release notes")
        .intent(intent)
        .body(body);
    if number > 1 {
        builder.parent(id(number - 1))
    } else {
        builder
    }
}

/// The messages as records, each settled by the next one that answers it.
pub(crate) fn records(messages: &[Builder]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for (seq, builder) in (1..).zip(messages) {
        let text = builder.build().unwrap();
        let (record, settles) = record(seq, &text);
        let answered = records
            .iter_mut()
            .find(|r| Some(&r.id) == record.parent.as_ref());
        if let Some(answered) = answered.filter(|_| settles) {
            answered.wait = Wait::Nobody;
        }
        records.push(record);
    }
    records
}

/// An envelope as a record, and whether it settles what it answers.
pub(crate) fn record(seq: u64, text: &str) -> (Record, bool) {
    let document = Document::parse(text, Reading::Paste);
    let at = Timestamp::from_millis(1_760_025_600_000 + i64::try_from(seq).unwrap() * 60_000);
    let verdict = verify(&document, &Trust::default(), &VerifyContext::at(at));
    let spare = ReceivedIds {
        thread: THREAD.into(),
        message: id(usize::try_from(seq).unwrap()),
    };
    let mine = Mine::new(["kalle".into()]);
    let receipt = ArrivalContext {
        at,
        way: Way::Pasted,
        mine: &mine,
        generated: spare,
    };
    let arrival = Arrival::new(&Admitted::new(&document, verdict), receipt);
    let record = Record {
        expires: None,
        seq,
        entry: None,
        id: arrival.id().to_owned(),
        carries_id: arrival.message.is_some(),
        thread: THREAD.into(),
        parent: arrival.parent.clone(),
        session: arrival.session.clone(),
        sender: arrival.sender.clone(),
        receiver: arrival.receiver.clone(),
        user: arrival.user.clone(),
        context: arrival.context.clone(),
        intent: arrival.intent.clone(),
        meaning: arrival.meaning,
        at: arrival.at,
        written_at: Some(at),
        verdict: arrival.verdict,
        pkid: arrival.pkid.clone(),
        side: arrival.side,
        way: arrival.way,
        wait: arrival.wait(),
        digest: arrival.digest,
        text: arrival.text.clone(),
        received: arrival.received.clone(),
        truncated: arrival.truncated,
    };
    (record, arrival.settles())
}

/// The record under another verdict.
pub(crate) fn judged(mut record: Record, verdict: VerdictWord) -> Record {
    record.verdict = verdict;
    record
}
