//! Chat exports in JSON: one conversation of the `conversations.json` of ChatGPT or of Claude.
//!
//! ChatGPT keeps a tree of nodes: `current_node` is the end of the branch that was shown last, and edited questions and
//! repeated answers are other branches. Claude keeps a list of messages, each with the message before it in newer exports.
//! Every branch is read; the one that was shown comes first.

use super::{Chat, ChatTurn, Speaker};
use crosstalk_envelope::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most characters of the text of an attached file.
const ATTACHED_CHARS: usize = 60_000;

/// The assistants of the two programs.
const CHATGPT: &str = "CHATGPT";
const CLAUDE: &str = "CLAUDE";

/// One conversation, as either program writes it. Unknown fields are ignored.
///
/// ```
/// use crosstalk_protocol::chat::{ExportedChat, Speaker};
/// let exported: ExportedChat = serde_json::from_str(r#"{
///     "uuid": "c-1", "name": "Ports", "created_at": "2025-10-09T16:00:00Z",
///     "chat_messages": [
///         {"uuid": "m-1", "sender": "human", "text": "Which port?"},
///         {"uuid": "m-2", "sender": "assistant", "content": [{"type": "text", "text": "443."}]}
///     ]
/// }"#)?;
/// let chat = exported.into_chat().unwrap();
/// assert_eq!(chat.turns[1].speaker, Speaker::Assistant("CLAUDE".into()));
/// assert_eq!(chat.turns[1].text, "443.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExportedChat {
    title: Option<String>,
    name: Option<String>,
    create_time: Option<f64>,
    created_at: Option<String>,
    conversation_id: Option<String>,
    id: Option<String>,
    uuid: Option<String>,
    current_node: Option<String>,
    mapping: Option<BTreeMap<String, ExportNode>>,
    chat_messages: Option<Vec<ClaudeMessage>>,
}

/// A place in the tree of ChatGPT.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExportNode {
    parent: Option<String>,
    children: Option<Vec<String>>,
    message: Option<GptMessage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GptMessage {
    author: Author,
    create_time: Option<f64>,
    content: Option<ExportContent>,
    recipient: Option<String>,
    metadata: Option<Metadata>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Author {
    role: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExportContent {
    content_type: Option<String>,
    parts: Option<Vec<ContentPart>>,
    text: Option<String>,
}

/// A piece of what was said: words, or something that is no text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ContentPart {
    Words(String),
    Thing(Thing),
    Unknown(IgnoredAny),
}

#[derive(Debug, Deserialize)]
struct Thing {
    content_type: String,
    text: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    is_visually_hidden_from_conversation: Option<bool>,
    attachments: Option<Vec<ExportAttachment>>,
}

/// A file that was attached, as either program names it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExportAttachment {
    name: Option<String>,
    file_name: Option<String>,
    extracted_content: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaudeMessage {
    uuid: Option<String>,
    parent_message_uuid: Option<String>,
    sender: Option<String>,
    text: Option<String>,
    created_at: Option<String>,
    content: Option<Vec<ContentBlock>>,
    attachments: Option<Vec<ExportAttachment>>,
    files: Option<Vec<ExportAttachment>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContentBlock {
    r#type: Option<String>,
    text: Option<String>,
}

impl ExportedChat {
    /// Whether it is a conversation of either program at all.
    pub fn is_known(&self) -> bool {
        self.mapping.is_some() || self.chat_messages.is_some()
    }

    /// The conversation as turns; nothing if nobody said anything.
    pub fn into_chat(self) -> Option<Chat> {
        let (turns, assistant) = match (self.mapping, self.chat_messages) {
            (Some(nodes), _) => (of_tree(&nodes, self.current_node.as_deref()), CHATGPT),
            (None, Some(messages)) => (of_list(messages), CLAUDE),
            (None, None) => return None,
        };
        let title = self.title.or(self.name);
        let at = self.create_time.and_then(seconds);
        let chat = Chat {
            title: title.filter(|t| !t.trim().is_empty()),
            at: at.or_else(|| self.created_at.as_deref().and_then(Timestamp::parse)),
            turns,
            key: self.conversation_id.or(self.id).or(self.uuid),
            assistant: Some(assistant),
        };
        (!chat.turns.is_empty()).then_some(chat)
    }
}

/// A time in seconds since 1970, with a fraction.
fn seconds(seconds: f64) -> Option<Timestamp> {
    let is_time = seconds.is_finite() && (0.0..=253_402_300_799.0).contains(&seconds);
    // The range is checked: nothing is lost but the fraction of a millisecond.
    is_time.then(|| Timestamp::from_millis((seconds * 1000.0) as i64))
}

/// The turns of a tree, each after the one that it follows; the branch that was shown last comes first.
fn of_tree(nodes: &BTreeMap<String, ExportNode>, current: Option<&str>) -> Vec<ChatTurn> {
    let shown = shown_branch(nodes, current);
    let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut roots = Vec::new();
    for (id, node) in nodes {
        match node.parent.as_deref().filter(|p| nodes.contains_key(*p)) {
            Some(parent) => children.entry(parent).or_default().push(id),
            None => roots.push(id.as_str()),
        }
    }
    for (parent, below) in &mut children {
        let listed = nodes.get(*parent).and_then(|n| n.children.as_ref());
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, id) in listed.into_iter().flatten().enumerate() {
            places.entry(id).or_insert(place);
        }
        below.sort_by_cached_key(|id| {
            let place = places.get(id).copied().unwrap_or(usize::MAX);
            (!shown.contains(id), place)
        });
    }
    roots.sort_by_key(|id| !shown.contains(id));
    let mut turns: Vec<ChatTurn> = Vec::new();
    // The next node is at the end. A node is reached by its parent alone, so that circles are never entered.
    let mut open: Vec<(&str, Option<usize>)> =
        roots.into_iter().rev().map(|id| (id, None)).collect();
    while let Some((id, after)) = open.pop() {
        let message = nodes.get(id).and_then(|n| n.message.as_ref());
        let mut last = after;
        if let Some((speaker, text)) = message.and_then(GptMessage::said) {
            last = Some(turns.len());
            turns.push(ChatTurn {
                speaker,
                text,
                at: message.and_then(|m| m.create_time).and_then(seconds),
                after,
                key: Some(id.to_owned()),
            });
        }
        let below = children.get(id).map_or(&[][..], Vec::as_slice);
        open.extend(below.iter().rev().map(|child| (*child, last)));
    }
    turns
}

/// The nodes from the end of the branch that was shown up to the root.
fn shown_branch<'n>(
    nodes: &'n BTreeMap<String, ExportNode>,
    current: Option<&'n str>,
) -> BTreeSet<&'n str> {
    let mut branch = BTreeSet::new();
    let mut next = current;
    while let Some((id, node)) = next.and_then(|id| nodes.get_key_value(id)) {
        // Else it goes in a circle.
        if !branch.insert(id.as_str()) {
            break;
        }
        next = node.parent.as_deref();
    }
    branch
}

