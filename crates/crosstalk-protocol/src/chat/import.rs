//! The envelopes of a chat: one thread, with ids that come from what was said.

use super::{Chat, ChatTurn, Speaker};
use crosstalk_envelope::id::IdSequence;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Builder, Intent, Timestamp, unicode};

/// The longest line of a body, in characters; one that is longer goes on in the next.
const LINE_CHARS: usize = 16_000;
/// The most characters of a context that is made from the first turn.
const CONTEXT_CHARS: usize = 80;

/// How a chat becomes messages.
#[derive(Clone, Copy, Debug)]
pub struct ChatImport<'a> {
    /// The name or address of the person in the chat.
    pub person: &'a str,
    /// Who speaks, for the header `user`.
    pub user: &'a str,
    /// Where the chat comes from: the name of a file.
    pub source: &'a str,
}

impl Chat {
    /// The messages of a chat, in order, all of one thread.
    ///
    /// What the person says is a REQUEST, what an assistant says then is the RESPOND to it. The ids come from those of the
    /// export, else from what was said: the same chat gives the same ids again, and a longer export of it goes on in the same thread. So a message
    /// whose id a store has is there already, whatever the file was called this time.
    ///
    /// ```
    /// use crosstalk_protocol::chat::{ChatImport, read_chat};
    /// let chat = read_chat("## User\nWhich port?\n## Assistant\n443.\n").unwrap();
    /// let import = ChatImport { person: "KALLE", user: "kalle", source: "chat.md" };
    /// let texts: Vec<String> = chat.messages(&import).iter().map(|b| b.build().unwrap()).collect();
    /// assert!(texts[0].starts_with("[[KALLE→ASSISTANT v1]]\n"));
    /// assert!(texts[1].contains("\nintent: RESPOND\n\nmeta: custom-crosstalk\nImported-From: chat.md\n"));
    /// ```
    pub fn messages(&self, import: &ChatImport<'_>) -> Vec<Builder> {
        let Some(first) = self.turns.first() else {
            return Vec::new();
        };
        let root = match &self.key {
            Some(key) => Digest::of(format!("chat {key}").as_bytes()),
            None => Digest::of(plain(&first.text).as_bytes()),
        };
        let thread = id(self.time(first), &format!("thread {root}"));
        let session = format!("import {}", hex(root));
        let context = self.context(first);
        // The latest question of the branch up to each turn, and whether it has an answer.
        let mut questions: Vec<Option<(String, bool)>> = Vec::with_capacity(self.turns.len());
        let receivers = self.receivers(import.person);
        let mut builders = Vec::new();
        for (index, turn) in self.turns.iter().enumerate() {
            let body = plain(&turn.text);
            let who = name(&turn.speaker, import.person);
            let known_as = match &turn.key {
                Some(key) => format!("turn {root} {key}"),
                None => format!("turn {root} {index} {who}\n{body}"),
            };
            let message = id(self.time(turn), &known_as);
            let before = turn.after.and_then(|place| questions.get(place));
            let mut asked = before.cloned().flatten();
            let receiver = receivers.get(index).copied().unwrap_or(UNNAMED);
            // Each turn depends on earlier ones only: a longer export says the same about them.
            let (intent, parent) = match (&turn.speaker, &asked) {
                (Speaker::Person, Some((request, false))) => {
                    (Intent::Broadcast, Some(request.clone()))
                }
                (Speaker::Person, earlier) => {
                    let parent = earlier.as_ref().map(|(request, _)| request.clone());
                    asked = Some((message.clone(), false));
                    (Intent::Request, parent)
                }
                (Speaker::Assistant(_), Some((request, _))) => {
                    let request = request.clone();
                    asked = Some((request.clone(), true));
                    (Intent::Respond, Some(request))
                }
                _ => (Intent::Broadcast, None),
            };
            questions.push(asked);
            let mut builder = Builder::new(who, receiver)
                .user(one_line(import.user))
                .session(&session)
                .thread(&thread)
                .message(message)
                .context(&context)
                .intent(intent.as_str())
                .meta("custom-crosstalk", "Imported-From", one_line(import.source))
                .body(body);
            if let Some(parent) = parent {
                builder = builder.parent(parent);
            }
            builders.push(builder);
        }
        builders
    }

    fn time(&self, turn: &ChatTurn) -> Option<Timestamp> {
        turn.at.or(self.at)
    }

    fn context(&self, first: &ChatTurn) -> String {
        let title = self.title.as_deref().unwrap_or(&first.text);
        let mut context: String = one_line(title).chars().take(CONTEXT_CHARS).collect();
        if context.is_empty() {
            context.push_str("chat");
        }
        context
    }

    /// To whom each turn speaks: the person, or the assistant that spoke last before it, else the first one, else the one
    /// whose program exported the chat.
    fn receivers<'a>(&'a self, person: &'a str) -> Vec<&'a str> {
        let assistant = |t: &'a ChatTurn| match &t.speaker {
            Speaker::Assistant(name) => Some(name.as_str()),
            _ => None,
        };
        let first = self.turns.iter().find_map(assistant);
        let first = first.or(self.assistant).unwrap_or(UNNAMED);
        // The assistant that spoke last up to each turn, itself included.
        let mut latest: Vec<Option<&str>> = Vec::with_capacity(self.turns.len());
        let mut receivers = Vec::with_capacity(self.turns.len());
        for turn in &self.turns {
            let before = turn
                .after
                .and_then(|place| latest.get(place).copied().flatten());
            let own = assistant(turn);
            receivers.push(match own {
                Some(_) => person,
                None => before.unwrap_or(first),
            });
            latest.push(own.or(before));
        }
        receivers
    }
}

/// An assistant that the export does not name.
const UNNAMED: &str = "ASSISTANT";

fn name<'a>(speaker: &'a Speaker, person: &'a str) -> &'a str {
    match speaker {
        Speaker::Person => person,
        Speaker::Assistant(name) => name,
        Speaker::System => "SYSTEM",
    }
}

/// A ULID from a time and what a name says.
fn id(at: Option<Timestamp>, name: &str) -> String {
    let millis = at.map_or(0, Timestamp::as_millis);
    let millis = u64::try_from(millis).unwrap_or(0);
    let bytes = Digest::of(name.as_bytes()).0;
    let bits = bytes
        .iter()
        .take(16)
        .fold(0, |bits: u128, b| (bits << 8) | u128::from(*b));
    IdSequence::ulid().next(millis, bits).unwrap_or_default()
}

/// Eight hex digits of a digest.
fn hex(digest: Digest) -> String {
    let text = digest.to_string();
    text.chars().skip("sha256:".len()).take(8).collect()
}

/// A text as a body takes it: line ends as LF, controls made visible, no line too long.
fn plain(text: &str) -> String {
    let text = text
        .replace("\r\n", "\n")
        .replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let mut out = String::with_capacity(text.len());
    for line in text.trim_end().split('\n') {
        for (number, c) in line.trim_end().chars().enumerate() {
            if number > 0 && number % LINE_CHARS == 0 {
                out.push('\n');
            }
            if c.is_control() && c != '\t' {
                let mut buffer = [0; 4];
                out.push_str(&unicode::escape(c.encode_utf8(&mut buffer)));
            } else {
                out.push(c);
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

fn one_line(text: &str) -> String {
    let text = unicode::escape(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
