//! One question to several: which messages belong together, and which chats know the format.

use crate::conversation::{THREAD, at, id, records};
use crosstalk_envelope::Builder;
use crosstalk_protocol::needs_primer;
use crosstalk_protocol::store::{Record, Side, Way, rounds};

fn question(number: usize, to: &str, intent: &str, body: &str) -> Builder {
    Builder::new("KALLE", to)
        .user("kalle")
        .session("2025-10-09T16Z abc123")
        .thread(THREAD)
        .message(id(number))
        .context("ports")
        .intent(intent)
        .body(body)
}

#[test]
fn messages_that_ask_several_the_same_are_a_round() {
    let thread = records(&[
        question(1, "CHATGPT", "REQUEST", "Which port?"),
        question(2, "CLAUDE", "REQUEST", "Which port?"),
        question(3, "GEMINI", "REQUEST", "Which host?"),
        question(4, "GEMINI", "BROADCAST", "Which port?"),
        question(5, "GEMINI", "REQUEST", "Which port?").parent(id(1)),
        question(6, "GEMINI", "REQUEST", "Which port?"),
        // Asked once more: another round.
        question(7, "chatgpt", "REQUEST", "Which port?"),
        question(8, "CLAUDE", "REQUEST", "Which port?"),
    ]);
    assert_eq!(rounds(&thread), [vec![0, 1, 5], vec![6, 7]]);
    let mut gone = thread;
    gone[1].text = String::new();
    assert_eq!(rounds(&gone), [vec![0, 5], vec![6, 7]]);
}

#[test]
fn the_primer_goes_along_until_an_envelope_was_pasted() {
    let of = |sender: &str, receiver: &str, way: Way, side: Side| -> Record {
        let mut record = records(&[question(1, "CHATGPT", "REQUEST", "x")]).remove(0);
        record.sender = sender.to_owned();
        record.receiver = receiver.to_owned();
        record.way = way;
        record.side = side;
        record.at = at("2025-10-09T16:00Z");
        record
    };
    let pasted = |sender| of(sender, "KALLE", Way::Pasted, Side::ToMe);
    let filed = of("CHATGPT", "KALLE", Way::Filed, Side::ToMe);
    let imported = of("CHATGPT", "KALLE", Way::Imported, Side::ToMe);
    let sent = of("KALLE", "Chatgpt", Way::Sent, Side::Mine);
    for (receiver, seen, thread, needs) in [
        ("CHATGPT", vec![], "T2", true),
        ("chatgpt://thread/x", vec![], "T2", true),
        ("human://acme.example/ann", vec![], "T2", false),
        ("email:ann@acme.example", vec![], "T2", false),
        ("CHATGPT", vec![filed, imported, sent.clone()], "T2", true),
        ("CHATGPT", vec![sent], THREAD, false),
        ("CHATGPT", vec![pasted("ChatGPT")], "T2", false),
        ("chatgpt://thread/x", vec![pasted("CHATGPT")], "T2", false),
        ("CHATGPT", vec![pasted("CLAUDE")], "T2", true),
    ] {
        assert_eq!(
            needs_primer(receiver, &seen, thread),
            needs,
            "{receiver} {thread}"
        );
    }
}