impl GptMessage {
    /// Who says what; nothing for what was never shown: hidden messages, calls of tools and what they gave.
    fn said(&self) -> Option<(Speaker, String)> {
        let metadata = self.metadata.as_ref();
        if metadata.is_some_and(|m| m.is_visually_hidden_from_conversation == Some(true)) {
            return None;
        }
        let is_to_all = self.recipient.as_deref().is_none_or(|r| r == "all");
        let speaker = match self.author.role.as_deref() {
            Some("user") => Speaker::Person,
            Some("assistant") if is_to_all => Speaker::Assistant(CHATGPT.into()),
            Some("system") => Speaker::System,
            _ => return None,
        };
        let mut pieces: Vec<String> = match &self.content {
            Some(content) => content.pieces()?,
            None => Vec::new(),
        };
        let attached = metadata.and_then(|m| m.attachments.as_ref());
        pieces.extend(
            attached
                .into_iter()
                .flatten()
                .filter_map(ExportAttachment::shown),
        );
        joined(pieces).map(|text| (speaker, text))
    }
}

impl ExportContent {
    /// The pieces of a text; nothing if it is no text for people.
    fn pieces(&self) -> Option<Vec<String>> {
        match self.content_type.as_deref() {
            None | Some("text" | "multimodal_text") => {}
            Some("code") => return Some(self.text.iter().cloned().collect()),
            Some(_) => return None,
        }
        let parts = self.parts.iter().flatten().filter_map(|part| match part {
            ContentPart::Words(words) => Some(words.clone()),
            ContentPart::Thing(Thing {
                text: Some(text), ..
            }) => Some(text.clone()),
            ContentPart::Thing(thing) => {
                let kinds = ["image", "audio", "video"];
                let mut kinds = kinds.into_iter();
                let kind = kinds.find(|kind| thing.content_type.contains(kind));
                Some(format!("[{}]", kind.unwrap_or("attachment")))
            }
            ContentPart::Unknown(_) => None,
        });
        Some(parts.chain(self.text.iter().cloned()).collect())
    }
}

