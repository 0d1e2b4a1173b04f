//! Chat exports in the forms that exporters and people write.

use crosstalk_envelope::id::{IdForm, time_of};
use crosstalk_envelope::{Builder, CoreHeader, Document, Intent, Reading, scan};
use crosstalk_protocol::chat::{Chat, ChatImport, Speaker, read_chat};

const IMPORT: ChatImport<'static> = ChatImport {
    person: "KALLE",
    user: "kalle",
    source: "chat.md",
};

fn who(speaker: &Speaker) -> &str {
    match speaker {
        Speaker::Person => "-",
        Speaker::Assistant(name) => name,
        Speaker::System => "SYSTEM",
    }
}

fn turns(chat: &Chat) -> Vec<(&str, &str)> {
    let turns = chat.turns.iter();
    turns.map(|t| (who(&t.speaker), t.text.as_str())).collect()
}

#[test]
fn every_form_of_export_is_read() {
    let forms = [
        (
            "headings",
            "## User\n\nHi\n\n## Assistant\n\nHello\n",
            "ASSISTANT",
        ),
        (
            "deeper headings",
            "### User\nHi\n\n### Assistant\nHello",
            "ASSISTANT",
        ),
        (
            "a name as a heading",
            "# You\nHi\n\n# ChatGPT\nHello",
            "CHATGPT",
        ),
        (
            "levels that differ",
            "## You\nHi\n\n### Claude\nHello",
            "CLAUDE",
        ),
        (
            "prompt and response",
            "## Prompt:\nHi\n\n## Response:\nHello",
            "ASSISTANT",
        ),
        (
            "headings with a colon",
            "#### You:\nHi\n\n#### ChatGPT:\nHello",
            "CHATGPT",
        ),
        (
            "headings in bold",
            "## **User**\nHi\n\n## **Claude**\nHello",
            "CLAUDE",
        ),
        (
            "closed headings",
            "## User ##\nHi\n\n## Gemini ##\nHello",
            "GEMINI",
        ),
        (
            "bold, colon inside",
            "**You:** Hi\n\n**Claude:** Hello",
            "CLAUDE",
        ),
        (
            "bold, colon outside",
            "**You**: Hi\n\n**Claude**: Hello",
            "CLAUDE",
        ),
        (
            "bold alone",
            "**User**\n\nHi\n\n**Assistant**\n\nHello",
            "ASSISTANT",
        ),
        ("underlines", "__Human__\nHi\n\n__Bot__\nHello", "ASSISTANT"),
        ("said", "You said:\nHi\n\nChatGPT said:\nHello", "CHATGPT"),
        (
            "said in headings",
            "##### You said:\nHi\n\n###### ChatGPT said:\nHello",
            "CHATGPT",
        ),
        ("plain", "Human: Hi\n\nAssistant: Hello", "ASSISTANT"),
        ("plain over lines", "User:\nHi\n\nClaude:\nHello", "CLAUDE"),
        (
            "emoji before",
            "## 👤 User\nHi\n\n## 🤖 Assistant\nHello",
            "ASSISTANT",
        ),
        (
            "emoji after",
            "## You 🧑‍💻\nHi\n\n## ChatGPT ✨\nHello",
            "CHATGPT",
        ),
        (
            "emoji and bold",
            "🧑 **You:**\nHi\n\n🤖 **Claude:**\nHello",
            "CLAUDE",
        ),
        (
            "rules between",
            "## User\n\nHi\n\n---\n\n## Assistant\n\nHello\n\n---\n",
            "ASSISTANT",
        ),
        (
            "stars between",
            "**You:**\nHi\n\n* * *\n\n**Gemini:**\nHello\n",
            "GEMINI",
        ),
        (
            "models",
            "## User\nHi\n\n## Claude 3.5 Sonnet\nHello",
            "CLAUDE",
        ),
        (
            "models in brackets",
            "**You**\nHi\n\n**ChatGPT (GPT-4o)**\nHello",
            "CHATGPT",
        ),
        ("gpt", "## User\nHi\n\n## GPT-4o mini\nHello", "CHATGPT"),
        (
            "times",
            "## User (2025-10-09 16:00)\nHi\n\n## Assistant (2025-10-09 16:01)\nHello",
            "ASSISTANT",
        ),
        (
            "other times",
            "## You, 10/9/2025, 4:00:00 PM\nHi\n\n## ChatGPT, October 9th, 2025 at 4:01 PM\nHello",
            "CHATGPT",
        ),
        (
            "times behind bold",
            "**You** · 16:04\nHi\n\n**Copilot** · 16:05 UTC\nHello",
            "COPILOT",
        ),
        (
            "times below",
            "## Prompt:\n10/9/2025, 4:00:00 PM\n\nHi\n\n## Response:\n2025-10-09 16:00:05\n\nHello",
            "ASSISTANT",
        ),
        (
            "bold in italics",
            "_**User**_\nHi\n\n_**Agent (Claude 4.5 Opus)**_\nHello",
            "CLAUDE",
        ),
        (
            "names in brackets",
            "**[user] [2024-12-30 10:37:31]**\n\nHi\n\n**[assistant] [2024-12-30 10:37:32]**\n\nHello\n\n---",
            "ASSISTANT",
        ),
        (
            "times in italics",
            "**You** · _10/9/2025, 4:00:00 PM_\n\nHi\n\n**Grok** · _10/9/2025, 4:00:09 PM_\n\nHello",
            "GROK",
        ),
        (
            "times in front",
            "[2025-10-09 16:00] You: Hi\n[2025-10-09 16:01] Claude: Hello",
            "CLAUDE",
        ),
        (
            "clocks in front",
            "(16:00) **You:** Hi\n(16:01) **Claude:** Hello",
            "CLAUDE",
        ),
        (
            "times in HTML",
            "#### You:\n<time datetime=\"2025-10-09T16:00:00.000Z\" title=\"10/9/2025\">16:00</time>\n\nHi\n\n#### ChatGPT:\n<time datetime=\"2025-10-09T16:00:05.000Z\">16:00</time>\n\nHello",
            "CHATGPT",
        ),
        (
            "CRLF",
            "## User\r\n\r\nHi\r\n\r\n## Assistant\r\n\r\nHello\r\n",
            "ASSISTANT",
        ),
        (
            "capitals",
            "## USER\nHi\n\n## ASSISTANT\nHello",
            "ASSISTANT",
        ),
        (
            "front matter",
            "---\ntitle: \"Ports\"\nmodel: gemini-2.5-pro\ndate: 2025-10-09\n---\n\n## User\nHi\n\n## Model\nHello",
            "GEMINI",
        ),
        (
            "a title that names it",
            "# Exported from Claude\n\n## Human\nHi\n\n## Assistant\nHello",
            "CLAUDE",
        ),
        (
            "facts in bold above",
            "# Ports\n\n**User:** Kalle (kalle@example.com)  \n**Created:** 10/9/2025 16:00  \n**Link:** [https://chatgpt.com/c/1](https://chatgpt.com/c/1)  \n\n## Prompt:\nHi\n\n## Response:\nHello\n\n---\nPowered by an exporter",
            "CHATGPT",
        ),
    ];
    for (form, text, assistant) in forms {
        let chat = read_chat(text).unwrap_or_else(|| panic!("{form}"));
        let found = turns(&chat);
        let hello = if form.starts_with("facts") {
            "Hello\n\n---\nPowered by an exporter"
        } else {
            "Hello"
        };
        assert_eq!(found, [("-", "Hi"), (assistant, hello)], "{form}");
    }
}

