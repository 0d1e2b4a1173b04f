//! Messages for the tests of stores.

use crate::at;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{Arrival, Side, StoredMessage, Way, is_placeholder};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A message in the making: a request from KALLE to CLAUDE that was pasted and is between others.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    from: String,
    to: String,
    headers: Vec<(&'static str, String)>,
    intent: String,
    context: String,
    targets: Vec<String>,
    body: String,
    verdict: VerdictWord,
    pkid: Option<String>,
    side: Side,
    way: Way,
    seconds: i64,
    carried: bool,
    answers: Option<String>,
    spare: ReceivedIds,
}

/// A message with an id.
pub(crate) fn letter(id: &str) -> Letter {
    nameless().header("message", id)
}

/// A message without one.
pub(crate) fn nameless() -> Letter {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Letter {
        from: "KALLE".to_owned(),
        to: "CLAUDE".to_owned(),
        headers: Vec::new(),
        intent: "REQUEST".to_owned(),
        context: "auth".to_owned(),
        targets: Vec::new(),
        body: "Which port?".to_owned(),
        verdict: VerdictWord::Unsigned,
        pkid: None,
        side: Side::Between,
        way: Way::Pasted,
        seconds: i64::try_from(number).unwrap(),
        carried: true,
        answers: None,
        spare: ReceivedIds {
            thread: format!("spare-thread-{number:06}"),
            message: format!("spare-message-{number:06}"),
        },
    }
}

impl Letter {
    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(n, _)| *n != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn thread(self, id: &str) -> Self {
        self.header("thread", id)
    }

    pub(crate) fn parent(self, id: &str) -> Self {
        self.header("parent", id)
    }

    pub(crate) fn session(self, name: &str) -> Self {
        self.header("session", name)
    }

    pub(crate) fn user(self, name: &str) -> Self {
        self.header("user", name)
    }

    pub(crate) fn between(mut self, from: &str, to: &str) -> Self {
        (self.from, self.to) = (from.to_owned(), to.to_owned());
        self
    }

    pub(crate) fn intent(mut self, intent: &str) -> Self {
        self.intent = intent.to_owned();
        self
    }

    pub(crate) fn context(mut self, context: &str) -> Self {
        self.context = context.to_owned();
        self
    }

    pub(crate) fn targets(mut self, targets: &[&str]) -> Self {
        self.targets = targets.iter().map(|t| (*t).to_owned()).collect();
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self
    }

    pub(crate) fn side(mut self, side: Side) -> Self {
        self.side = side;
        if side == Side::Mine {
            self.way = Way::Sent;
        }
        self
    }

    pub(crate) fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// What a person says it answers.
    pub(crate) fn answers(mut self, id: &str) -> Self {
        self.answers = Some(id.to_owned());
        self
    }

    /// Kept under an id of its own, whatever the envelope carries.
    pub(crate) fn own_id(mut self, id: &str) -> Self {
        self.carried = false;
        self.spare_message(id)
    }

    pub(crate) fn spare_message(mut self, id: &str) -> Self {
        self.spare.message = id.to_owned();
        self
    }

    pub(crate) fn verdict(mut self, verdict: VerdictWord, pkid: Option<&str>) -> Self {
        (self.verdict, self.pkid) = (verdict, pkid.map(str::to_owned));
        self
    }

    pub(crate) fn at(mut self, seconds: i64) -> Self {
        self.seconds = seconds;
        self
    }

    pub(crate) fn spare(mut self, thread: &str) -> Self {
        self.spare.thread = thread.to_owned();
        self
    }

    pub(crate) fn text(&self) -> String {
        let mut out = format!("[[{}→{} v1]]\n", self.from, self.to);
        let mut line = |name: &str, value: &str| out.push_str(&format!("{name}: {value}\n"));
        let get = |name: &str| self.headers.iter().find(|(n, _)| *n == name);
        line("user", get("user").map_or("kalle", |(_, v)| v));
        for name in ["session", "thread", "parent", "message"] {
            if let Some((_, value)) = get(name) {
                line(name, value);
            }
        }
        line("context", &self.context);
        line("intent", &self.intent);
        if !self.targets.is_empty() {
            line("meta", "routing");
            line("Targets", &format!("[{}]", self.targets.join(", ")));
        }
        out.push_str("body: |\n");
        for line in self.body.lines() {
            out.push_str(&format!("  {line}\n"));
        }
        let signature = match &self.pkid {
            Some(pkid) => format!("ed25519:pkid={pkid};sig=AAAA"),
            None => "none".to_owned(),
        };
        out.push_str(&format!("sig: {signature}\n[[END]]\n"));
        out
    }

    pub(crate) fn arrival(&self) -> Arrival {
        Arrival::recall(StoredMessage {
            text: self.text(),
            received: None,
            truncated: false,
            verdict: self.verdict,
            pkid: self.pkid.clone(),
            side: self.side,
            way: self.way,
            at: at(self.seconds),
            message: self
                .headers
                .iter()
                .find(|(name, id)| *name == "message" && self.carried && !is_placeholder(id))
                .map(|(_, id)| id.clone()),
            answers: self.answers.clone(),
            generated: self.spare.clone(),
        })
    }
}