impl ExportAttachment {
    /// A line that names the file, with its text where the export has it.
    fn shown(&self) -> Option<String> {
        let name = self.file_name.as_ref().or(self.name.as_ref());
        let name = name.map_or("a file", |n| n.trim());
        let text = self.extracted_content.as_deref().unwrap_or_default().trim();
        if text.is_empty() {
            return (name != "a file").then(|| format!("[attached: {name}]"));
        }
        let mut shown: String = text.chars().take(ATTACHED_CHARS).collect();
        if shown.len() < text.len() {
            shown.push_str("\n[the rest of it is in the export]");
        }
        Some(format!("[attached: {name}]\n{shown}"))
    }
}

/// Pieces as one text; nothing if they are empty.
fn joined(pieces: Vec<String>) -> Option<String> {
    let pieces = pieces.iter().map(|p| p.trim_end());
    let pieces: Vec<&str> = pieces.filter(|p| !p.trim().is_empty()).collect();
    (!pieces.is_empty()).then(|| pieces.join("\n\n"))
}

/// The turns of a list, each after the one that it names, else after the one before it.
fn of_list(messages: Vec<ClaudeMessage>) -> Vec<ChatTurn> {
    let mut turns: Vec<ChatTurn> = Vec::new();
    // The last turn up to a message, itself included.
    let mut ends: HashMap<String, Option<usize>> = HashMap::new();
    for message in messages {
        let before = turns.len().checked_sub(1);
        let named = message.parent_message_uuid.as_ref();
        let after = match named.map(|parent| ends.get(parent)) {
            Some(Some(end)) => *end,
            // The first message names one that is in no export.
            Some(None) if ends.is_empty() => None,
            _ => before,
        };
        let mut end = after;
        if let Some((speaker, text)) = message.said() {
            end = Some(turns.len());
            turns.push(ChatTurn {
                speaker,
                text,
                at: message.created_at.as_deref().and_then(Timestamp::parse),
                after,
                key: message.uuid.clone(),
            });
        }
        if let Some(uuid) = message.uuid {
            ends.insert(uuid, end);
        }
    }
    turns
}