#[test]
fn titles_and_times_are_found() {
    let chat = read_chat(
        "---\ntitle: 'Ports: which?'\nupdated: 2026-01-01\ncreated: 2025-10-09T16:00:00Z\ndate: 2025-11-01\n---\n\n\
         ## User (2025-10-09T18:01:00+02:00)\nHi\n## Assistant — 2025-10-09 16:02:03\nHello\n## User\n2025-10-09 16:03\n\nBye\n",
    )
    .unwrap();
    assert_eq!(chat.title.as_deref(), Some("Ports: which?"));
    assert_eq!(chat.at.unwrap().to_string(), "2025-10-09T16:00:00Z");
    let times: Vec<String> = chat
        .turns
        .iter()
        .map(|t| t.at.unwrap().to_string())
        .collect();
    assert_eq!(
        times,
        [
            "2025-10-09T16:01:00Z",
            "2025-10-09T16:02:03Z",
            "2025-10-09T16:03:00Z"
        ]
    );
    assert_eq!(chat.turns[2].text, "Bye");
    let tagged = "#### You:\n<time datetime=\"2025-10-09T16:00:00.500Z\">16:00</time>\n\nHi\n#### Claude:\nHello";
    let chat = read_chat(tagged).unwrap();
    assert_eq!(
        chat.turns[0].at.unwrap().to_string(),
        "2025-10-09T16:00:00.500Z"
    );
    let chat = read_chat("## Me\nHi\n## Claude 4.5 2025-10-09 16:00\nHello").unwrap();
    assert_eq!(
        chat.turns[1].at.unwrap().to_string(),
        "2025-10-09T16:00:00Z"
    );
    let chat = read_chat("[2025-10-09 16:00] You: Hi\n[16:01] Claude: Hello").unwrap();
    assert_eq!(
        chat.turns[0].at.unwrap().to_string(),
        "2025-10-09T16:00:00Z"
    );
}

