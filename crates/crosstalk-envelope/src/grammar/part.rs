//! The parts of an envelope as spans of the text that was read.

use crate::words;
use std::ops::Range;

/// A range of bytes, four bytes a side: envelopes and pastes stay far below 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, len: usize) -> Self {
        Self::between(start, start + len)
    }

    pub(crate) fn between(start: usize, end: usize) -> Self {
        // No text that is read has 4 GiB: see `limit`.
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }

    pub(crate) const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) const fn range(self) -> Range<usize> {
        self.start()..self.end()
    }

    pub(crate) fn bytes(self, text: &str) -> &[u8] {
        text.as_bytes().get(self.range()).unwrap_or(&[])
    }

    pub(crate) fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or("")
    }
}

/// The direction line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direction {
    pub(crate) sender: Span,
    pub(crate) receiver: Span,
    pub(crate) version: Span,
    pub(crate) line: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A header above the first META block.
    Header,
    /// A `meta:` line; its value is the namespace.
    Meta,
    /// A key of the META block above.
    Key,
}

/// A `Name: value` line of the head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadEntry {
    pub(crate) kind: EntryKind,
    pub(crate) name: Span,
    pub(crate) value: Span,
}

words! {
    /// Whether the text stands under `body:` or, as in a v1.0 reply, under `response:`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BodyKind {
        /// `body: |`
        Body = "body",
        /// `response: |`
        Response = "response",
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyPart {
    pub(crate) kind: BodyKind,
    /// The name of the line that opens it.
    pub(crate) mark: Span,
    /// Its lines, indent and line ends included.
    pub(crate) content: Span,
}

words! {
    /// A core header, in the order of the canonical form (CAN-001).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CoreHeader {
        /// The person or agent that speaks.
        User = "user",
        /// The v1.0 conversation.
        Session = "session",
        /// The id of the conversation.
        Thread = "thread",
        /// The id of the message that is answered.
        Parent = "parent",
        /// The id of this message.
        Message = "message",
        /// The topic.
        Context = "context",
        /// The intent.
        Intent = "intent",
    }
}

impl CoreHeader {
    /// The core header with this exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        match Reserved::named(name) {
            Some((Reserved::Core(core), true)) => Some(core),
            _ => None,
        }
    }
}

/// A name that the format itself uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reserved {
    Core(CoreHeader),
    Meta,
    Body(BodyKind),
    Sig,
}

impl Reserved {
    /// Which one a name is, and whether it is spelled exactly so.
    pub(crate) fn named(name: &str) -> Option<(Self, bool)> {
        if name.len() > 8 {
            None
        } else {
            Self::of_word(word(name.as_bytes()))
        }
    }

    /// All of them are letters, eight at most: the name is compared as one number.
    #[inline(always)]
    fn of_word(word: u64) -> Option<(Self, bool)> {
        // Bit 5 makes letters lower case; of the other bytes of a name only `_` changes, to DEL.
        let lower = word | (word & 0x4040_4040_4040_4040) >> 1;
        let found = match lower {
            USER => Self::Core(CoreHeader::User),
            SESSION => Self::Core(CoreHeader::Session),
            THREAD => Self::Core(CoreHeader::Thread),
            PARENT => Self::Core(CoreHeader::Parent),
            MESSAGE => Self::Core(CoreHeader::Message),
            CONTEXT => Self::Core(CoreHeader::Context),
            INTENT => Self::Core(CoreHeader::Intent),
            META => Self::Meta,
            BODY => Self::Body(BodyKind::Body),
            RESPONSE => Self::Body(BodyKind::Response),
            SIG => Self::Sig,
            _ => return None,
        };
        Some((found, word == lower))
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Core(core) => core.as_str(),
            Self::Meta => "meta",
            Self::Body(kind) => kind.as_str(),
            Self::Sig => "sig",
        }
    }
}

const USER: u64 = word(b"user");
const SESSION: u64 = word(b"session");
const THREAD: u64 = word(b"thread");
const PARENT: u64 = word(b"parent");
const MESSAGE: u64 = word(b"message");
const CONTEXT: u64 = word(b"context");
const INTENT: u64 = word(b"intent");
const META: u64 = word(b"meta");
const BODY: u64 = word(b"body");
const RESPONSE: u64 = word(b"response");
const SIG: u64 = word(b"sig");