impl ClaudeMessage {
    fn said(&self) -> Option<(Speaker, String)> {
        let speaker = match self.sender.as_deref() {
            Some("human") => Speaker::Person,
            Some("assistant") => Speaker::Assistant(CLAUDE.into()),
            _ => return None,
        };
        // The blocks leave out what `text` says in other words: thoughts, calls of tools and what they gave.
        let blocks = self.content.iter().flatten();
        let blocks = blocks.filter(|b| b.r#type.as_deref() == Some("text"));
        let mut pieces: Vec<String> = blocks.filter_map(|b| b.text.clone()).collect();
        if pieces.iter().all(|p| p.trim().is_empty()) {
            pieces = self.text.iter().cloned().collect();
        }
        let attached = self.attachments.iter().chain(&self.files).flatten();
        pieces.extend(attached.filter_map(ExportAttachment::shown));
        joined(pieces).map(|text| (speaker, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn chat(value: Value) -> Option<Chat> {
        let exported: ExportedChat = serde_json::from_value(value).unwrap();
        exported.into_chat()
    }

    fn turns(chat: &Chat) -> Vec<(&str, &str, Option<usize>)> {
        let who = |speaker: &Speaker| match speaker {
            Speaker::Person => "me",
            Speaker::Assistant(_) => "ai",
            Speaker::System => "system",
        };
        chat.turns
            .iter()
            .map(|t| (who(&t.speaker), t.text.as_str(), t.after))
            .collect()
    }

    fn node(parent: Option<&str>, role: &str, content: Value) -> Value {
        json!({"parent": parent, "children": [], "message": {
            "author": {"role": role}, "content": content, "create_time": 1_760_025_600.5, "recipient": "all",
        }})
    }

    fn text(words: &str) -> Value {
        json!({"content_type": "text", "parts": [words]})
    }

    #[test]
    fn the_branch_that_was_shown_comes_first_and_the_others_after_it() {
        let tool = json!({"content_type": "execution_output", "text": "4"});
        let mut call = node(
            Some("q2"),
            "assistant",
            json!({"content_type": "code", "text": "2+2"}),
        );
        call["message"]["recipient"] = "python".into();
        let chat = chat(json!({
            "title": "Ports", "create_time": 1_760_025_600.0, "conversation_id": "c-1", "current_node": "a2",
            "mapping": {
                "root": {"parent": null, "children": ["s"], "message": null},
                "s": node(Some("root"), "system", text("")),
                "q1": node(Some("s"), "user", text("Which port?")),
                "a1": node(Some("q1"), "assistant", text("80.")),
                "q2": node(Some("s"), "user", text("Which port for TLS?")),
                "call": call,
                "tool": node(Some("call"), "tool", tool),
                "a2": node(Some("tool"), "assistant", text("443.")),
                "lost": node(Some("lost"), "user", text("A circle.")),
            },
        }))
        .unwrap();
        assert_eq!(
            turns(&chat),
            [
                ("me", "Which port for TLS?", None),
                ("ai", "443.", Some(0)),
                ("me", "Which port?", None),
                ("ai", "80.", Some(2)),
            ]
        );
        assert_eq!(chat.key.as_deref(), Some("c-1"));
        assert_eq!(
            chat.turns[0].at.unwrap().to_string(),
            "2025-10-09T16:00:00.500Z"
        );
    }

    #[test]
    fn parts_files_and_hidden_messages() {
        let parts = json!({"content_type": "multimodal_text", "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
            "What is this?",
            {"content_type": "audio_transcription", "text": "Tell me."},
            {"no": "kind"}, 7,
        ]});
        let mut question = node(None, "user", parts);
        question["message"]["metadata"] = json!({"attachments": [{"name": "plan.md", "size": 3}]});
        let mut hidden = node(Some("q"), "user", text("I am a plumber."));
        hidden["message"]["metadata"] = json!({"is_visually_hidden_from_conversation": true});
        let thoughts = json!({"content_type": "thoughts", "thoughts": [{"content": "Hm."}]});
        let chat = chat(json!({"mapping": {
            "q": question,
            "h": hidden,
            "t": node(Some("h"), "assistant", thoughts),
            "a": node(Some("t"), "assistant", text("A plan.")),
        }}))
        .unwrap();
        assert_eq!(
            turns(&chat),
            [
                (
                    "me",
                    "[image]\n\nWhat is this?\n\nTell me.\n\n[attached: plan.md]",
                    None
                ),
                ("ai", "A plan.", Some(0)),
            ]
        );
    }

    #[test]
    fn messages_of_claude_follow_the_one_that_they_name() {
        let root = "00000000-0000-4000-8000-000000000000";
        let said = |uuid: &str, parent: &str, sender: &str, text: &str| {
            json!({"uuid": uuid, "parent_message_uuid": parent, "sender": sender, "text": text,
                   "created_at": "2025-10-09T16:00:00.123456Z"})
        };
        let mut answer = said("2", "1", "assistant", "(in other words)");
        answer["content"] = json!([
            {"type": "thinking", "thinking": "Hm."},
            {"type": "text", "text": "443."},
            {"type": "tool_use", "name": "calc", "input": {}},
            {"type": "text", "text": "Or 8443."},
        ]);
        let mut pasted = said("3", "2", "human", "");
        pasted["attachments"] =
            json!([{"file_name": "log.txt", "extracted_content": "It failed.\n"}]);
        pasted["files"] = json!([{"file_name": "screen.png"}]);
        let chat = chat(json!({"uuid": "c", "name": "", "chat_messages": [
            said("1", root, "human", "Which port?"),
            answer,
            pasted,
            said("4", "1", "assistant", "80."),
            said("5", "4", "human", "Sure?"),
        ]}))
        .unwrap();
        assert_eq!(
            turns(&chat),
            [
                ("me", "Which port?", None),
                ("ai", "443.\n\nOr 8443.", Some(0)),
                (
                    "me",
                    "[attached: log.txt]\nIt failed.\n\n[attached: screen.png]",
                    Some(1)
                ),
                ("ai", "80.", Some(0)),
                ("me", "Sure?", Some(3)),
            ]
        );
        assert_eq!(chat.title, None);
    }

    /// A search among the children for each child would not end.
    #[test]
    fn a_node_with_very_many_children_is_read_in_their_order() {
        const CHILDREN: usize = 100_000;
        let ids: Vec<String> = (0..CHILDREN).rev().map(|n| format!("n{n:06}")).collect();
        let child = |id: &String| {
            let message = node(Some("root"), "user", text(id));
            (
                id.clone(),
                serde_json::from_value::<ExportNode>(message).unwrap(),
            )
        };
        let mut nodes: BTreeMap<String, ExportNode> = ids.iter().map(child).collect();
        let root = ExportNode {
            children: Some(ids.clone()),
            ..ExportNode::default()
        };
        nodes.insert("root".into(), root);
        let turns = of_tree(&nodes, Some("n000007"));
        assert_eq!(turns.len(), CHILDREN);
        let texts = turns.iter().map(|t| t.text.as_str());
        let mut wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
        wanted.retain(|id| *id != "n000007");
        wanted.insert(0, "n000007");
        assert!(texts.eq(wanted));
    }

    #[test]
    fn other_json_is_no_conversation() {
        assert!(chat(json!({"mapping": {}})).is_none());
        assert!(chat(json!({"chat_messages": [{"sender": "human", "text": " "}]})).is_none());
        let other: ExportedChat = serde_json::from_value(json!({"id": "user-1"})).unwrap();
        assert!(!other.is_known());
    }
}