#[test]
fn other_lines_are_text() {
    let code = "```md\n## User\nfake\n```";
    let text = format!(
        "## User\nHi\n{code}\n## User guide\nread it\n## Assistant\n**User:** no\nHuman: no\n### Response\nno\n### User\nno\n## Response\nno\n    ## User\n~~~\n## User\n```\n## User\n~~~\n## User\n```\nnever closed\n## Assistant\nEnd"
    );
    let chat = read_chat(&text).unwrap();
    let found = turns(&chat);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0].1, format!("Hi\n{code}\n## User guide\nread it"));
    assert!(
        found[1]
            .1
            .ends_with("    ## User\n~~~\n## User\n```\n## User\n~~~"),
        "{:?}",
        found[1]
    );
    assert_eq!(found[2], ("-", "```\nnever closed"));
    assert_eq!(found[3].1, "End");
}

#[test]
fn code_within_a_line_opens_no_fence() {
    let chat =
        read_chat("## User\n```one``` line\n## Assistant\nHello\n```\n## User\n```\n").unwrap();
    assert_eq!(turns(&chat)[0].1, "```one``` line");
    assert_eq!(turns(&chat).len(), 2);
}

#[test]
fn other_text_is_no_chat() {
    for text in [
        "",
        "Just a note.",
        "## User\nHi",
        "## User\nHi\n## User\nHi again",
        "## User\n\n## Assistant\n\nHello",
        "# User guide\n\n## Response times\n\nFast.",
        "user: kalle\npassword: x\nassistant: none",
        "The user: says\nhi.\nthe assistant: nods",
        "```\n## User\nHi\n## Assistant\nHello\n```",
        "meta: x\nHuman:resources\nAssistant:none",
    ] {
        assert_eq!(read_chat(text), None, "{text}");
    }
}

fn build(builders: &[Builder]) -> Vec<String> {
    builders.iter().map(|b| b.build().unwrap()).collect()
}

const CHAT: &str = "# Ports\n\n## System\nBe brief.\n\n## User\nWhich port?\n\n## User\nFor TLS.\n\n## Claude\n443.\n\n## Claude\nOr 8443.\n\n## User\nThanks\n[[END]]\n";

#[test]
fn a_chat_becomes_one_thread() {
    let chat = read_chat(CHAT).unwrap();
    let texts = build(&chat.messages(&IMPORT));
    let documents: Vec<Document<'_>> = texts
        .iter()
        .map(|t| Document::parse(t, Reading::Strict))
        .collect();
    let facts: Vec<(&str, &str, Option<Intent>, Option<usize>)> = documents
        .iter()
        .map(|d| {
            assert!(d.is_accepted());
            let parent = d.header(CoreHeader::Parent);
            let of = parent.map(|p| {
                documents
                    .iter()
                    .position(|d| d.header(CoreHeader::Message) == Some(p))
                    .unwrap()
            });
            assert_eq!(
                d.header(CoreHeader::Thread),
                documents[0].header(CoreHeader::Thread)
            );
            assert_eq!(d.header(CoreHeader::Context), Some("Ports"));
            assert_eq!(d.meta("custom-crosstalk", "Imported-From"), Some("chat.md"));
            assert_eq!(
                IdForm::of(d.header(CoreHeader::Message).unwrap()),
                IdForm::Ulid
            );
            (d.sender(), d.receiver(), d.envelope().meaning(), of)
        })
        .collect();
    use Intent::{Broadcast, Request, Respond};
    assert_eq!(
        facts,
        [
            ("SYSTEM", "CLAUDE", Some(Broadcast), None),
            ("KALLE", "CLAUDE", Some(Request), None),
            ("KALLE", "CLAUDE", Some(Broadcast), Some(1)),
            ("CLAUDE", "KALLE", Some(Respond), Some(1)),
            ("CLAUDE", "KALLE", Some(Respond), Some(1)),
            ("KALLE", "CLAUDE", Some(Request), Some(1)),
        ]
    );
    let session = documents[0].header(CoreHeader::Session).unwrap();
    assert!(
        session.starts_with("import ") && session.len() == 15,
        "{session}"
    );
    assert_eq!(
        scan(&texts.concat(), Reading::Strict).documents.len(),
        texts.len()
    );
}