/// At most eight bytes as a number, the first one lowest.
const fn word(mut name: &[u8]) -> u64 {
    let mut word = 0;
    while let [rest @ .., last] = name {
        word = word << 8 | *last as u64;
        name = rest;
    }
    word
}

/// The name at the start of a line, up to its first colon: its length, and which of the format's names it
/// is, if it is one of them, with whether it is spelled exactly so.
#[inline(always)]
pub(crate) fn name_of(line: &[u8]) -> Option<(usize, Option<(Reserved, bool)>)> {
    // Nearly all names end within eight bytes: look at them as one number.
    let first = line.first_chunk::<8>().map(|c| u64::from_le_bytes(*c));
    let (length, word) = match first.and_then(|word| Some((zero_byte(word ^ COLONS)?, word))) {
        Some((length, word)) => (length, word & !(u64::MAX << (8 * length))),
        None => far_colon(line, first)?,
    };
    let reserved = Reserved::of_word(word);
    (reserved.is_some() || is_name(line.get(..length)?)).then_some((length, reserved))
}

/// The colon of a longer name or a shorter line; the word is 0 for a name of more than eight bytes.
fn far_colon(line: &[u8], first: Option<u64>) -> Option<(usize, u64)> {
    if let Some(first) = first
        && let Some(second) = line.get(8..)?.first_chunk::<8>()
        && let Some(at) = zero_byte(u64::from_le_bytes(*second) ^ COLONS)
    {
        return Some((8 + at, if at == 0 { first } else { 0 }));
    }
    let length = line.iter().position(|b| *b == b':')?;
    Some((
        length,
        if length <= 8 {
            word(line.get(..length)?)
        } else {
            0
        },
    ))
}

/// Whether a text can be the name of a header or key.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_alphanumeric) && name.iter().all(|b| is_name_byte(*b))
}

/// PascalCase, words with hyphens, or `X-` in front: the style of a META key (LNT-002).
pub(crate) fn is_key_style(name: &str) -> bool {
    let starts_well = |word: &str| {
        let first = word.bytes().next();
        first.is_some_and(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    };
    name.starts_with("X-") || (!name.contains(['_', '.']) && name.split('-').all(starts_well))
}

const COLONS: u64 = 0x0101_0101_0101_0101 * b':' as u64;

/// The first byte of a word that is zero, counted from the lowest.
const fn zero_byte(word: u64) -> Option<usize> {
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    if zeros == 0 {
        None
    } else {
        Some(zeros.trailing_zeros() as usize / 8)
    }
}

/// Whether a byte is allowed in the name of a header, a key or a namespace.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    NAME_BYTES.get(usize::from(byte)).copied().unwrap_or(false)
}

const NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &mut [bool] = &mut table;
    let mut byte = 0_u8;
    while let [first, tail @ ..] = rest {
        *first = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        byte = byte.wrapping_add(1);
        rest = tail;
    }
    table
};

/// Everything that the grammar found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) direction: Option<Direction>,
    pub(crate) entries: Vec<HeadEntry>,
    /// One more than the index of each core header's entry; 0 where it is missing.
    core: [u16; 7],
    pub(crate) body: Option<BodyPart>,
    pub(crate) sig: Option<Span>,
    pub(crate) end: Option<Span>,
    /// There were more entries than are kept.
    pub(crate) overfull: bool,
}

impl Parts {
    pub(crate) fn with_room() -> Self {
        Self {
            entries: Vec::with_capacity(24),
            ..Self::default()
        }
    }

    pub(crate) fn core(&self, core: CoreHeader) -> Option<&HeadEntry> {
        let index = self.core.get(core as usize).copied().unwrap_or(0);
        self.entries.get(usize::from(index).checked_sub(1)?)
    }

    pub(crate) fn set_core(&mut self, core: CoreHeader, index: usize) {
        if let Some(slot) = self.core.get_mut(core as usize) {
            *slot = u16::try_from(index + 1).unwrap_or(0);
        }
    }
}
