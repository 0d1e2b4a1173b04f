//! Speakers in a chat export, and the words for them.

/// Who said something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person whose chat it is.
    Person,
    /// An assistant, by its name in capitals; `ASSISTANT` where the export does not name it.
    Assistant(String),
    /// Neither: what was set up before.
    System,
}

/// What a word says about who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Person,
    /// An assistant without a name.
    Assistant,
    /// An assistant with this name.
    Named(&'static str),
    System,
}

const PERSON: [&str; 6] = ["user", "you", "human", "me", "prompt", "my prompt"];
const ASSISTANT: [&str; 7] = [
    "agent",
    "assistant",
    "response",
    "ai",
    "bot",
    "model",
    "ai assistant",
];
const SYSTEM: [&str; 2] = ["system", "system prompt"];

/// Assistants as they are written, and their names here. Longer ones first where one begins like another.
const NAMED: [(&str, &str); 24] = [
    ("chatgpt", "CHATGPT"),
    ("chat gpt", "CHATGPT"),
    ("gpt", "CHATGPT"),
    ("openai", "CHATGPT"),
    ("claude code", "CLAUDE"),
    ("claude", "CLAUDE"),
    ("anthropic", "CLAUDE"),
    ("gemini", "GEMINI"),
    ("bard", "BARD"),
    ("github copilot", "COPILOT"),
    ("microsoft copilot", "COPILOT"),
    ("copilot", "COPILOT"),
    ("bing", "BING"),
    ("perplexity", "PERPLEXITY"),
    ("mistral", "MISTRAL"),
    ("le chat", "MISTRAL"),
    ("llama", "LLAMA"),
    ("meta ai", "META-AI"),
    ("deepseek", "DEEPSEEK"),
    ("grok", "GROK"),
    ("qwen", "QWEN"),
    ("kimi", "KIMI"),
    ("codex", "CODEX"),
    ("cursor", "CURSOR"),
];

/// Words that may follow the name of an assistant, besides a version.
const MODELS: [&str; 24] = [
    "sonnet", "opus", "haiku", "pro", "flash", "turbo", "mini", "nano", "plus", "ultra",
    "advanced", "preview", "latest", "instruct", "chat", "large", "medium", "small", "thinking",
    "reasoner", "code", "auto", "deep", "research",
];

impl Word {
    /// Reads the beginning of a label, such as `chatgpt (gpt-4o)` in lower case; also how many characters the name has.
    pub(super) fn read(lower: &str) -> Option<(Self, usize)> {
        let ends = |rest: &str| rest.chars().next().is_none_or(|c| !c.is_alphanumeric());
        let plain = |words: &[&str], kind: Self| {
            let fitting = words
                .iter()
                .filter(|w| lower.strip_prefix(**w).is_some_and(ends));
            fitting
                .max_by_key(|w| w.len())
                .map(|w| (kind, w.chars().count()))
        };
        let generic = [
            plain(&PERSON, Self::Person),
            plain(&ASSISTANT, Self::Assistant),
            plain(&SYSTEM, Self::System),
        ];
        let generic = generic
            .into_iter()
            .flatten()
            .max_by_key(|(_, length)| *length);
        let named = |text: &str| {
            let (written, name) = NAMED
                .iter()
                .find(|(w, _)| text.strip_prefix(w).is_some_and(ends))?;
            let model = model(text.strip_prefix(written)?);
            Some((Self::Named(name), written.chars().count() + model))
        };
        let Some((word, length)) = generic else {
            return named(lower);
        };
        // `Agent (Claude 4.5)` has its name in brackets.
        let start = lower
            .char_indices()
            .nth(length)
            .map_or(lower.len(), |(at, _)| at);
        let rest = lower.get(start..).unwrap_or("");
        let inner = rest
            .trim_start()
            .strip_prefix('(')
            .filter(|_| word == Self::Assistant);
        let inside = inner.and_then(|inner| {
            let skipped = rest.chars().count() - inner.chars().count();
            named(inner).map(|(word, inside)| (word, length + skipped + inside))
        });
        Some(inside.unwrap_or((word, length)))
    }

    /// The assistant that a text is about.
    pub(super) fn mentioned(text: &str) -> Option<&'static str> {
        let lower = text.to_lowercase();
        let found = NAMED.iter().filter_map(|(written, name)| {
            let at = lower.match_indices(written).find(|(at, _)| {
                let before = lower.get(..*at).and_then(|b| b.chars().next_back());
                let after = lower
                    .get(at + written.len()..)
                    .and_then(|a| a.chars().next());
                let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !is_word(before) && !is_word(after)
            })?;
            Some((at.0, *name))
        });
        found.min().map(|(_, name)| name)
    }
}

/// How many characters of what follows a name say which model it is: ` 3.5 sonnet`, `-4o`, ` (gpt-4o)`.
fn model(rest: &str) -> usize {
    const BETWEEN: [char; 6] = [' ', '(', ')', '-', '[', ']'];
    let mut taken = 0;
    let mut seen = 0;
    for piece in rest.split_inclusive(BETWEEN) {
        let word = piece.trim_matches(BETWEEN);
        let has_letter = word.chars().any(char::is_alphabetic);
        let is_version = word.chars().next().is_some_and(|c| c.is_ascii_digit())
            && word.chars().all(|c| c.is_alphanumeric() || c == '.')
            && word.chars().count() <= 8;
        let known = MODELS.contains(&word) || NAMED.iter().any(|(w, _)| *w == word);
        // A bare year or day is the beginning of a time, not of a version.
        let is_date = !has_letter && !word.contains('.') && word.len() > 2;
        let behind = piece.trim_start_matches(BETWEEN).chars().count() - word.chars().count();
        seen += piece.chars().count();
        if word.is_empty() {
            continue;
        }
        if !(known || (is_version && !is_date)) {
            break;
        }
        // What separates it from what follows is left to that.
        taken = seen - behind;
    }
    taken
}