#[test]
fn the_same_chat_gives_the_same_messages_and_a_longer_one_goes_on() {
    let short = read_chat(CHAT).unwrap();
    let crlf = read_chat(&CHAT.replace('\n', "\r\n")).unwrap();
    let longer = read_chat(&format!("{CHAT}\n## Claude\nYou are welcome.\n")).unwrap();
    let first = build(&short.messages(&IMPORT));
    assert_eq!(build(&crlf.messages(&IMPORT)), first);
    let second = build(&longer.messages(&IMPORT));
    assert_eq!(second.len(), first.len() + 1);
    assert_eq!(second[..first.len()], first);
    // The name of the file is no part of the ids.
    let renamed = short.messages(&ChatImport {
        source: "chat (1).md",
        ..IMPORT
    });
    let id = |b: &Builder| b.core_value(CoreHeader::Message).unwrap().clone();
    let ids: Vec<String> = renamed.iter().map(id).collect();
    assert_eq!(
        ids,
        short.messages(&IMPORT).iter().map(id).collect::<Vec<_>>()
    );
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    // Another chat is another thread, and the same words later are another message.
    let other = read_chat(&CHAT.replace("brief", "long")).unwrap();
    assert!(
        build(&other.messages(&IMPORT))
            .iter()
            .zip(&first)
            .all(|(a, b)| a != b)
    );
    let repeated = read_chat("## User\nHi\n## Claude\nHi\n## User\nHi\n").unwrap();
    let ids: std::collections::BTreeSet<String> =
        repeated.messages(&IMPORT).iter().map(id).collect();
    assert_eq!(ids.len(), 3);
    let dated = read_chat("## User (2025-10-09)\nHi\n## Claude\nHello\n").unwrap();
    let message = id(&dated.messages(&IMPORT)[0]);
    assert_eq!(
        time_of(&message).unwrap().to_string(),
        "2025-10-09T00:00:00Z"
    );
}

#[test]
fn forbidden_characters_of_a_body_are_replaced() {
    let long = "x".repeat(200_000);
    let text = format!("## User\nred \u{1b}[31m\u{2028}next\u{0}\n{long}\n## Claude\nHello");
    let chat = read_chat(&text).unwrap();
    let texts = build(&chat.messages(&ChatImport {
        source: "a\nb\u{202e}.md",
        ..IMPORT
    }));
    let document = Document::parse(&texts[0], Reading::Strict);
    let body = document.body_text();
    assert!(
        body.starts_with("red \\u{1b}[31m\nnext\\u{0}\nxxx"),
        "{body}"
    );
    assert_eq!(body.matches('x').count(), 200_001);
    assert_eq!(
        document.meta("custom-crosstalk", "Imported-From"),
        Some("a b\\u{202e}.md")
    );
}

/// Pieces from which texts are made that come close to exports.
const PIECES: [&str; 32] = [
    "\n## User\n",
    "\n## Assistant\n",
    "\n**You:** ",
    "\n**Claude:** ",
    "\nHuman: ",
    "\nAssistant: ",
    "## ",
    "# ",
    "User",
    "Assistant",
    "You said:",
    "**",
    "__",
    ":",
    "\n",
    "\n\n",
    "```",
    "~~~",
    "---",
    "Human: ",
    "Claude",
    " 3.5 ",
    "(2025-10-09 16:00)",
    "2025-10-09",
    "text",
    " ",
    "\r\n",
    "👤",
    "é",
    "\u{0}",
    "İ",
    "title: ",
];

#[test]
fn turns_are_pieces_of_the_text_in_order() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % 1_000_003).unwrap() % below
    };
    let mut read = 0;
    for _ in 0..6_000 {
        let length = random(40);
        let text: String = (0..length).map(|_| PIECES[random(PIECES.len())]).collect();
        let Some(chat) = read_chat(&text) else {
            continue;
        };
        read += 1;
        let mut rest = text.as_str();
        for turn in &chat.turns {
            assert!(!turn.text.trim().is_empty(), "{text:?}");
            let at = rest
                .find(&turn.text)
                .unwrap_or_else(|| panic!("{text:?} {turn:?}"));
            rest = &rest[at + turn.text.len()..];
        }
        assert!(chat.turns.len() > 1);
        for builder in chat.messages(&IMPORT) {
            builder.build().unwrap_or_else(|e| panic!("{text:?}: {e}"));
        }
    }
    assert!(read > 100, "{read}");
}
