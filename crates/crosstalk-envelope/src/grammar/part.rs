//! The parts of an envelope as spans of the text that was read.

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
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            start: narrow(start),
            end: narrow(end),
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
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) name: Span,
    pub(crate) value: Span,
}

/// Whether the text stands under `body:` or, as in a v1.0 reply, under `response:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// `body: |`
    Body,
    /// `response: |`
    Response,
}

impl BodyKind {
    /// The name of the line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Response => "response",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) kind: BodyKind,
    /// The name of the line that opens it.
    pub(crate) mark: Span,
    /// Its lines, indent and line ends included.
    pub(crate) content: Span,
}

/// A core header, in the order of the canonical form (CAN-001).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreHeader {
    /// Who speaks.
    User,
    /// The v1.0 conversation.
    Session,
    /// The id of the conversation.
    Thread,
    /// The id of the message that is answered.
    Parent,
    /// The id of this message.
    Message,
    /// What it is about.
    Context,
    /// What it wants.
    Intent,
}

impl CoreHeader {
    /// All of them, in canonical order.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Session,
        Self::Thread,
        Self::Parent,
        Self::Message,
        Self::Context,
        Self::Intent,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Session => "session",
            Self::Thread => "thread",
            Self::Parent => "parent",
            Self::Message => "message",
            Self::Context => "context",
            Self::Intent => "intent",
        }
    }

    /// The core header with this exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        match Reserved::of(name) {
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
    pub(crate) fn of(name: &str) -> Option<(Self, bool)> {
        // The length leaves at most three candidates.
        let candidates: &[Self] = match name.len() {
            3 => &[Self::Sig],
            4 => &[
                Self::Core(CoreHeader::User),
                Self::Meta,
                Self::Body(BodyKind::Body),
            ],
            6 => &[
                Self::Core(CoreHeader::Thread),
                Self::Core(CoreHeader::Parent),
                Self::Core(CoreHeader::Intent),
            ],
            7 => &[
                Self::Core(CoreHeader::Session),
                Self::Core(CoreHeader::Message),
                Self::Core(CoreHeader::Context),
            ],
            8 => &[Self::Body(BodyKind::Response)],
            _ => return None,
        };
        let found = candidates
            .iter()
            .find(|c| c.as_str().eq_ignore_ascii_case(name))?;
        Some((*found, found.as_str() == name))
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

/// Whether a byte may stand in the name of a header, a key or a namespace.
pub(crate) const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// Everything that the grammar found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    pub(crate) direction: Option<Direction>,
    pub(crate) entries: Vec<Entry>,
    /// One more than the index of each core header's entry; 0 where it is missing.
    core: [u16; 7],
    pub(crate) body: Option<Body>,
    pub(crate) sig: Option<Span>,
    pub(crate) end: Option<Span>,
}

impl Parts {
    pub(crate) fn with_room() -> Self {
        Self {
            entries: Vec::with_capacity(24),
            ..Self::default()
        }
    }

    pub(crate) fn core(&self, core: CoreHeader) -> Option<&Entry> {
        let index = self.core.get(core as usize).copied().unwrap_or(0);
        self.entries.get(usize::from(index).checked_sub(1)?)
    }

    pub(crate) fn set_core(&mut self, core: CoreHeader, index: usize) {
        if let Some(slot) = self.core.get_mut(core as usize) {
            *slot = u16::try_from(index + 1).unwrap_or(0);
        }
    }
}
