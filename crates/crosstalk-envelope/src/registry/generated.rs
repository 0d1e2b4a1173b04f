// Generated from spec/registry/*.toml by `cargo xtask generate`. Change it there.

use super::{
    CardIssuer, MetaKey, Namespace, NationalNumber, Rule, Scheme, SchemeForm, SchemeKind, ValueKind,
};

/// A code of the error taxonomy (ERR-001).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// `E-ROUTE`: Routing failed, destination unreachable.
    Route,
    /// `E-CONSENT`: Consent denied or expired.
    Consent,
    /// `E-FORMAT`: Malformed envelope.
    Format,
    /// `E-TOO-LARGE`: Message exceeds size limits.
    TooLarge,
    /// `E-PERM`: Permission denied.
    Perm,
    /// `E-UNSUPPORTED`: Feature not supported.
    Unsupported,
    /// `E-TIMEOUT`: Response timeout.
    Timeout,
    /// `E-RATE`: Rate limit exceeded.
    Rate,
}

impl ErrorCode {
    /// All of them, in the order of the registry.
    pub const ALL: &'static [Self] = &[
        Self::Route,
        Self::Consent,
        Self::Format,
        Self::TooLarge,
        Self::Perm,
        Self::Unsupported,
        Self::Timeout,
        Self::Rate,
    ];

    /// The spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "E-ROUTE",
            Self::Consent => "E-CONSENT",
            Self::Format => "E-FORMAT",
            Self::TooLarge => "E-TOO-LARGE",
            Self::Perm => "E-PERM",
            Self::Unsupported => "E-UNSUPPORTED",
            Self::Timeout => "E-TIMEOUT",
            Self::Rate => "E-RATE",
        }
    }

    /// What it means, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Route => "Routing failed, destination unreachable",
            Self::Consent => "Consent denied or expired",
            Self::Format => "Malformed envelope",
            Self::TooLarge => "Message exceeds size limits",
            Self::Perm => "Permission denied",
            Self::Unsupported => "Feature not supported",
            Self::Timeout => "Response timeout",
            Self::Rate => "Rate limit exceeded",
        }
    }

    /// The one with this exact spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        match text {
            "E-ROUTE" => Some(Self::Route),
            "E-CONSENT" => Some(Self::Consent),
            "E-FORMAT" => Some(Self::Format),
            "E-TOO-LARGE" => Some(Self::TooLarge),
            "E-PERM" => Some(Self::Perm),
            "E-UNSUPPORTED" => Some(Self::Unsupported),
            "E-TIMEOUT" => Some(Self::Timeout),
            "E-RATE" => Some(Self::Rate),
            _ => None,
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ErrorCode {
    /// The HTTP status of the binding.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::Route => 404,
            Self::Consent => 403,
            Self::Format => 400,
            Self::TooLarge => 413,
            Self::Perm => 403,
            Self::Unsupported => 422,
            Self::Timeout => 504,
            Self::Rate => 429,
        }
    }

    /// The exit code of the command line.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Route => 10,
            Self::Consent => 11,
            Self::Format => 12,
            Self::TooLarge => 13,
            Self::Perm => 14,
            Self::Unsupported => 15,
            Self::Timeout => 16,
            Self::Rate => 17,
        }
    }
}

/// A core intent (INT-001).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// `REQUEST`: Ask for information, an action or a decision; expects RESPOND.
    Request,
    /// `RESPOND`: Answer a REQUEST or a POLL; references its parent.
    Respond,
    /// `ESCALATE`: Ask for a person, with the reason and the state of the conversation.
    Escalate,
    /// `HANDOFF`: Transfer the conversation to another agent or person.
    Handoff,
    /// `POLL`: Ask several recipients; expects one RESPOND from each.
    Poll,
    /// `ACK`: Acknowledge receipt of the parent.
    Ack,
    /// `NACK`: Refuse or reject the parent.
    Nack,
    /// `ERROR`: Report a failure with a code of the taxonomy.
    Error,
    /// `BROADCAST`: Announce something; no answer is expected.
    Broadcast,
    /// `REVOKE`: Revoke a consent, a key or a permission; must be signed.
    Revoke,
    /// `CLOSE`: End the thread or the session.
    Close,
}

impl Intent {
    /// All of them, in the order of the registry.
    pub const ALL: &'static [Self] = &[
        Self::Request,
        Self::Respond,
        Self::Escalate,
        Self::Handoff,
        Self::Poll,
        Self::Ack,
        Self::Nack,
        Self::Error,
        Self::Broadcast,
        Self::Revoke,
        Self::Close,
    ];

    /// The spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "REQUEST",
            Self::Respond => "RESPOND",
            Self::Escalate => "ESCALATE",
            Self::Handoff => "HANDOFF",
            Self::Poll => "POLL",
            Self::Ack => "ACK",
            Self::Nack => "NACK",
            Self::Error => "ERROR",
            Self::Broadcast => "BROADCAST",
            Self::Revoke => "REVOKE",
            Self::Close => "CLOSE",
        }
    }

    /// What it means, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Request => "Ask for information, an action or a decision; expects RESPOND",
            Self::Respond => "Answer a REQUEST or a POLL; references its parent",
            Self::Escalate => "Ask for a person, with the reason and the state of the conversation",
            Self::Handoff => "Transfer the conversation to another agent or person",
            Self::Poll => "Ask several recipients; expects one RESPOND from each",
            Self::Ack => "Acknowledge receipt of the parent",
            Self::Nack => "Refuse or reject the parent",
            Self::Error => "Report a failure with a code of the taxonomy",
            Self::Broadcast => "Announce something; no answer is expected",
            Self::Revoke => "Revoke a consent, a key or a permission; must be signed",
            Self::Close => "End the thread or the session",
        }
    }

    /// The one with this exact spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        match text {
            "REQUEST" => Some(Self::Request),
            "RESPOND" => Some(Self::Respond),
            "ESCALATE" => Some(Self::Escalate),
            "HANDOFF" => Some(Self::Handoff),
            "POLL" => Some(Self::Poll),
            "ACK" => Some(Self::Ack),
            "NACK" => Some(Self::Nack),
            "ERROR" => Some(Self::Error),
            "BROADCAST" => Some(Self::Broadcast),
            "REVOKE" => Some(Self::Revoke),
            "CLOSE" => Some(Self::Close),
            _ => None,
        }
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Intent {
    /// Whether its sender waits for an answer.
    pub const fn asks(self) -> bool {
        matches!(
            self,
            Self::Request | Self::Escalate | Self::Handoff | Self::Poll
        )
    }

    /// Whether it answers another message.
    pub const fn answers(self) -> bool {
        matches!(self, Self::Respond | Self::Ack | Self::Nack | Self::Error)
    }

    /// Whether it has to name the message that it answers, once it has an id of its own (INT-010).
    pub const fn needs_parent(self) -> bool {
        matches!(self, Self::Respond | Self::Ack | Self::Nack)
    }
}

/// Public keys that vouch for nobody, and why (MET-023).
pub static DENIED_KEYS: &[(&str, &str)] = &[
    (
        "ed25519:pk=5NCXBC/h80o6gPLqLUoxutAE4TmAn2e4tVVfp08HeKA=",
        "published with the test vectors of an earlier draft",
    ),
    (
        "ed25519:pk=T9CZzNR9eJPf6ewkQU7LDZtUICMqrTDZHEZb4zy+ZcQ=",
        "published with its seed, a0 to bf, so that refusing it can be tested",
    ),
];

/// The legacy intents and the core ones that they mean (INT-002).
pub static LEGACY_INTENTS: &[(&str, Intent)] = &[
    ("QUESTION", Intent::Request),
    ("ANSWER", Intent::Respond),
    ("STATUS", Intent::Broadcast),
    ("PATCH", Intent::Request),
    ("NOTE", Intent::Broadcast),
];

/// The address schemes of the registry.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "human",
        form: SchemeForm::Authority,
        kind: SchemeKind::Person,
        summary: "A person, a role or a queue of people",
    },
    Scheme {
        name: "claude",
        form: SchemeForm::Authority,
        kind: SchemeKind::Assistant,
        summary: "A Claude session, workspace or project",
    },
    Scheme {
        name: "chatgpt",
        form: SchemeForm::Authority,
        kind: SchemeKind::Assistant,
        summary: "A ChatGPT thread",
    },
    Scheme {
        name: "gemini",
        form: SchemeForm::Authority,
        kind: SchemeKind::Assistant,
        summary: "A Gemini conversation",
    },
    Scheme {
        name: "agent",
        form: SchemeForm::Authority,
        kind: SchemeKind::Assistant,
        summary: "A program that answers by itself, whatever model is behind it: agent://host/name",
    },
    Scheme {
        name: "email",
        form: SchemeForm::Opaque,
        kind: SchemeKind::Mail,
        summary: "A mail address",
    },
    Scheme {
        name: "tel",
        form: SchemeForm::Opaque,
        kind: SchemeKind::Phone,
        summary: "A phone number",
    },
    Scheme {
        name: "mcp",
        form: SchemeForm::Authority,
        kind: SchemeKind::Tool,
        summary: "A tool of a Model Context Protocol server: mcp://tool@host",
    },
    Scheme {
        name: "matrix",
        form: SchemeForm::Authority,
        kind: SchemeKind::Room,
        summary: "A Matrix room",
    },
    Scheme {
        name: "xmpp",
        form: SchemeForm::Authority,
        kind: SchemeKind::Room,
        summary: "An XMPP user or room",
    },
    Scheme {
        name: "slack",
        form: SchemeForm::Authority,
        kind: SchemeKind::Room,
        summary: "A Slack channel",
    },
    Scheme {
        name: "discord",
        form: SchemeForm::Authority,
        kind: SchemeKind::Room,
        summary: "A Discord channel",
    },
];

/// The META namespaces of the registry.
pub static NAMESPACES: &[Namespace] = &[
    Namespace {
        name: "routing",
        summary: "Routing hints and delivery preferences",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "X-Route",
                kind: ValueKind::Route,
                values: &[],
                hop: true,
            },
            MetaKey {
                name: "X-Reply-To",
                kind: ValueKind::Address,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "X-Priority",
                kind: ValueKind::Word,
                values: &["high", "normal", "low"],
                hop: false,
            },
            MetaKey {
                name: "X-Delivery",
                kind: ValueKind::Word,
                values: &[
                    "copy_paste",
                    "http",
                    "email",
                    "file",
                    "inbox",
                    "exec",
                    "relay",
                    "sms",
                    "mcp",
                ],
                hop: false,
            },
            MetaKey {
                name: "X-Policy",
                kind: ValueKind::Words,
                values: &["no_third_party", "ok_to_cache", "pii_redacted"],
                hop: false,
            },
            MetaKey {
                name: "X-Capabilities-Required",
                kind: ValueKind::List,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "X-Deadline",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Targets",
                kind: ValueKind::Addresses,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "privacy",
        summary: "Consent, personal data, compliance",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "PII",
                kind: ValueKind::Word,
                values: &["present", "redacted", "none"],
                hop: false,
            },
            MetaKey {
                name: "Consent",
                kind: ValueKind::Consent,
                values: &[
                    "explicit_yes",
                    "explicit_no",
                    "implicit",
                    "transferred_with_approval",
                ],
                hop: false,
            },
            MetaKey {
                name: "Scope",
                kind: ValueKind::Words,
                values: &[
                    "general",
                    "pii",
                    "medical",
                    "phi",
                    "financial",
                    "biometric",
                    "location",
                    "custom",
                ],
                hop: false,
            },
            MetaKey {
                name: "Expires",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Jurisdiction",
                kind: ValueKind::List,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Consent-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Original-Consent-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Redacted-Fields",
                kind: ValueKind::List,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "attachments",
        summary: "Files beside the message, or embedded in it",
        repeats: false,
        hop: false,
        numbered: Some(("A", ValueKind::Attachment)),
        keys: &[],
    },
    Namespace {
        name: "error",
        summary: "The code and reason of an ERROR",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Code",
                kind: ValueKind::ErrorCode,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Original-Intent",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Rule",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Line",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Column",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Retry-After",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "audit",
        summary: "One hop of the way the message took",
        repeats: true,
        hop: true,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Hop",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Received-At",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Received-By",
                kind: ValueKind::Address,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Previous-Hop",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Chain",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Previous-Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Hop-Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Hop-Signature",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "safety",
        summary: "Content warnings and allowed use",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Content-Warning",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Allowed-Use",
                kind: ValueKind::List,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "email",
        summary: "What a mail gateway adds",
        repeats: true,
        hop: true,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Message-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "In-Reply-To",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "References",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Subject",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Date",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "From",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Authentication",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "payment",
        summary: "Payment and billing",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Amount",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Currency",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Invoice",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Due",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "poll",
        summary: "What a POLL asks and how it is counted",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Type",
                kind: ValueKind::Word,
                values: &[
                    "plurality",
                    "majority",
                    "consensus",
                    "approval",
                    "ranked",
                    "score",
                    "open",
                ],
                hop: false,
            },
            MetaKey {
                name: "Options",
                kind: ValueKind::Options,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Quorum",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Deadline",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Secrecy",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Ties",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Range",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "vote",
        summary: "A ballot, in the RESPOND to a POLL",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Choice",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Abstain",
                kind: ValueKind::Word,
                values: &["yes", "no", "true", "false"],
                hop: false,
            },
            MetaKey {
                name: "Confidence",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "For",
                kind: ValueKind::Address,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Corrects",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "collation",
        summary: "What came out of a POLL, in the RESPOND to who asked",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Poll",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "From",
                kind: ValueKind::Address,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "At",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Outcome",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Quorum",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Answers",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Names",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "revocation",
        summary: "What a REVOKE revokes",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Consent-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Key-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Public-Key",
                kind: ValueKind::Key,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Permission",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Effective",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "withdrawal",
        summary: "What a REVOKE took with it",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Consents",
                kind: ValueKind::List,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Erased",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Cancelled",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Passed-On",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "At",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "refusal",
        summary: "Why a NACK refuses, or a person refused an approval",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "closure",
        summary: "How a CLOSE ends the conversation",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Outcome",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "escalation",
        summary: "Why a person is needed",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Reason",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Urgency",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "key",
        summary: "A public key, at first contact or at rotation",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Key-ID",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Public-Key",
                kind: ValueKind::Key,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Replaces",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Replaces-Key",
                kind: ValueKind::Key,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Grace-Until",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Proof",
                kind: ValueKind::Base64,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "integrity",
        summary: "What the body was when the message was written",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Signed-At",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Words",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Lines",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Bytes",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Marks",
                kind: ValueKind::Base64,
                values: &[],
                hop: false,
            },
        ],
    },
    Namespace {
        name: "receipt",
        summary: "Where and when a relay took a message",
        repeats: false,
        hop: false,
        numbered: None,
        keys: &[
            MetaKey {
                name: "Digest",
                kind: ValueKind::Digest,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Index",
                kind: ValueKind::Integer,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Chain",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "State",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Diagnostic",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Received-At",
                kind: ValueKind::Time,
                values: &[],
                hop: false,
            },
            MetaKey {
                name: "Received-By",
                kind: ValueKind::Text,
                values: &[],
                hop: false,
            },
        ],
    },
];

/// How urgent a message is, the most urgent first (MET-010).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// `high`
    High,
    /// `normal`
    Normal,
    /// `low`
    Low,
}

impl Priority {
    /// All of them, in the order of the registry.
    pub const ALL: [Self; 3] = [Self::High, Self::Normal, Self::Low];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }

    /// The one with this exact word.
    pub fn from_wire(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.as_str() == word)
    }
}

/// What a message says about personal data in it, from the worst to the best (MET-011).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pii {
    /// `present`
    Present,
    /// `redacted`
    Redacted,
    /// `none`
    None,
}

impl Pii {
    /// All of them, in the order of the registry.
    pub const ALL: [Self; 3] = [Self::Present, Self::Redacted, Self::None];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Redacted => "redacted",
            Self::None => "none",
        }
    }

    /// The one with this exact word.
    pub fn from_wire(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|w| w.as_str() == word)
    }
}

/// A kind of personal data that a redaction takes out (RED-001), the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PiiKind {
    /// `iban`: An account number with a country and a check, as in ISO 13616.
    Iban,
    /// `card`: The number of a payment card; its last four digits are kept.
    Card,
    /// `nin`: A national identification, insurance or tax number of a person.
    Nin,
    /// `email`: A mail address.
    Email,
    /// `ip`: An IPv4 or IPv6 address.
    Ip,
    /// `phone`: A phone number.
    Phone,
    /// `name`: A name from the list that the caller gives.
    Name,
}

impl PiiKind {
    /// All of them, in the order of the registry.
    pub const ALL: &'static [Self] = &[
        Self::Iban,
        Self::Card,
        Self::Nin,
        Self::Email,
        Self::Ip,
        Self::Phone,
        Self::Name,
    ];

    /// The spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Iban => "iban",
            Self::Card => "card",
            Self::Nin => "nin",
            Self::Email => "email",
            Self::Ip => "ip",
            Self::Phone => "phone",
            Self::Name => "name",
        }
    }

    /// What it means, in a few words.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Iban => "An account number with a country and a check, as in ISO 13616",
            Self::Card => "The number of a payment card; its last four digits are kept",
            Self::Nin => "A national identification, insurance or tax number of a person",
            Self::Email => "A mail address",
            Self::Ip => "An IPv4 or IPv6 address",
            Self::Phone => "A phone number",
            Self::Name => "A name from the list that the caller gives",
        }
    }

    /// The one with this exact spelling.
    pub fn from_wire(text: &str) -> Option<Self> {
        match text {
            "iban" => Some(Self::Iban),
            "card" => Some(Self::Card),
            "nin" => Some(Self::Nin),
            "email" => Some(Self::Email),
            "ip" => Some(Self::Ip),
            "phone" => Some(Self::Phone),
            "name" => Some(Self::Name),
            _ => None,
        }
    }
}

impl std::fmt::Display for PiiKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PiiKind {
    /// Its replacement; each `#` is a digit that is kept.
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Iban => "[IBAN]",
            Self::Card => "[CARD-XXXX-####]",
            Self::Nin => "[NIN]",
            Self::Email => "[EMAIL]",
            Self::Ip => "[IP]",
            Self::Phone => "[PHONE]",
            Self::Name => "[NAME]",
        }
    }
}

/// The META namespaces that no redaction changes (RED-022).
pub static KEPT_NAMESPACES: &[&str] = &["audit", "integrity", "key"];

/// The META keys of free text that no redaction changes (RED-022).
pub static KEPT_KEYS: &[&str] = &[
    "Consent-ID",
    "Original-Consent-ID",
    "Key-ID",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Date",
    "Original-Intent",
    "Rule",
    "Redacted-Fields",
];

/// Words directly before a number that make it a phone number (RED-011).
pub static PHONE_LABELS: &[&str] = &[
    "tel",
    "phone",
    "telephone",
    "mobile",
    "cell",
    "fax",
    "telefon",
    "telefax",
    "handy",
    "mobil",
    "mobiltelefon",
    "rufnummer",
    "whatsapp",
    "sms",
    "tlf",
    "puhelin",
    "telefono",
    "móvil",
    "movil",
    "celular",
    "téléphone",
    "portable",
    "telefoon",
    "telefone",
];

/// Words before a dotted quad that make it a version or a section (RED-014).
pub static VERSION_WORDS: &[&str] = &[
    "v", "ver", "version", "versions", "release", "rel", "build", "firmware", "driver", "revision",
    "rev", "section", "chapter", "clause", "kernel", "patch", "update",
];

/// Each country code with the length of its account numbers (RED-013).
pub static IBAN_LENGTHS: &[&str] = &[
    "AD24", "AE23", "AL28", "AT20", "AZ28", "BA20", "BE16", "BG22", "BH22", "BI27", "BR29", "BY28",
    "CH21", "CR22", "CY28", "CZ24", "DE22", "DJ27", "DK18", "DO28", "EE20", "EG29", "ES24", "FI18",
    "FK18", "FO18", "FR27", "GB22", "GE22", "GI23", "GL18", "GR27", "GT28", "HN28", "HR21", "HU28",
    "IE22", "IL23", "IQ23", "IS26", "IT27", "JO30", "KW30", "KZ20", "LB28", "LC32", "LI21", "LT20",
    "LU20", "LV21", "LY25", "MC27", "MD24", "ME22", "MK19", "MN20", "MR27", "MT31", "MU30", "NI28",
    "NL18", "NO15", "OM23", "PK24", "PL28", "PS29", "PT25", "QA29", "RO24", "RS22", "RU33", "SA24",
    "SC31", "SD18", "SE24", "SI19", "SK24", "SM27", "SO23", "ST25", "SV28", "TL23", "TN24", "TR26",
    "UA29", "VA22", "VG24", "XK20", "YE30",
];

/// How many symbols before a number a label may reach (RED-005).
pub const LABEL_BEFORE: usize = 40;

/// How many symbols behind a number a label may reach (RED-005).
pub const LABEL_BEHIND: usize = 24;

/// The issuers of payment cards (RED-012).
pub static CARD_ISSUERS: &[CardIssuer] = &[
    CardIssuer {
        name: "American Express",
        first: 34,
        last: 34,
        lengths: 15..=15,
    },
    CardIssuer {
        name: "American Express",
        first: 37,
        last: 37,
        lengths: 15..=15,
    },
    CardIssuer {
        name: "Diners Club",
        first: 300,
        last: 305,
        lengths: 14..=19,
    },
    CardIssuer {
        name: "Diners Club",
        first: 36,
        last: 36,
        lengths: 14..=19,
    },
    CardIssuer {
        name: "Diners Club",
        first: 38,
        last: 39,
        lengths: 14..=19,
    },
    CardIssuer {
        name: "JCB",
        first: 3528,
        last: 3589,
        lengths: 16..=19,
    },
    CardIssuer {
        name: "Visa",
        first: 4,
        last: 4,
        lengths: 13..=13,
    },
    CardIssuer {
        name: "Visa",
        first: 4,
        last: 4,
        lengths: 16..=16,
    },
    CardIssuer {
        name: "Visa",
        first: 4,
        last: 4,
        lengths: 19..=19,
    },
    CardIssuer {
        name: "Mastercard",
        first: 51,
        last: 55,
        lengths: 16..=16,
    },
    CardIssuer {
        name: "Mastercard",
        first: 2221,
        last: 2720,
        lengths: 16..=16,
    },
    CardIssuer {
        name: "Mir",
        first: 2200,
        last: 2204,
        lengths: 16..=19,
    },
    CardIssuer {
        name: "Maestro",
        first: 50,
        last: 50,
        lengths: 13..=19,
    },
    CardIssuer {
        name: "Maestro",
        first: 56,
        last: 58,
        lengths: 13..=19,
    },
    CardIssuer {
        name: "Discover, UnionPay, Maestro, RuPay",
        first: 60,
        last: 69,
        lengths: 13..=19,
    },
    CardIssuer {
        name: "RuPay",
        first: 81,
        last: 82,
        lengths: 16..=16,
    },
    CardIssuer {
        name: "Troy",
        first: 9792,
        last: 9792,
        lengths: 16..=16,
    },
];

/// How the check digits of a national number are computed (RED-015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NationalCheck {
    /// US: SSN, ITIN.
    UnitedStates,
    /// GB: National Insurance number.
    Britain,
    /// DE: Steuer-ID.
    Germany,
    /// FR: NIR.
    France,
    /// ES: DNI.
    Spain,
    /// ES: NIE.
    SpainForeign,
    /// IT: codice fiscale.
    Italy,
    /// NL: BSN.
    Netherlands,
    /// SE: personnummer, samordningsnummer.
    Sweden,
    /// FI: henkilötunnus.
    Finland,
    /// DK: CPR.
    Denmark,
    /// NO: fødselsnummer.
    Norway,
    /// PL: PESEL.
    Poland,
    /// CH: AHV.
    Switzerland,
    /// BR: CPF.
    Brazil,
    /// IN: Aadhaar.
    India,
    /// CA: SIN.
    Canada,
    /// BE: rijksregisternummer.
    Belgium,
    /// CZ, SK: rodné číslo.
    Czechia,
    /// RO: CNP.
    Romania,
    /// TR: kimlik numarası.
    Turkey,
    /// CN: resident identity number.
    China,
    /// KR: resident registration number.
    Korea,
    /// SG: NRIC, FIN.
    Singapore,
    /// ZA: ID number.
    SouthAfrica,
    /// AU: TFN.
    Australia,
    /// IE: PPS.
    Ireland,
    /// PT: NIF.
    Portugal,
    /// AT: SVNR.
    Austria,
    /// HR: OIB.
    Croatia,
}

/// The national numbers of people (RED-015).
pub static NATIONAL_NUMBERS: &[NationalNumber] = &[
    NationalNumber {
        check: NationalCheck::UnitedStates,
        weights: &[],
        alphabets: &[],
        forms: &["ddd-dd-dddd"],
        labelled: &["ddd dd dddd", "ddddddddd"],
        labels: &["ssn", "social security", "itin", "taxpayer"],
    },
    NationalNumber {
        check: NationalCheck::Britain,
        weights: &[],
        alphabets: &[],
        forms: &["uu_dd_dd_dd_u"],
        labelled: &["ll_dd_dd_dd_l"],
        labels: &["nino", "national insurance", "ni number", "ni no"],
    },
    NationalNumber {
        check: NationalCheck::Germany,
        weights: &[],
        alphabets: &[],
        forms: &["dd ddd ddd ddd"],
        labelled: &["ddddddddddd"],
        labels: &[
            "steuer-id",
            "steuerid",
            "steuer-idnr",
            "steuer-identifikationsnummer",
            "steueridentifikationsnummer",
            "idnr",
            "id-nr",
            "tax id",
            "tin",
        ],
    },
    NationalNumber {
        check: NationalCheck::France,
        weights: &[],
        alphabets: &[],
        forms: &["d_dd_dd_aa_ddd_ddd_dd"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Spain,
        weights: &[],
        alphabets: &["TRWAGMYFPDXBNJZSQVHLCKE"],
        forms: &["dddddddd_u"],
        labelled: &["dddddddd_l"],
        labels: &["dni", "nif"],
    },
    NationalNumber {
        check: NationalCheck::SpainForeign,
        weights: &[],
        alphabets: &["TRWAGMYFPDXBNJZSQVHLCKE"],
        forms: &["u_ddddddd_u"],
        labelled: &["l_ddddddd_l"],
        labels: &["nie"],
    },
    NationalNumber {
        check: NationalCheck::Italy,
        weights: &[&[
            1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25,
            24, 23,
        ]],
        alphabets: &["ABCDEFGHIJKLMNOPQRSTUVWXYZ", "LMNPQRSTUV", "ABCDEHLMPRST"],
        forms: &["lll_lll_aalaa_laaal"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Netherlands,
        weights: &[&[9, 8, 7, 6, 5, 4, 3, 2]],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddd", "dddd.dd.ddd"],
        labels: &["bsn", "burgerservicenummer", "sofinummer", "sofi"],
    },
    NationalNumber {
        check: NationalCheck::Sweden,
        weights: &[],
        alphabets: &[],
        forms: &["dddddd-dddd", "dddddd+dddd", "dddddddd-dddd"],
        labelled: &["dddddddddd", "dddddddddddd"],
        labels: &["personnummer", "samordningsnummer", "personnr", "pnr"],
    },
    NationalNumber {
        check: NationalCheck::Finland,
        weights: &[],
        alphabets: &["0123456789ABCDEFHJKLMNPRSTUVWXY"],
        forms: &["ddddddcddda"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Denmark,
        weights: &[],
        alphabets: &[],
        forms: &[],
        labelled: &["dddddd-dddd", "dddddddddd"],
        labels: &["cpr", "cpr-nummer", "cpr-nr", "personnummer"],
    },
    NationalNumber {
        check: NationalCheck::Norway,
        weights: &[
            &[3, 7, 6, 1, 8, 9, 4, 5, 2, 1],
            &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1],
        ],
        alphabets: &[],
        forms: &["dddddd_ddddd"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Poland,
        weights: &[&[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddddd"],
        labels: &["pesel"],
    },
    NationalNumber {
        check: NationalCheck::Switzerland,
        weights: &[&[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]],
        alphabets: &[],
        forms: &["ddd_dddd_dddd_dd"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Brazil,
        weights: &[
            &[10, 9, 8, 7, 6, 5, 4, 3, 2],
            &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2],
        ],
        alphabets: &[],
        forms: &["ddd.ddd.ddd-dd"],
        labelled: &["ddddddddddd"],
        labels: &["cpf"],
    },
    NationalNumber {
        check: NationalCheck::India,
        weights: &[],
        alphabets: &[],
        forms: &[],
        labelled: &["dddd_dddd_dddd"],
        labels: &["aadhaar", "aadhar", "uidai"],
    },
    NationalNumber {
        check: NationalCheck::Canada,
        weights: &[],
        alphabets: &[],
        forms: &[],
        labelled: &["ddd_ddd_ddd"],
        labels: &["social insurance", "sin:", "sin number", "sin no", "sin #"],
    },
    NationalNumber {
        check: NationalCheck::Belgium,
        weights: &[],
        alphabets: &[],
        forms: &["dd.dd.dd-ddd.dd"],
        labelled: &["ddddddddddd"],
        labels: &[
            "rijksregister",
            "rijksregisternummer",
            "numéro national",
            "nrn",
            "insz",
            "niss",
        ],
    },
    NationalNumber {
        check: NationalCheck::Czechia,
        weights: &[],
        alphabets: &[],
        forms: &["dddddd/dddd"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Romania,
        weights: &[&[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddddddd"],
        labels: &["cnp"],
    },
    NationalNumber {
        check: NationalCheck::Turkey,
        weights: &[
            &[1, 0, 1, 0, 1, 0, 1, 0, 1],
            &[0, 1, 0, 1, 0, 1, 0, 1],
            &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        ],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddddd"],
        labels: &["tckn", "kimlik", "tc no", "tc kimlik"],
    },
    NationalNumber {
        check: NationalCheck::China,
        weights: &[&[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]],
        alphabets: &["10X98765432"],
        forms: &["ddddddddddddddddda"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Korea,
        weights: &[],
        alphabets: &[],
        forms: &["dddddd-ddddddd"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::Singapore,
        weights: &[&[2, 7, 6, 5, 4, 3, 2]],
        alphabets: &["JZIHGFEDCBA", "XWUTRQPNMLK", "XWUTRQPNJLK"],
        forms: &["udddddddu"],
        labelled: &[],
        labels: &[],
    },
    NationalNumber {
        check: NationalCheck::SouthAfrica,
        weights: &[],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddddddd"],
        labels: &["id number", "rsa id", "sa id", "identity number"],
    },
    NationalNumber {
        check: NationalCheck::Australia,
        weights: &[&[1, 4, 3, 7, 5, 8, 6, 9, 10]],
        alphabets: &[],
        forms: &[],
        labelled: &["ddd_ddd_ddd"],
        labels: &["tfn", "tax file"],
    },
    NationalNumber {
        check: NationalCheck::Ireland,
        weights: &[&[8, 7, 6, 5, 4, 3, 2]],
        alphabets: &["WABCDEFGHIJKLMNOPQRSTUV"],
        forms: &[],
        labelled: &["dddddddl", "dddddddll"],
        labels: &["pps", "ppsn"],
    },
    NationalNumber {
        check: NationalCheck::Portugal,
        weights: &[&[9, 8, 7, 6, 5, 4, 3, 2]],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddd", "ddd_ddd_ddd"],
        labels: &["nif", "contribuinte"],
    },
    NationalNumber {
        check: NationalCheck::Austria,
        weights: &[&[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]],
        alphabets: &[],
        forms: &[],
        labelled: &["dddd_dddddd"],
        labels: &["svnr", "sv-nummer", "sozialversicherungsnummer"],
    },
    NationalNumber {
        check: NationalCheck::Croatia,
        weights: &[],
        alphabets: &[],
        forms: &[],
        labelled: &["ddddddddddd"],
        labels: &["oib"],
    },
];

/// The numbered rules of `spec/`. Those that code refers to have a constant.
pub mod rule {
    use super::{ErrorCode, Rule};

    /// All of them, in the order of the registry.
    pub static ALL: &[Rule] = &TABLE;

    static TABLE: [Rule; 400] = [
        Rule { id: "ENV-001", code: Some(ErrorCode::Format), title: "An envelope is UTF-8; a reader drops one leading byte order mark", help: "save the text as UTF-8", drops: false },
        Rule { id: "ENV-002", code: None, title: "A reader splits at LF or CRLF, normalizes each line to NFC and removes spaces and tabs at its end", help: "", drops: false },
        Rule { id: "ENV-003", code: Some(ErrorCode::Format), title: "An envelope has no control characters except TAB, LF and CRLF, no DEL, no U+2028, no U+2029", help: "remove the character; a line ends with LF or CRLF", drops: false },
        Rule { id: "ENV-004", code: None, title: "A reader skips blank lines outside the body", help: "", drops: false },
        Rule { id: "ENV-010", code: Some(ErrorCode::Format), title: "The first line is [[SENDER→RECEIVER v1]]", help: "begin with a line such as [[CLAUDE→CHATGPT v1]]", drops: false },
        Rule { id: "ENV-011", code: Some(ErrorCode::Format), title: "The direction line has exactly one arrow, → or ->", help: "write one arrow between sender and receiver", drops: false },
        Rule { id: "ENV-012", code: Some(ErrorCode::Format), title: "Sender and receiver are not empty and begin with a visible character", help: "name both sides: [[CLAUDE→CHATGPT v1]]", drops: false },
        Rule { id: "ENV-013", code: Some(ErrorCode::Unsupported), title: "The version is v1; no other version is supported", help: "this program reads v1 (v1.0 and v1.1 envelopes both say v1)", drops: false },
        Rule { id: "ENV-020", code: Some(ErrorCode::Format), title: "Each line of the head is Name: value, with the name at column 0", help: "write Name: value at the start of the line, or indent it by two spaces below body: |", drops: false },
        Rule { id: "ENV-021", code: Some(ErrorCode::Format), title: "A reserved name is written in lower case", help: "write the name in lower case", drops: false },
        Rule { id: "ENV-022", code: Some(ErrorCode::Format), title: "A header occurs once, without regard to case", help: "keep one of the two lines", drops: false },
        Rule { id: "ENV-023", code: Some(ErrorCode::Format), title: "A core header that is present has a value", help: "give it a value or remove the line", drops: false },
        Rule { id: "ENV-024", code: Some(ErrorCode::Format), title: "An envelope has a session or a thread", help: "add a line such as session: 2025-10-09T16Z abc123", drops: false },
        Rule { id: "ENV-025", code: Some(ErrorCode::Format), title: "An envelope has user, context and intent, except a v1.0 response", help: "add the missing header", drops: false },
        Rule { id: "ENV-026", code: None, title: "A reader keeps an unknown header in its place", help: "", drops: false },
        Rule { id: "ENV-027", code: Some(ErrorCode::Format), title: "No core header follows the first META block", help: "move the header above the first meta: line", drops: false },
        Rule { id: "ENV-028", code: None, title: "A session is a time, to the hour or finer, and a word; a reader keeps other spellings", help: "write it as session: 2025-10-09T16Z abc123", drops: false },
        Rule { id: "ENV-030", code: Some(ErrorCode::Format), title: "A META block opens with meta: and a lower-case namespace", help: "write meta: routing, or meta: custom-yourorg for your own", drops: false },
        Rule { id: "ENV-031", code: Some(ErrorCode::Format), title: "A key occurs once in its block, without regard to case", help: "keep one of the two lines", drops: false },
        Rule { id: "ENV-032", code: Some(ErrorCode::Format), title: "A namespace occurs once; audit and email may repeat", help: "put the keys into one block", drops: false },
        Rule { id: "ENV-033", code: None, title: "Readers and hops keep unknown namespaces and keys byte for byte", help: "", drops: false },
        Rule { id: "ENV-034", code: None, title: "A reader compares keys with regard to case", help: "", drops: false },
        Rule { id: "ENV-040", code: Some(ErrorCode::Format), title: "The body opens with body: or response: and the value |", help: "write body: | and the text below it, each line indented by two spaces", drops: false },
        Rule { id: "ENV-041", code: Some(ErrorCode::Format), title: "An envelope has a body", help: "add body: | after the headers", drops: false },
        Rule { id: "ENV-042", code: Some(ErrorCode::Format), title: "A body line is empty or starts with two spaces or a tab", help: "indent the line by two spaces", drops: false },
        Rule { id: "ENV-043", code: None, title: "A reader removes the indent of the body lines and the empty lines at the end", help: "", drops: false },
        Rule { id: "ENV-050", code: Some(ErrorCode::Format), title: "One sig: line follows the body; a v1.0 response may have none", help: "add sig: none below the body", drops: false },
        Rule { id: "ENV-051", code: Some(ErrorCode::Format), title: "The value of sig: is none or algorithm:pkid=key-id;sig=base64", help: "write sig: none, or sign the message again", drops: false },
        Rule { id: "ENV-052", code: Some(ErrorCode::Format), title: "An envelope ends with [[END]]", help: "the text was probably cut off: copy it again, to the line [[END]]", drops: false },
        Rule { id: "ENV-053", code: Some(ErrorCode::Format), title: "Nothing stands between sig: and [[END]], and nothing follows [[END]]", help: "send one envelope at a time and nothing around it", drops: false },
        Rule { id: "ENV-060", code: Some(ErrorCode::TooLarge), title: "An envelope has at most 1 MiB, before and after NFC", help: "shorten the body, or attach the text as a file", drops: false },
        Rule { id: "ENV-061", code: Some(ErrorCode::TooLarge), title: "A line has at most 64 KiB", help: "break the line", drops: false },
        Rule { id: "ENV-062", code: Some(ErrorCode::TooLarge), title: "The head has at most 256 headers, META lines and keys", help: "send fewer headers and keys", drops: false },
        Rule { id: "ENV-063", code: Some(ErrorCode::TooLarge), title: "A paste or file has at most 64 MiB and 65,536 envelopes", help: "split the text into several files", drops: false },
        Rule { id: "ENV-080", code: None, title: "A hop changes no byte of an envelope except the parts that it adds", help: "", drops: false },
        Rule { id: "ENV-090", code: None, title: "A reader accepts a v1.0 response with response: |", help: "", drops: false },
        Rule { id: "ENV-091", code: None, title: "A receiver stores generated thread and message ids beside the envelope, never in it", help: "", drops: false },
        Rule { id: "ENV-092", code: None, title: "A writer writes an envelope so that a v1.0 reader finds the core", help: "", drops: false },
        Rule { id: "ENV-093", code: None, title: "A program migrates a v1.0 envelope without loss", help: "", drops: false },
        Rule { id: "INT-001", code: None, title: "There are eleven core intents, written in upper case", help: "", drops: false },
        Rule { id: "INT-002", code: None, title: "A reader keeps a legacy intent as written and treats it as a core intent", help: "use the core intent in new messages", drops: false },
        Rule { id: "INT-003", code: None, title: "A reader keeps and passes on an unknown intent", help: "use one of the eleven core intents", drops: false },
        Rule { id: "INT-010", code: Some(ErrorCode::Format), title: "A RESPOND, ACK or NACK with a message id names its parent", help: "add parent: with the id of the message that this one answers", drops: false },
        Rule { id: "INT-011", code: Some(ErrorCode::Format), title: "An ERROR has meta: error with a code of the taxonomy", help: "add meta: error with Code: and one of the eight codes", drops: false },
        Rule { id: "INT-012", code: Some(ErrorCode::Perm), title: "A REVOKE is signed", help: "sign the message: an unsigned REVOKE revokes nothing", drops: false },
        Rule { id: "INT-013", code: Some(ErrorCode::Format), title: "A POLL names its Targets in meta: routing", help: "add Targets: [\"claude://session/a\", \"human://b.example\"] to meta: routing", drops: false },
        Rule { id: "INT-014", code: Some(ErrorCode::Format), title: "An ESCALATE gives a reason, in meta: escalation or in its body", help: "add meta: escalation with Reason:", drops: false },
        Rule { id: "INT-015", code: Some(ErrorCode::Format), title: "A HANDOFF states what is needed, in X-Capabilities-Required or in its body", help: "add X-Capabilities-Required: to meta: routing", drops: false },
        Rule { id: "INT-016", code: None, title: "A BROADCAST expects no answer", help: "leave X-Reply-To out, or send a REQUEST", drops: false },
        Rule { id: "INT-017", code: None, title: "A CLOSE ends its thread or, without a thread, its session", help: "", drops: false },
        Rule { id: "INT-018", code: None, title: "A REQUEST has a body that is not empty", help: "write the request into the body", drops: false },
        Rule { id: "MET-001", code: None, title: "A value may be a YAML or JSON flow on one line", help: "close every bracket and quote on the same line", drops: false },
        Rule { id: "MET-002", code: None, title: "A known key has a value of its type; a reader keeps other values", help: "see the registry of namespaces for the values of this key", drops: false },
        Rule { id: "MET-010", code: None, title: "meta: routing carries route, reply address, priority, delivery, policy and targets", help: "", drops: false },
        Rule { id: "MET-011", code: None, title: "meta: privacy carries consent with its time, scope, expiry, jurisdiction and id", help: "", drops: false },
        Rule { id: "MET-012", code: None, title: "meta: attachments lists A1, A2 … with type, name, digest, and data when embedded", help: "write A1: text/plain;name=file.txt;digest=sha256:<64 hex digits>", drops: false },
        Rule { id: "MET-013", code: Some(ErrorCode::Format), title: "The bytes of an attachment have its digest", help: "ask the sender for the file again: these are not the bytes that were sent", drops: false },
        Rule { id: "MET-014", code: None, title: "meta: error carries code, reason and original intent", help: "", drops: false },
        Rule { id: "MET-015", code: None, title: "meta: audit describes one hop and may repeat", help: "", drops: false },
        Rule { id: "MET-016", code: None, title: "meta: safety carries content warnings and allowed use", help: "", drops: false },
        Rule { id: "MET-017", code: None, title: "meta: email is what a mail gateway adds; it may repeat", help: "", drops: false },
        Rule { id: "MET-018", code: None, title: "meta: payment carries amounts and references", help: "", drops: false },
        Rule { id: "MET-019", code: None, title: "meta: custom-name belongs to an organisation", help: "", drops: false },
        Rule { id: "MET-020", code: None, title: "meta: poll and meta: vote carry a question and a ballot", help: "", drops: false },
        Rule { id: "MET-021", code: None, title: "meta: revocation names what a REVOKE revokes", help: "", drops: false },
        Rule { id: "MET-022", code: None, title: "meta: refusal, closure and escalation give reasons", help: "", drops: false },
        Rule { id: "MET-023", code: None, title: "meta: key carries a public key; a denied key identifies nobody", help: "", drops: false },
        Rule { id: "MET-024", code: None, title: "meta: integrity describes the body when it was written", help: "", drops: false },
        Rule { id: "MET-025", code: None, title: "meta: receipt says where and when a relay accepted a message", help: "", drops: false },
        Rule { id: "LNT-001", code: None, title: "An id is a ULID or a UUIDv7; a reader keeps other ids", help: "generate the id with crosstalk id new", drops: false },
        Rule { id: "LNT-002", code: None, title: "A META key is in PascalCase or starts with X-", help: "write Reply-To or X-Reply-To", drops: false },
        Rule { id: "LNT-003", code: None, title: "A namespace is in the registry or starts with custom-", help: "write meta: custom-yourorg for your own namespace", drops: false },
        Rule { id: "LNT-004", code: None, title: "A key of a known namespace is in the registry or starts with X-", help: "check the spelling, or begin the key with X-", drops: false },
        Rule { id: "LNT-005", code: None, title: "A name does not imitate letters of another alphabet", help: "check the name letter by letter: letters of several alphabets look alike", drops: false },
        Rule { id: "LNT-006", code: None, title: "An envelope has no bidirectional controls", help: "the text may be shown in another order than it is written: read it escaped", drops: false },
        Rule { id: "LNT-007", code: None, title: "An envelope has no invisible characters", help: "the text contains invisible characters: read it escaped", drops: false },
        Rule { id: "LNT-008", code: None, title: "The scheme of an address is in the registry", help: "check the spelling, or register the scheme", drops: false },
        Rule { id: "ADR-001", code: Some(ErrorCode::Format), title: "An address is not empty and has no control characters", help: "give a name such as CLAUDE or a URL such as claude://session/abc123", drops: false },
        Rule { id: "ADR-002", code: None, title: "An address is a simple name or a URL; a program prints it as it read it", help: "", drops: false },
        Rule { id: "ADR-003", code: Some(ErrorCode::Format), title: "An address of the form scheme://authority has an authority", help: "write scheme://authority/path", drops: false },
        Rule { id: "ADR-004", code: Some(ErrorCode::Format), title: "An email: address has a local part and a domain", help: "write email:name@example.com", drops: false },
        Rule { id: "ADR-005", code: Some(ErrorCode::Format), title: "A tel: address is a number", help: "write tel:+1-555-0100", drops: false },
        Rule { id: "ADR-006", code: Some(ErrorCode::Format), title: "A URL has no white space", help: "write %20 for a space", drops: false },
        Rule { id: "ADR-007", code: Some(ErrorCode::Format), title: "Two hex digits follow each percent sign in a URL", help: "write %25 for a percent sign", drops: false },
        Rule { id: "ADR-008", code: None, title: "Configuration can extend the scheme registry", help: "", drops: false },
        Rule { id: "ADR-009", code: Some(ErrorCode::Format), title: "A name or an address has no blank except the space, and no variation selector", help: "type the name again: it contains an invisible character", drops: false },
        Rule { id: "ADR-010", code: Some(ErrorCode::Route), title: "A program looks a name up in the local table, on request in the DNS, and otherwise keeps the name", help: "map the name to an address with crosstalk name NAME ADDRESS, or use a URL", drops: false },
        Rule { id: "ADR-011", code: None, title: "The local table compares names by ADR-020; a loop in it gives no address", help: "map one of the names to a URL with crosstalk name NAME ADDRESS", drops: false },
        Rule { id: "ADR-012", code: None, title: "A domain lists the addresses of a name in TXT records at _crosstalk-addr", help: "", drops: false },
        Rule { id: "ADR-013", code: None, title: "A record is a URL; of several, a program chooses the first in the order of their bytes", help: "", drops: false },
        Rule { id: "ADR-014", code: Some(ErrorCode::Timeout), title: "A look-up that fails for now does not mean that there is no address", help: "try again later", drops: false },
        Rule { id: "ADR-015", code: None, title: "A program uses a found address byte for byte and leaves received names as they are", help: "", drops: false },
        Rule { id: "ADR-020", code: None, title: "Names are the same by full case folding, URLs by folded scheme and host", help: "", drops: false },
        Rule { id: "ADR-021", code: None, title: "A program flags a name that looks like another one and treats it as another party", help: "", drops: false },
        Rule { id: "IDS-001", code: None, title: "A ULID is 26 characters of Crockford base32, not above 7ZZZZZZZZZZZZZZZZZZZZZZZZZ", help: "", drops: false },
        Rule { id: "IDS-002", code: None, title: "A UUIDv7 is 36 characters, lower-case hex, version 7", help: "", drops: false },
        Rule { id: "IDS-003", code: None, title: "Each id of a process is greater than the one before; their text order is their time order", help: "", drops: false },
        Rule { id: "ERR-001", code: None, title: "There are eight error codes, each with an HTTP status and an exit code", help: "", drops: false },
        Rule { id: "ERR-002", code: None, title: "A program answers a message that it rejects with an ERROR envelope", help: "", drops: false },
        Rule { id: "ERR-003", code: None, title: "SYSTEM answers a message that could not be read", help: "", drops: false },
        Rule { id: "ERR-004", code: None, title: "An ACK or NACK keeps thread, session and context and names its parent", help: "", drops: false },
        Rule { id: "ERR-005", code: None, title: "A RESPOND keeps thread, session and context and names its parent", help: "", drops: false },
        Rule { id: "CAN-001", code: None, title: "The canonical form has the direction, core headers in fixed order, unknown headers, META blocks, body digest", help: "", drops: false },
        Rule { id: "CAN-002", code: None, title: "The canonical direction is [[S→R v1]]", help: "", drops: false },
        Rule { id: "CAN-003", code: None, title: "A canonical line is name, colon, one space, value", help: "", drops: false },
        Rule { id: "CAN-004", code: None, title: "The canonical form leaves out what hops write: audit, email, X-Route, an otherwise empty routing block, and sig", help: "", drops: false },
        Rule { id: "CAN-005", code: None, title: "The canonical form covers unknown headers and META", help: "", drops: false },
        Rule { id: "CAN-006", code: None, title: "The last canonical line is the SHA-256 of the body text, one LF after each line", help: "", drops: false },
        Rule { id: "CAN-007", code: Some(ErrorCode::Format), title: "Only an envelope that passes the strict reading has a canonical form", help: "repair the text first: crosstalk fmt", drops: false },
        Rule { id: "CAN-010", code: None, title: "Digest is the body digest of the canonical form", help: "", drops: false },
        Rule { id: "CAN-011", code: None, title: "Words is the SHA-256 of the body text with each run of white space as one space", help: "", drops: false },
        Rule { id: "CAN-012", code: None, title: "Marks is base64 of the first two bytes of each line's SHA-256", help: "", drops: false },
        Rule { id: "CAN-013", code: None, title: "A body is intact, reflowed, truncated or altered", help: "", drops: false },
        Rule { id: "SCN-001", code: Some(ErrorCode::Format), title: "A paste contains at least one envelope", help: "copy the text again, from the line [[SENDER→RECEIVER v1]] to [[END]]", drops: false },
        Rule { id: "SCN-002", code: None, title: "A reader does not extract a message that is quoted inside another one", help: "", drops: false },
        Rule { id: "SCN-003", code: Some(ErrorCode::Format), title: "A direction line before the [[END]] of another message is an error for both", help: "one of the two was cut off: copy each envelope to its [[END]]", drops: false },
        Rule { id: "SCN-004", code: None, title: "A declared number of lines tells where the body ends", help: "", drops: false },
        Rule { id: "SCN-005", code: None, title: "A reader reads several envelopes of one paste one by one", help: "", drops: false },
        Rule { id: "SCN-006", code: None, title: "A reader reports an [[END]] without a beginning", help: "copy the message again from its first line", drops: false },
        Rule { id: "PST-001", code: Some(ErrorCode::Format), title: "A reader removes a code fence around the envelope", help: "", drops: false },
        Rule { id: "PST-002", code: Some(ErrorCode::Format), title: "A reader removes a uniform prefix such as >", help: "", drops: false },
        Rule { id: "PST-003", code: Some(ErrorCode::Format), title: "A reader removes a uniform extra indent", help: "", drops: false },
        Rule { id: "PST-004", code: Some(ErrorCode::Format), title: "A reader removes padding at the ends of lines", help: "", drops: false },
        Rule { id: "PST-005", code: Some(ErrorCode::Format), title: "A reader reads a no-break space outside the body text as a space", help: "", drops: false },
        Rule { id: "PST-006", code: Some(ErrorCode::Format), title: "A reader removes zero-width characters outside the body", help: "", drops: false },
        Rule { id: "PST-007", code: Some(ErrorCode::Format), title: "A reader reads another arrow in the direction line as →", help: "write → or ->", drops: false },
        Rule { id: "PST-008", code: Some(ErrorCode::Format), title: "A reader reads a reserved name in another case", help: "write the name in lower case", drops: false },
        Rule { id: "PST-009", code: Some(ErrorCode::Format), title: "A reader removes Markdown around a name or a marker", help: "write the line without Markdown", drops: false },
        Rule { id: "PST-010", code: Some(ErrorCode::Format), title: "A reader reads a body without indent", help: "indent each body line by two spaces", drops: false },
        Rule { id: "PST-011", code: Some(ErrorCode::Format), title: "A reader reads an envelope whose line ends became spaces", help: "paste it inside a code fence: the line breaks of the body are lost", drops: false },
        Rule { id: "PST-012", code: Some(ErrorCode::Format), title: "A reader joins a wrapped value", help: "", drops: false },
        Rule { id: "PST-013", code: Some(ErrorCode::Format), title: "A reader reads a body on the line of its name", help: "write body: | and the text below it", drops: false },
        Rule { id: "PST-014", code: Some(ErrorCode::Format), title: "A reader joins a flow or list over several lines", help: "write the list on one line: [\"a\", \"b\"]", drops: false },
        Rule { id: "PST-015", code: Some(ErrorCode::Format), title: "A reader removes a comment after an id, and quotes around an id or an intent", help: "", drops: true },
        Rule { id: "PST-016", code: Some(ErrorCode::Format), title: "A reader assumes sig: none for a missing sig: line", help: "", drops: false },
        Rule { id: "PST-017", code: Some(ErrorCode::Format), title: "A reader leaves out text on the line of a marker", help: "", drops: true },
        Rule { id: "PST-018", code: Some(ErrorCode::Format), title: "A reader keeps the first of two equal names", help: "keep one of the two lines", drops: true },
        Rule { id: "PST-019", code: Some(ErrorCode::Format), title: "A reader reads an intent in another case", help: "write the intent in upper case", drops: false },
        Rule { id: "PST-020", code: Some(ErrorCode::Format), title: "A reader resolves backslash escapes and HTML entities outside the body", help: "", drops: false },
        Rule { id: "PST-021", code: Some(ErrorCode::Format), title: "A reader removes terminal escapes and stray control characters", help: "", drops: true },
        Rule { id: "PST-022", code: Some(ErrorCode::Format), title: "A reader reads a lone CR, or U+2028 or U+2029 in the body, as a line end", help: "", drops: false },
        Rule { id: "PST-023", code: Some(ErrorCode::Format), title: "A reader removes line numbers in front of the lines", help: "", drops: false },
        Rule { id: "PST-024", code: Some(ErrorCode::Format), title: "A reader removes a frame around the lines", help: "", drops: false },
        Rule { id: "PST-025", code: Some(ErrorCode::Format), title: "A reader reads a marker in another spelling", help: "write the marker exactly: [[SENDER→RECEIVER v1]], body: |, [[END]]", drops: false },
        Rule { id: "PST-026", code: Some(ErrorCode::Format), title: "A reader leaves out an empty core header", help: "", drops: true },
        Rule { id: "PST-027", code: Some(ErrorCode::Format), title: "A reader reports missing headers and reads the rest", help: "add the missing header", drops: false },
        Rule { id: "PST-028", code: Some(ErrorCode::Format), title: "A reader reads a namespace in another case", help: "write the namespace in lower case", drops: false },
        Rule { id: "PST-029", code: Some(ErrorCode::Format), title: "A reader completes a message whose end is known without [[END]]", help: "end each message with a line [[END]]", drops: false },
        Rule { id: "TRN-001", code: None, title: "A file is UTF-8 text with one or several envelopes, named .crosstalk or .aict", help: "", drops: false },
        Rule { id: "TRN-002", code: None, title: "A writer uses a fence with more backticks than any run inside", help: "", drops: false },
        Rule { id: "TRN-003", code: Some(ErrorCode::Format), title: "Where one envelope is expected, a reader rejects a second one", help: "send one envelope at a time", drops: false },
        Rule { id: "TRN-004", code: None, title: "With several envelopes the exit code is the largest one", help: "", drops: false },
        Rule { id: "TRN-005", code: Some(ErrorCode::Route), title: "A relay calls the tools that its operator lists, and no others", help: "ask the relay operator which tools may be called", drops: false },
        Rule { id: "TRN-006", code: None, title: "A relay calls a tool for a REQUEST, with the arguments of its body", help: "", drops: false },
        Rule { id: "TRN-007", code: None, title: "The result of a tool becomes a RESPOND, its error an ERROR", help: "", drops: false },
        Rule { id: "SIG-001", code: None, title: "The signed bytes are the preamble, the algorithm, the key id and the canonical form", help: "", drops: false },
        Rule { id: "SIG-002", code: Some(ErrorCode::Unsupported), title: "The algorithm is ed25519 or secp256r1", help: "ask the sender to sign with ed25519", drops: false },
        Rule { id: "SIG-003", code: None, title: "A verifier checks an ed25519 signature strictly", help: "", drops: false },
        Rule { id: "SIG-004", code: None, title: "A secp256r1 signature is r and s, 64 bytes, over SHA-256", help: "", drops: false },
        Rule { id: "SIG-005", code: Some(ErrorCode::Perm), title: "The record of the key decides the algorithm", help: "don't act on the text; ask the sender to send it again", drops: false },
        Rule { id: "SIG-006", code: None, title: "A signer adds a message id and the integrity block", help: "", drops: false },
        Rule { id: "SIG-007", code: Some(ErrorCode::Perm), title: "A signer does not replace a signature unless told to", help: "sign the original, or ask for the signature to be replaced", drops: false },
        Rule { id: "SIG-010", code: Some(ErrorCode::Perm), title: "The signature fits the canonical form that ends with the declared digest", help: "don't act on the text; copy it again from where it is whole, or ask the sender to send it again with --with-key", drops: false },
        Rule { id: "SIG-011", code: Some(ErrorCode::Perm), title: "An integrity block without a signature means that the signature was removed", help: "don't act on the text; ask the sender for the signed message", drops: false },
        Rule { id: "SIG-012", code: Some(ErrorCode::Perm), title: "A verifier does not verify an envelope of which the reading left text out", help: "remove what the sender did not write, or copy the message again", drops: false },
        Rule { id: "SIG-013", code: None, title: "A verifier tries at most 16 repaired heads", help: "", drops: false },
        Rule { id: "SIG-014", code: None, title: "A verifier compares the body as received, then at most 64 repaired forms", help: "", drops: false },
        Rule { id: "SIG-015", code: Some(ErrorCode::Perm), title: "A body that is not the signed one is damaged, and counts as unsigned", help: "ask the sender for the message again, or copy it inside a code fence", drops: false },
        Rule { id: "SIG-016", code: None, title: "A verifier can offer a reflowed body as restored, but does not verify it", help: "", drops: false },
        Rule { id: "SIG-017", code: None, title: "A program rebuilds what it shows as verified from the verified bytes", help: "", drops: false },
        Rule { id: "SIG-020", code: Some(ErrorCode::Format), title: "A public key is written as its algorithm, :pk= and base64", help: "write ed25519:pk= and the 32 bytes of the key in base64", drops: false },
        Rule { id: "SIG-021", code: Some(ErrorCode::Perm), title: "A program rejects a weak key, and a key in another encoding", help: "make a new key with crosstalk key new", drops: false },
        Rule { id: "SIG-022", code: Some(ErrorCode::Perm), title: "A key on the deny list verifies nothing", help: "don't act on the text: this key vouches for nobody", drops: false },
        Rule { id: "SIG-023", code: None, title: "A fingerprint is eight groups of five digits", help: "", drops: false },
        Rule { id: "SIG-024", code: Some(ErrorCode::Format), title: "A did:key id contains the key", help: "write the id as did:key:z and the base58 text of the key", drops: false },
        Rule { id: "SIG-030", code: None, title: "A verifier checks the rc1 form only on request; no program writes it", help: "", drops: false },
        Rule { id: "TRU-001", code: None, title: "A verdict is one of eight words", help: "", drops: false },
        Rule { id: "TRU-002", code: Some(ErrorCode::Perm), title: "Without a key, a verifier verifies nothing", help: "ask the sender for a message with meta: key, or pin the key with crosstalk trust pin", drops: false },
        Rule { id: "TRU-003", code: None, title: "A key that comes with a message proves possession, and nothing else", help: "", drops: false },
        Rule { id: "TRU-004", code: None, title: "A pin binds a key id to a key, and a sender to key ids", help: "", drops: false },
        Rule { id: "TRU-005", code: Some(ErrorCode::Perm), title: "A message with another key for a known key id is not verified", help: "compare the fingerprints with the sender by voice, then pin the new key with --replace", drops: false },
        Rule { id: "TRU-006", code: Some(ErrorCode::Perm), title: "A message of a known sender under another key id is not verified", help: "ask the sender by another way, then pin the key id for this sender", drops: false },
        Rule { id: "TRU-007", code: Some(ErrorCode::Perm), title: "A distrusted key verifies nothing", help: "don't act on the text; if the distrust was a mistake, crosstalk trust remove forgets the key and everything about it", drops: false },
        Rule { id: "TRU-008", code: Some(ErrorCode::Perm), title: "The Key-ID of a key block is the key id of the signature", help: "ask the sender to sign again with --with-key", drops: false },
        Rule { id: "TRU-009", code: Some(ErrorCode::Perm), title: "A message of a sender who looks like a pinned one under another key id is not verified", help: "compare the names letter by letter, and ask the sender by another way", drops: false },
        Rule { id: "TRU-010", code: Some(ErrorCode::Perm), title: "A rotation carries proofs by the old and the new key", help: "compare the fingerprints with the sender by voice, then pin the new key with --replace", drops: false },
        Rule { id: "TRU-011", code: Some(ErrorCode::Perm), title: "A replaced key can sign until its grace period expires", help: "ask the sender to sign with the new key", drops: false },
        Rule { id: "TRU-012", code: Some(ErrorCode::Perm), title: "A revoked key verifies nothing", help: "don't act on the text; ask the sender for their new key", drops: false },
        Rule { id: "TRU-013", code: Some(ErrorCode::Perm), title: "Only the key itself or its successor revokes a key", help: "distrust the key by hand with crosstalk trust distrust", drops: false },
        Rule { id: "TRU-020", code: None, title: "A domain vouches for keys in TXT records at _crosstalk-key", help: "", drops: false },
        Rule { id: "TRU-021", code: Some(ErrorCode::Perm), title: "A domain without key records vouches for no key", help: "ask the sender to publish the key, or check without --dns against a pin", drops: false },
        Rule { id: "TRU-022", code: Some(ErrorCode::Timeout), title: "A look-up that fails for now gives no verdict about the key", help: "try again later", drops: false },
        Rule { id: "TRU-023", code: Some(ErrorCode::Perm), title: "A key that the domain does not list is not verified", help: "ask the sender which key is theirs; the domain lists another", drops: false },
        Rule { id: "TRU-024", code: Some(ErrorCode::Perm), title: "If DNSSEC is required, an answer without it vouches for nothing", help: "ask the owner of the domain to sign the zone, or check without requiring DNSSEC", drops: false },
        Rule { id: "TRU-025", code: None, title: "A program keeps a DNS answer no longer than its TTL", help: "", drops: false },
        Rule { id: "TRU-026", code: Some(ErrorCode::Perm), title: "A domain vouches only for its own senders; another sender needs a pin", help: "ask the sender by another way, then pin the key id for this sender", drops: false },
        Rule { id: "TRU-030", code: Some(ErrorCode::Format), title: "A trust file is TOML of the schema crosstalk.trust/1", help: "export it anew with crosstalk trust export", drops: false },
        Rule { id: "RED-001", code: None, title: "A redaction replaces each find by the placeholder of its kind", help: "", drops: false },
        Rule { id: "RED-002", code: None, title: "A redaction keeps the text around a find byte for byte; a second redaction changes nothing", help: "", drops: false },
        Rule { id: "RED-003", code: None, title: "Look-alikes and invisible characters hide nothing from a redaction", help: "", drops: false },
        Rule { id: "RED-004", code: None, title: "A redaction keeps dates, times, ids, digests, prices and numbers of orders and books", help: "", drops: false },
        Rule { id: "RED-005", code: None, title: "A label stands on the same line, at most 40 characters before a number or 24 behind it", help: "", drops: false },
        Rule { id: "RED-006", code: None, title: "Finds that overlap become one find; the longest determines its kind", help: "", drops: false },
        Rule { id: "RED-010", code: None, title: "A redaction replaces a mail address by [EMAIL]", help: "", drops: false },
        Rule { id: "RED-011", code: None, title: "A redaction replaces a phone number by [PHONE]", help: "", drops: false },
        Rule { id: "RED-012", code: None, title: "A redaction replaces a card number by [CARD-XXXX-####] with its last four digits", help: "", drops: false },
        Rule { id: "RED-013", code: None, title: "A redaction replaces an account number by [IBAN]", help: "", drops: false },
        Rule { id: "RED-014", code: None, title: "A redaction replaces an IP address that names a machine by [IP]", help: "", drops: false },
        Rule { id: "RED-015", code: None, title: "A redaction replaces a national number of a person by [NIN]", help: "", drops: false },
        Rule { id: "RED-016", code: None, title: "A redaction replaces a name of the caller's list by [NAME]", help: "", drops: false },
        Rule { id: "RED-020", code: None, title: "A redaction changes the body, user, context, unknown headers and free META values of an envelope", help: "", drops: false },
        Rule { id: "RED-021", code: None, title: "A redacted envelope says PII: redacted and names the kinds in Redacted-Fields", help: "", drops: false },
        Rule { id: "RED-022", code: None, title: "A redaction keeps addresses, ids, and what signers and hops write", help: "", drops: false },
        Rule { id: "RED-023", code: Some(ErrorCode::Perm), title: "A program does not redact a signed envelope unless it may drop the signature", help: "redact before you sign, or drop the signature with --drop-signature and sign again", drops: false },
        Rule { id: "RED-024", code: None, title: "A redaction keeps an envelope in which it finds nothing as it is", help: "", drops: false },
        Rule { id: "HTP-001", code: None, title: "A relay accepts an envelope by POST /crosstalk/receive and answers with one", help: "post the envelope to /crosstalk/receive as text/plain; charset=utf-8", drops: false },
        Rule { id: "HTP-002", code: Some(ErrorCode::Unsupported), title: "A request body has the right type, charset utf-8 and no encoding", help: "send text/plain; charset=utf-8 without compression", drops: false },
        Rule { id: "HTP-003", code: Some(ErrorCode::Format), title: "A request body is one envelope, read strictly, within the limits", help: "check the text with `crosstalk lint` and send one envelope in each request", drops: false },
        Rule { id: "HTP-004", code: None, title: "A rejection is an ERROR envelope, or a JSON object if the client asks for JSON", help: "", drops: false },
        Rule { id: "HTP-005", code: None, title: "A rejection has the status of its code", help: "", drops: false },
        Rule { id: "HTP-006", code: None, title: "The ERROR is from SYSTEM if the envelope could not be read, else from its receiver", help: "", drops: false },
        Rule { id: "HTP-007", code: None, title: "A relay that accepts JSON treats it like the envelope that it describes, and answers in JSON if asked to", help: "", drops: false },
        Rule { id: "HTP-010", code: None, title: "A relay answers an accepted message with an ACK that has a receipt", help: "", drops: false },
        Rule { id: "HTP-011", code: None, title: "A relay keeps an acknowledged message, and it can be found at once", help: "", drops: false },
        Rule { id: "HTP-012", code: None, title: "The same message again gets the first answer, and is not delivered again", help: "", drops: false },
        Rule { id: "HTP-013", code: Some(ErrorCode::Perm), title: "A relay rejects other content under an id that it has", help: "give the message an id of its own", drops: false },
        Rule { id: "HTP-014", code: None, title: "Prefer: wait holds the answer until the RESPOND comes", help: "", drops: false },
        Rule { id: "HTP-015", code: None, title: "A batch gets one answer for each of its pieces", help: "", drops: false },
        Rule { id: "HTP-016", code: None, title: "A relay keeps ids as they are, and finds messages under their spelling", help: "", drops: false },
        Rule { id: "HTP-020", code: Some(ErrorCode::Consent), title: "A relay applies the consent rules before it accepts a message", help: "ask for consent first, or remove what needs it", drops: false },
        Rule { id: "HTP-021", code: Some(ErrorCode::Perm), title: "A relay rejects a REVOKE that is not verified", help: "sign the REVOKE with a key that is trusted", drops: false },
        Rule { id: "HTP-022", code: Some(ErrorCode::Timeout), title: "A relay rejects a message after its deadline, and reports a deadline that passes", help: "send it with a later deadline", drops: false },
        Rule { id: "HTP-023", code: Some(ErrorCode::Perm), title: "A closed conversation accepts only ACK, ERROR and REVOKE", help: "start a new thread", drops: false },
        Rule { id: "HTP-024", code: Some(ErrorCode::Perm), title: "Only a party closes a conversation", help: "ask one of the parties to close it", drops: false },
        Rule { id: "HTP-025", code: Some(ErrorCode::Perm), title: "A relay rejects an answer to a BROADCAST", help: "send a REQUEST of your own", drops: false },
        Rule { id: "HTP-026", code: Some(ErrorCode::TooLarge), title: "A POLL or BROADCAST goes to each of its Targets once, at most 256", help: "send it in parts", drops: false },
        Rule { id: "HTP-027", code: Some(ErrorCode::Route), title: "An ESCALATE goes to a person, with the thread so far", help: "address it to a human:// address", drops: false },
        Rule { id: "HTP-028", code: Some(ErrorCode::Unsupported), title: "A HANDOFF goes to a receiver with the required capabilities, which becomes the steward", help: "ask the relay operator to assign the capabilities to the receiver, or hand over to a person", drops: false },
        Rule { id: "HTP-029", code: None, title: "ACK and NACK of a recipient change the state of the delivery", help: "", drops: false },
        Rule { id: "HTP-030", code: Some(ErrorCode::Perm), title: "Only the relay sends as SYSTEM, and no sender looks like a known one", help: "send under a name of your own", drops: false },
        Rule { id: "HTP-031", code: None, title: "Any address has an inbox, which lists unacknowledged messages as JSON", help: "", drops: false },
        Rule { id: "HTP-032", code: None, title: "An inbox is a file of envelopes unless the client asks for JSON", help: "", drops: false },
        Rule { id: "HTP-033", code: None, title: "An inbox is a stream of events if the client asks for one", help: "", drops: false },
        Rule { id: "HTP-034", code: None, title: "Reading an inbox consumes nothing, and a cursor skips nothing", help: "", drops: false },
        Rule { id: "HTP-035", code: None, title: "With wait, a relay holds the answer until a message comes", help: "", drops: false },
        Rule { id: "HTP-036", code: None, title: "POST /crosstalk/ack says which messages were read or acknowledged", help: "", drops: false },
        Rule { id: "HTP-037", code: None, title: "The state of a delivery only moves forward, and the sender sees it", help: "", drops: false },
        Rule { id: "HTP-038", code: Some(ErrorCode::Format), title: "A relay rejects parameters and bodies of another form", help: "see /openapi.json of the relay for the parameters", drops: false },
        Rule { id: "HTP-040", code: None, title: "A message is found by its id", help: "", drops: false },
        Rule { id: "HTP-041", code: None, title: "A thread is found by its id: as a tree, as a file, for people", help: "", drops: false },
        Rule { id: "HTP-042", code: None, title: "A relay finds messages by their words", help: "", drops: false },
        Rule { id: "HTP-043", code: None, title: "A relay says which address a name stands for", help: "", drops: false },
        Rule { id: "HTP-044", code: None, title: "An agent has the capabilities that the operator assigned to it and that it offers", help: "", drops: false },
        Rule { id: "HTP-045", code: None, title: "Messages that a person has to carry wait in the courier's queue", help: "", drops: false },
        Rule { id: "HTP-046", code: Some(ErrorCode::Route), title: "A relay rejects a way of delivery that it does not have, and never replaces it", help: "leave X-Delivery out, or ask for a way that the relay has", drops: false },
        Rule { id: "HTP-047", code: None, title: "A relay lists dead letters, and an administrator can queue them again", help: "", drops: false },
        Rule { id: "HTP-048", code: None, title: "Only the granter and the recipients of a consent find it on record", help: "", drops: false },
        Rule { id: "HTP-049", code: None, title: "A relay counts a poll for its parties; the initiator closes it once", help: "", drops: false },
        Rule { id: "HTP-050", code: Some(ErrorCode::Format), title: "A relay accepts an attachment if its digest is right, and answers alike whether it had it or not", help: "send the bytes that the digest is of", drops: false },
        Rule { id: "HTP-051", code: None, title: "A relay gives an attachment out as bytes, to callers who have access to it", help: "", drops: false },
        Rule { id: "HTP-060", code: Some(ErrorCode::Perm), title: "A relay answers 401 without a valid credential where one is needed", help: "send a valid token as `Authorization: Bearer`", drops: false },
        Rule { id: "HTP-061", code: Some(ErrorCode::Perm), title: "A credential sends and reads for its own addresses, and an agent's never for a person", help: "use a token for this address, or sign the message with a key that is pinned for it", drops: false },
        Rule { id: "HTP-062", code: Some(ErrorCode::Perm), title: "A relay rejects a request with an unknown Host or Origin", help: "use a name of the relay that its configuration lists", drops: false },
        Rule { id: "HTP-063", code: None, title: "An administrator creates, lists and revokes tokens; the secret is shown once", help: "", drops: false },
        Rule { id: "HTP-064", code: Some(ErrorCode::Rate), title: "A relay answers too many requests with 429 and Retry-After", help: "wait as long as Retry-After says", drops: false },
        Rule { id: "HTP-065", code: Some(ErrorCode::Rate), title: "A relay answers 503 with Retry-After if it cannot accept a message for now", help: "wait as long as Retry-After says, then send the same message again", drops: false },
        Rule { id: "HTP-066", code: Some(ErrorCode::Timeout), title: "A relay ends a request that comes too slowly", help: "send the whole request at once", drops: false },
        Rule { id: "HTP-067", code: Some(ErrorCode::Perm), title: "A monitor reads the metrics and nothing else; others but an administrator do not read them", help: "use the token of a monitor or an administrator", drops: false },
        Rule { id: "HTP-069", code: Some(ErrorCode::Perm), title: "A browser extension that the operator listed gets a token for a pairing code", help: "ask the relay operator for a new code, and to list the origin of the extension", drops: false },
        Rule { id: "HTP-070", code: None, title: "A hop is a meta: audit block with chained digests and a signature", help: "", drops: false },
        Rule { id: "HTP-071", code: None, title: "A relay hands out the canonical form that it accepted, with its own hop", help: "", drops: false },
        Rule { id: "HTP-072", code: None, title: "A relay adds itself to X-Route where there is one", help: "", drops: false },
        Rule { id: "HTP-073", code: Some(ErrorCode::Route), title: "A relay rejects an envelope with 25 hops", help: "check the routes of the relays that its audit blocks name", drops: false },
        Rule { id: "HTP-074", code: Some(ErrorCode::Perm), title: "The last hop proves which relay passed an envelope on", help: "", drops: false },
        Rule { id: "HTP-080", code: None, title: "A domain names its relays in TXT records at _crosstalk", help: "", drops: false },
        Rule { id: "HTP-081", code: None, title: "A relay tries other relays by priority, equal ones in random order", help: "", drops: false },
        Rule { id: "HTP-082", code: Some(ErrorCode::Route), title: "A domain without a relay is final; a failed look-up is tried again", help: "check the domain of the address", drops: false },
        Rule { id: "CON-001", code: Some(ErrorCode::Consent), title: "Personal data and sensitive scopes need an explicit consent", help: "ask for consent and write `Consent: explicit_yes_` and the time, or remove what needs it", drops: false },
        Rule { id: "CON-002", code: Some(ErrorCode::Consent), title: "A program rejects a message with explicit_no", help: "ask for consent first, or remove what needs it", drops: false },
        Rule { id: "CON-003", code: Some(ErrorCode::Consent), title: "An implicit consent is not enough for sensitive data", help: "ask for an explicit consent", drops: false },
        Rule { id: "CON-004", code: Some(ErrorCode::Consent), title: "A consent in an unknown word permits nothing", help: "write explicit_yes and the time", drops: false },
        Rule { id: "CON-005", code: Some(ErrorCode::Consent), title: "A program neither accepts nor hands out a message that has expired", help: "ask for it again", drops: false },
        Rule { id: "CON-006", code: Some(ErrorCode::Format), title: "A program rejects an Expires that is not a time", help: "write it as 2026-12-31T23:59:59Z", drops: false },
        Rule { id: "CON-007", code: Some(ErrorCode::Consent), title: "A consent with a time in the future is not valid yet", help: "write the time at which it was given", drops: false },
        Rule { id: "CON-008", code: Some(ErrorCode::Consent), title: "A policy can require a signed consent for a scope", help: "sign the message with a trusted key", drops: false },
        Rule { id: "CON-009", code: Some(ErrorCode::Consent), title: "A named jurisdiction requires what its profile says", help: "add what the provision in the rejection requires", drops: false },
        Rule { id: "CON-010", code: Some(ErrorCode::Consent), title: "A policy can require an explicit consent for everything that leaves the organisation", help: "write an explicit consent into meta: privacy", drops: false },
        Rule { id: "CON-011", code: Some(ErrorCode::Consent), title: "A program checks pii_redacted by searching for personal data", help: "remove the personal data, or ask for consent", drops: false },
        Rule { id: "CON-012", code: Some(ErrorCode::Perm), title: "no_third_party keeps a message inside the organisation", help: "remove the policy, or bring the message there yourself", drops: false },
        Rule { id: "CON-020", code: None, title: "A program records who granted which consent to whom, by which message, and how well verified", help: "", drops: false },
        Rule { id: "CON-021", code: Some(ErrorCode::Consent), title: "A message is never wider than the consent that it names", help: "ask for consent to it, or remove what needs it", drops: false },
        Rule { id: "CON-022", code: Some(ErrorCode::Consent), title: "A transferred consent never holds longer than the original", help: "write an Expires that is not later, or leave it out", drops: false },
        Rule { id: "CON-023", code: Some(ErrorCode::Consent), title: "A transferred consent names the original", help: "name it in Original-Consent-ID", drops: false },
        Rule { id: "CON-024", code: Some(ErrorCode::Consent), title: "Only the granter and the recipients of a consent rely on it or transfer it", help: "ask one of them to hand the conversation over", drops: false },
        Rule { id: "CON-025", code: Some(ErrorCode::Consent), title: "A message under a consent reaches only the granter and the recipients of that consent", help: "ask the granter to grant it to them, or transfer it with approval", drops: false },
        Rule { id: "CON-026", code: Some(ErrorCode::Consent), title: "Granting a consent again never adds a scope", help: "grant a consent under another name", drops: false },
        Rule { id: "CON-027", code: Some(ErrorCode::Consent), title: "An agent cannot agree for a person", help: "ask the person to grant a consent, and name it in Consent-ID", drops: false },
        Rule { id: "CON-030", code: Some(ErrorCode::Consent), title: "A revoked consent permits nothing", help: "ask for a new one, under a name of its own", drops: false },
        Rule { id: "CON-031", code: Some(ErrorCode::Perm), title: "A REVOKE of a consent or a permission is certainly from its sender", help: "sign it with a key that a person compared or that a domain vouches for", drops: false },
        Rule { id: "CON-032", code: Some(ErrorCode::Perm), title: "Only the granter or a configured authority revokes a consent", help: "ask its granter to revoke it", drops: false },
        Rule { id: "CON-033", code: Some(ErrorCode::Unsupported), title: "A permission is a token, by its name", help: "write `Permission: token:` and the name", drops: false },
        Rule { id: "CON-034", code: None, title: "A REVOKE erases and cancels; a relay passes it on and confirms it", help: "", drops: false },
        Rule { id: "CON-013", code: None, title: "A program erases sensitive texts soon after all recipients have them, unless they may be cached", help: "", drops: false },
        Rule { id: "CON-014", code: Some(ErrorCode::TooLarge), title: "A message names at most 64 consents", help: "", drops: false },
        Rule { id: "CON-060", code: None, title: "Recipients do not see a held message", help: "", drops: false },
        Rule { id: "CON-061", code: None, title: "The ACK of a held message says so, and stays the same", help: "", drops: false },
        Rule { id: "CON-062", code: None, title: "Only a person decides, with a token of their own, and not about their own message", help: "", drops: false },
        Rule { id: "CON-063", code: None, title: "A relay lists held messages exactly as received, with their digests", help: "", drops: false },
        Rule { id: "CON-064", code: None, title: "A relay accepts an approved message in the transaction that records the decision", help: "", drops: false },
        Rule { id: "CON-065", code: None, title: "A decision is about exactly one message and is made once", help: "", drops: false },
        Rule { id: "CON-066", code: None, title: "The sender of a refused message gets the reason", help: "", drops: false },
        Rule { id: "CON-067", code: None, title: "An expired message cannot be approved", help: "", drops: false },
        Rule { id: "POL-001", code: None, title: "meta: poll says how a POLL is counted", help: "", drops: false },
        Rule { id: "POL-002", code: None, title: "The electorate is the addresses in Targets, each once", help: "", drops: false },
        Rule { id: "POL-003", code: None, title: "A quorum is a number, a number of a number, or a percentage", help: "", drops: false },
        Rule { id: "POL-004", code: None, title: "A poll whose deadline cannot be read has no outcome", help: "", drops: false },
        Rule { id: "POL-005", code: None, title: "An answer is a RESPOND to the poll", help: "", drops: false },
        Rule { id: "POL-006", code: None, title: "An answer is that of the voter who its sender is", help: "", drops: false },
        Rule { id: "POL-010", code: None, title: "A ballot names its choice in the form of the type", help: "", drops: false },
        Rule { id: "POL-011", code: None, title: "An abstention chooses nothing", help: "", drops: false },
        Rule { id: "POL-012", code: None, title: "A counter reads prose as a ballot only if its first line says one thing", help: "", drops: false },
        Rule { id: "POL-013", code: None, title: "A person can correct how an answer is read", help: "", drops: false },
        Rule { id: "POL-020", code: None, title: "The last ballot of a voter before the deadline counts", help: "", drops: false },
        Rule { id: "POL-021", code: None, title: "The same message counts once, and an id stands for one message", help: "", drops: false },
        Rule { id: "POL-022", code: None, title: "An unsigned answer does not replace a signed one", help: "", drops: false },
        Rule { id: "POL-023", code: None, title: "A counter lists every answer that does not count, with the reason", help: "", drops: false },
        Rule { id: "POL-030", code: None, title: "Plurality, approval and score take the option with the most", help: "", drops: false },
        Rule { id: "POL-031", code: None, title: "Majority is more than half, consensus is all, of the ballots that do not abstain", help: "", drops: false },
        Rule { id: "POL-032", code: None, title: "A ranked poll is counted by the method of Schulze", help: "", drops: false },
        Rule { id: "POL-033", code: None, title: "A tie has no outcome, or the option that is listed first", help: "", drops: false },
        Rule { id: "POL-034", code: None, title: "Without an outcome, the reason says why", help: "", drops: false },
        Rule { id: "POL-040", code: None, title: "A collation is JSON of the form crosstalk.poll/1", help: "", drops: false },
        Rule { id: "POL-041", code: None, title: "A collation is an envelope to the initiator, with an id that follows from its content", help: "", drops: false },
        Rule { id: "POL-042", code: None, title: "A counter leaves out what came later than a given time", help: "", drops: false },
        Rule { id: "AUD-001", code: None, title: "An entry of the log is one line: kind, time, digests, message", help: "", drops: false },
        Rule { id: "AUD-002", code: None, title: "A leaf has the salted digest of the detail of its entry", help: "", drops: false },
        Rule { id: "AUD-003", code: None, title: "The log has an entry for each token that is created or revoked", help: "", drops: false },
        Rule { id: "AUD-010", code: None, title: "The root is the Merkle tree hash of RFC 6962", help: "", drops: false },
        Rule { id: "AUD-011", code: None, title: "An entry is proved by its path to the root", help: "", drops: false },
        Rule { id: "AUD-012", code: None, title: "A log extends what it was, or was cut or rewritten", help: "", drops: false },
        Rule { id: "AUD-020", code: None, title: "A checkpoint is a signed note: origin, size, root", help: "", drops: false },
        Rule { id: "AUD-021", code: None, title: "The public key of a log is name+hash+key", help: "", drops: false },
        Rule { id: "AUD-030", code: None, title: "A receipt proves that a relay accepted a message", help: "", drops: false },
        Rule { id: "AUD-040", code: None, title: "A verifier checks a bundle without the relay", help: "", drops: false },
        Rule { id: "AUD-041", code: None, title: "A part of a log has a proof for each entry", help: "", drops: false },
        Rule { id: "AUD-042", code: None, title: "An older checkpoint shows whether a log was rewritten or cut", help: "", drops: false },
        Rule { id: "AUD-050", code: None, title: "The hops of a message are a chain", help: "", drops: false },
        Rule { id: "AUD-051", code: None, title: "A hop of a relay with a log names the entry, and its digest covers it", help: "", drops: false },
        Rule { id: "AUD-060", code: None, title: "Relays that share a store write a chain each, with an origin of its own", help: "", drops: false },
        Rule { id: "AUD-061", code: None, title: "A bundle of several chains lists them, and each holds", help: "", drops: false },
        Rule { id: "MAI-001", code: None, title: "A gateway bounds a mail and rejects a mail beyond a bound", help: "", drops: false },
        Rule { id: "MAI-002", code: None, title: "A gateway reads the text of a mail with the paste reading, once", help: "", drops: false },
        Rule { id: "MAI-003", code: None, title: "A gateway undoes transfer encoding, character set and format=flowed before it reads a text", help: "", drops: false },
        Rule { id: "MAI-010", code: None, title: "The envelopes of a mail are those outside of quoted text", help: "", drops: false },
        Rule { id: "MAI-011", code: None, title: "Attached files that end with .crosstalk or .aict are read as envelopes", help: "", drops: false },
        Rule { id: "MAI-012", code: None, title: "Automatic replies, lists and receipts are automatic mail, which is never an answer", help: "", drops: false },
        Rule { id: "MAI-013", code: None, title: "A mail with two senders is rejected", help: "", drops: false },
        Rule { id: "MAI-014", code: None, title: "A mail with a DKIM signature over a part of its text is rejected", help: "", drops: false },
        Rule { id: "MAI-015", code: None, title: "A mail that brings no envelope and answers no message is rejected", help: "", drops: false },
        Rule { id: "MAI-016", code: None, title: "A failed delivery status, or the usual form of one, is a bounce with the server's reason", help: "", drops: false },
        Rule { id: "MAI-020", code: None, title: "Quoted text never becomes part of the new words of a reply", help: "", drops: false },
        Rule { id: "MAI-021", code: None, title: "In HTML, the structure says what is quoted before the words do", help: "", drops: false },
        Rule { id: "MAI-022", code: None, title: "Signatures and footers of mail programs are cut off", help: "", drops: false },
        Rule { id: "MAI-023", code: None, title: "A reply without new words is rejected", help: "", drops: false },
        Rule { id: "MAI-024", code: None, title: "An envelope in the quoted text of a reply is quoted text; a forwarded one is an envelope", help: "", drops: false },
        Rule { id: "MAI-030", code: None, title: "The Message-ID of a message is <ID@domain>, with an optional token", help: "", drops: false },
        Rule { id: "MAI-031", code: None, title: "The parent of a mail is the message in In-Reply-To, else the last one in References", help: "", drops: false },
        Rule { id: "MAI-032", code: None, title: "The first of the References names the thread", help: "", drops: false },
        Rule { id: "MAI-033", code: None, title: "A mail without an envelope has an id that its Message-ID and its date give", help: "", drops: false },
        Rule { id: "MAI-040", code: None, title: "The subject is [AI Crosstalk] <context> - <intent>, on one line", help: "", drops: false },
        Rule { id: "MAI-050", code: None, title: "Message-ID and Reply-To of a mail for a message have a reply token, the same each time", help: "", drops: false },
        Rule { id: "MAI-051", code: None, title: "A reply token is bound to message, thread, recipient and time by HMAC-SHA256", help: "", drops: false },
        Rule { id: "MAI-052", code: None, title: "A token of another form, for something else or after its time is rejected", help: "", drops: false },
        Rule { id: "MAI-053", code: None, title: "Reply-To and return path are mailbox+ID.TOKEN@domain", help: "", drops: false },
        Rule { id: "MAI-060", code: None, title: "A gateway drops, reports, rejects or accepts a mail by one table", help: "", drops: false },
        Rule { id: "MAI-061", code: None, title: "A mail speaks for the recipient that was asked or for an aligned From, and for nobody else", help: "", drops: false },
        Rule { id: "MAI-062", code: None, title: "A reply becomes a RESPOND to the message that it answers", help: "", drops: false },
        Rule { id: "MAI-063", code: None, title: "A gateway hands strict documents to its relay; a wrong signature waits for a person", help: "", drops: false },
        Rule { id: "MAI-064", code: None, title: "A gateway checks SPF, DKIM and DMARC, or takes the results of a server that the operator named", help: "", drops: false },
        Rule { id: "MAI-065", code: None, title: "A gateway adds meta: email and changes nothing else", help: "", drops: false },
        Rule { id: "MAI-066", code: None, title: "A bounce with a reply token becomes an ERROR to the sender of the message", help: "", drops: false },
        Rule { id: "MAI-067", code: None, title: "A person whose answer in a mailbox is rejected gets an ERROR by mail, and nobody else", help: "", drops: false },
        Rule { id: "MAI-070", code: None, title: "A gateway answers 250 when the messages of a mail are durable", help: "", drops: false },
        Rule { id: "MAI-071", code: None, title: "A gateway accepts its own addresses alone", help: "", drops: false },
        Rule { id: "MAI-072", code: None, title: "A gateway forgets what came before TLS", help: "", drops: false },
        Rule { id: "MAI-073", code: None, title: "A gateway bounds what a mail client may do", help: "", drops: false },
        Rule { id: "MAI-074", code: None, title: "Only CR LF, a dot, CR LF ends a mail", help: "", drops: false },
        Rule { id: "MAI-080", code: None, title: "The text of a mail is the envelope in quoted-printable, with lines that no mail server changes", help: "", drops: false },
        Rule { id: "MAI-081", code: None, title: "Attachments are parts of a mail, after their bytes were compared with the digest", help: "", drops: false },
        Rule { id: "MAI-082", code: None, title: "Nothing in the readable text above the envelope is read as an envelope", help: "", drops: false },
        Rule { id: "MAI-083", code: None, title: "Each line of a mail is ASCII, and no text begins a header field", help: "", drops: false },
        Rule { id: "MAI-084", code: None, title: "A mail that is sent again has the same bytes; one that the relay itself wrote says so", help: "", drops: false },
        Rule { id: "MAI-085", code: None, title: "The mail for a REVOKE says what it means", help: "", drops: false },
        Rule { id: "TXT-001", code: None, title: "A text message has the beginning of a message on few lines, and says what is missing", help: "", drops: false },
        Rule { id: "TXT-002", code: None, title: "A text that asks has a code, which names the question and proves who got it", help: "", drops: false },
        Rule { id: "TXT-003", code: None, title: "A text that is sent again has the same words and the same key", help: "", drops: false },
        Rule { id: "TXT-010", code: None, title: "A callback counts if its signature and its time do", help: "", drops: false },
        Rule { id: "TXT-011", code: None, title: "An answer counts with the code of the question, from the number that got it, in time", help: "", drops: false },
        Rule { id: "TXT-012", code: None, title: "An answer becomes a RESPOND, once", help: "", drops: false },
        Rule { id: "TXT-013", code: None, title: "A text that did not arrive becomes an ERROR, once", help: "", drops: false },
    ];

    /// ENV-001: An envelope is UTF-8; a reader drops one leading byte order mark.
    pub const NOT_UTF8: Rule = TABLE[0];

    /// ENV-003: An envelope has no control characters except TAB, LF and CRLF, no DEL, no U+2028, no U+2029.
    pub const FORBIDDEN_CHARACTER: Rule = TABLE[2];

    /// ENV-010: The first line is \[\[SENDER→RECEIVER v1\]\].
    pub const DIRECTION_MALFORMED: Rule = TABLE[4];

    /// ENV-011: The direction line has exactly one arrow, → or ->.
    pub const DIRECTION_ARROW: Rule = TABLE[5];

    /// ENV-012: Sender and receiver are not empty and begin with a visible character.
    pub const DIRECTION_PARTY: Rule = TABLE[6];

    /// ENV-013: The version is v1; no other version is supported.
    pub const VERSION_UNSUPPORTED: Rule = TABLE[7];

    /// ENV-020: Each line of the head is Name: value, with the name at column 0.
    pub const HEADER_MALFORMED: Rule = TABLE[8];

    /// ENV-021: A reserved name is written in lower case.
    pub const RESERVED_CASE: Rule = TABLE[9];

    /// ENV-022: A header occurs once, without regard to case.
    pub const HEADER_DUPLICATE: Rule = TABLE[10];

    /// ENV-023: A core header that is present has a value.
    pub const HEADER_EMPTY: Rule = TABLE[11];

    /// ENV-024: An envelope has a session or a thread.
    pub const SESSION_OR_THREAD: Rule = TABLE[12];

    /// ENV-025: An envelope has user, context and intent, except a v1.0 response.
    pub const HEADER_MISSING: Rule = TABLE[13];

    /// ENV-027: No core header follows the first META block.
    pub const CORE_IN_BLOCK: Rule = TABLE[15];

    /// ENV-028: A session is a time, to the hour or finer, and a word; a reader keeps other spellings.
    pub const SESSION_SPELLING: Rule = TABLE[16];

    /// ENV-030: A META block opens with meta: and a lower-case namespace.
    pub const NAMESPACE_MALFORMED: Rule = TABLE[17];

    /// ENV-031: A key occurs once in its block, without regard to case.
    pub const KEY_DUPLICATE: Rule = TABLE[18];

    /// ENV-032: A namespace occurs once; audit and email may repeat.
    pub const NAMESPACE_DUPLICATE: Rule = TABLE[19];

    /// ENV-040: The body opens with body: or response: and the value |.
    pub const BODY_MARK: Rule = TABLE[22];

    /// ENV-041: An envelope has a body.
    pub const BODY_MISSING: Rule = TABLE[23];

    /// ENV-042: A body line is empty or starts with two spaces or a tab.
    pub const BODY_INDENT: Rule = TABLE[24];

    /// ENV-050: One sig: line follows the body; a v1.0 response may have none.
    pub const SIG_MISSING: Rule = TABLE[26];

    /// ENV-051: The value of sig: is none or algorithm:pkid=key-id;sig=base64.
    pub const SIG_MALFORMED: Rule = TABLE[27];

    /// ENV-052: An envelope ends with \[\[END\]\].
    pub const END_MISSING: Rule = TABLE[28];

    /// ENV-053: Nothing stands between sig: and \[\[END\]\], and nothing follows \[\[END\]\].
    pub const TEXT_AFTER_END: Rule = TABLE[29];

    /// ENV-060: An envelope has at most 1 MiB, before and after NFC.
    pub const ENVELOPE_TOO_LARGE: Rule = TABLE[30];

    /// ENV-061: A line has at most 64 KiB.
    pub const LINE_TOO_LONG: Rule = TABLE[31];

    /// ENV-062: The head has at most 256 headers, META lines and keys.
    pub const TOO_MANY_HEADERS: Rule = TABLE[32];

    /// ENV-063: A paste or file has at most 64 MiB and 65,536 envelopes.
    pub const PASTE_TOO_LARGE: Rule = TABLE[33];

    /// INT-002: A reader keeps a legacy intent as written and treats it as a core intent.
    pub const INTENT_LEGACY: Rule = TABLE[40];

    /// INT-003: A reader keeps and passes on an unknown intent.
    pub const INTENT_UNKNOWN: Rule = TABLE[41];

    /// INT-010: A RESPOND, ACK or NACK with a message id names its parent.
    pub const PARENT_MISSING: Rule = TABLE[42];

    /// INT-011: An ERROR has meta: error with a code of the taxonomy.
    pub const ERROR_CODE_MISSING: Rule = TABLE[43];

    /// INT-012: A REVOKE is signed.
    pub const REVOKE_UNSIGNED: Rule = TABLE[44];

    /// INT-013: A POLL names its Targets in meta: routing.
    pub const POLL_WITHOUT_TARGETS: Rule = TABLE[45];

    /// INT-014: An ESCALATE gives a reason, in meta: escalation or in its body.
    pub const ESCALATE_WITHOUT_REASON: Rule = TABLE[46];

    /// INT-015: A HANDOFF states what is needed, in X-Capabilities-Required or in its body.
    pub const HANDOFF_WITHOUT_REQUIREMENTS: Rule = TABLE[47];

    /// INT-016: A BROADCAST expects no answer.
    pub const BROADCAST_WANTS_ANSWER: Rule = TABLE[48];

    /// INT-018: A REQUEST has a body that is not empty.
    pub const REQUEST_EMPTY: Rule = TABLE[50];

    /// MET-001: A value may be a YAML or JSON flow on one line.
    pub const FLOW_MALFORMED: Rule = TABLE[51];

    /// MET-002: A known key has a value of its type; a reader keeps other values.
    pub const VALUE_TYPE: Rule = TABLE[52];

    /// MET-012: meta: attachments lists A1, A2 … with type, name, digest, and data when embedded.
    pub const META_ATTACHMENTS: Rule = TABLE[55];

    /// MET-013: The bytes of an attachment have its digest.
    pub const ATTACHMENT_DIGEST: Rule = TABLE[56];

    /// MET-023: meta: key carries a public key; a denied key identifies nobody.
    pub const META_KEY: Rule = TABLE[66];

    /// LNT-001: An id is a ULID or a UUIDv7; a reader keeps other ids.
    pub const ID_FORM: Rule = TABLE[69];

    /// LNT-002: A META key is in PascalCase or starts with X-.
    pub const KEY_STYLE: Rule = TABLE[70];

    /// LNT-003: A namespace is in the registry or starts with custom-.
    pub const NAMESPACE_UNKNOWN: Rule = TABLE[71];

    /// LNT-004: A key of a known namespace is in the registry or starts with X-.
    pub const KEY_UNKNOWN: Rule = TABLE[72];

    /// LNT-005: A name does not imitate letters of another alphabet.
    pub const LOOK_ALIKE: Rule = TABLE[73];

    /// LNT-006: An envelope has no bidirectional controls.
    pub const BIDI_CONTROL: Rule = TABLE[74];

    /// LNT-007: An envelope has no invisible characters.
    pub const INVISIBLE: Rule = TABLE[75];

    /// LNT-008: The scheme of an address is in the registry.
    pub const SCHEME_UNKNOWN: Rule = TABLE[76];

    /// ADR-001: An address is not empty and has no control characters.
    pub const ADDRESS_EMPTY: Rule = TABLE[77];

    /// ADR-003: An address of the form scheme://authority has an authority.
    pub const ADDRESS_AUTHORITY: Rule = TABLE[79];

    /// ADR-004: An email: address has a local part and a domain.
    pub const ADDRESS_MAIL: Rule = TABLE[80];

    /// ADR-005: A tel: address is a number.
    pub const ADDRESS_PHONE: Rule = TABLE[81];

    /// ADR-006: A URL has no white space.
    pub const ADDRESS_SPACE: Rule = TABLE[82];

    /// ADR-007: Two hex digits follow each percent sign in a URL.
    pub const ADDRESS_PERCENT: Rule = TABLE[83];

    /// ADR-009: A name or an address has no blank except the space, and no variation selector.
    pub const ADDRESS_UNSEEN: Rule = TABLE[85];

    /// ADR-010: A program looks a name up in the local table, on request in the DNS, and otherwise keeps the name.
    pub const RESOLVE_ORDER: Rule = TABLE[86];

    /// ADR-014: A look-up that fails for now does not mean that there is no address.
    pub const NAME_UNAVAILABLE: Rule = TABLE[90];

    /// CAN-007: Only an envelope that passes the strict reading has a canonical form.
    pub const CANONICAL_STRICT: Rule = TABLE[108];

    /// SCN-001: A paste contains at least one envelope.
    pub const NO_ENVELOPE: Rule = TABLE[113];

    /// SCN-002: A reader does not extract a message that is quoted inside another one.
    pub const QUOTED_INSIDE: Rule = TABLE[114];

    /// SCN-003: A direction line before the \[\[END\]\] of another message is an error for both.
    pub const DIRECTION_INSIDE: Rule = TABLE[115];

    /// SCN-006: A reader reports an \[\[END\]\] without a beginning.
    pub const STRAY_END: Rule = TABLE[118];

    /// PST-001: A reader removes a code fence around the envelope.
    pub const CODE_FENCE: Rule = TABLE[119];

    /// PST-002: A reader removes a uniform prefix such as >.
    pub const QUOTE_PREFIX: Rule = TABLE[120];

    /// PST-003: A reader removes a uniform extra indent.
    pub const EXTRA_INDENT: Rule = TABLE[121];

    /// PST-004: A reader removes padding at the ends of lines.
    pub const PADDING: Rule = TABLE[122];

    /// PST-005: A reader reads a no-break space outside the body text as a space.
    pub const NBSP: Rule = TABLE[123];

    /// PST-006: A reader removes zero-width characters outside the body.
    pub const ZERO_WIDTH: Rule = TABLE[124];

    /// PST-007: A reader reads another arrow in the direction line as →.
    pub const ARROW: Rule = TABLE[125];

    /// PST-008: A reader reads a reserved name in another case.
    pub const NAME_CASE: Rule = TABLE[126];

    /// PST-009: A reader removes Markdown around a name or a marker.
    pub const MARKDOWN: Rule = TABLE[127];

    /// PST-010: A reader reads a body without indent.
    pub const BODY_UNINDENTED: Rule = TABLE[128];

    /// PST-011: A reader reads an envelope whose line ends became spaces.
    pub const COLLAPSED: Rule = TABLE[129];

    /// PST-012: A reader joins a wrapped value.
    pub const WRAPPED: Rule = TABLE[130];

    /// PST-013: A reader reads a body on the line of its name.
    pub const INLINE_BODY: Rule = TABLE[131];

    /// PST-014: A reader joins a flow or list over several lines.
    pub const FLOW_LINES: Rule = TABLE[132];

    /// PST-015: A reader removes a comment after an id, and quotes around an id or an intent.
    pub const ID_COMMENT: Rule = TABLE[133];

    /// PST-016: A reader assumes sig: none for a missing sig: line.
    pub const SIG_ADDED: Rule = TABLE[134];

    /// PST-017: A reader leaves out text on the line of a marker.
    pub const TEXT_AROUND: Rule = TABLE[135];

    /// PST-018: A reader keeps the first of two equal names.
    pub const DUPLICATE_DROPPED: Rule = TABLE[136];

    /// PST-019: A reader reads an intent in another case.
    pub const INTENT_CASE: Rule = TABLE[137];

    /// PST-020: A reader resolves backslash escapes and HTML entities outside the body.
    pub const ESCAPES: Rule = TABLE[138];

    /// PST-021: A reader removes terminal escapes and stray control characters.
    pub const CONTROLS: Rule = TABLE[139];

    /// PST-022: A reader reads a lone CR, or U+2028 or U+2029 in the body, as a line end.
    pub const LINE_SEPARATORS: Rule = TABLE[140];

    /// PST-023: A reader removes line numbers in front of the lines.
    pub const LINE_NUMBERS: Rule = TABLE[141];

    /// PST-024: A reader removes a frame around the lines.
    pub const BOX: Rule = TABLE[142];

    /// PST-025: A reader reads a marker in another spelling.
    pub const MARKER_SPELLING: Rule = TABLE[143];

    /// PST-026: A reader leaves out an empty core header.
    pub const EMPTY_DROPPED: Rule = TABLE[144];

    /// PST-027: A reader reports missing headers and reads the rest.
    pub const HEADERS_LACKING: Rule = TABLE[145];

    /// PST-028: A reader reads a namespace in another case.
    pub const NAMESPACE_CASE: Rule = TABLE[146];

    /// PST-029: A reader completes a message whose end is known without \[\[END\]\].
    pub const END_ADDED: Rule = TABLE[147];

    /// TRN-003: Where one envelope is expected, a reader rejects a second one.
    pub const ONE_PER_REQUEST: Rule = TABLE[150];

    /// SIG-002: The algorithm is ed25519 or secp256r1.
    pub const ALGORITHM_UNKNOWN: Rule = TABLE[156];

    /// SIG-005: The record of the key decides the algorithm.
    pub const ALGORITHM_OF_KEY: Rule = TABLE[159];

    /// SIG-007: A signer does not replace a signature unless told to.
    pub const SIGNED_ALREADY: Rule = TABLE[161];

    /// SIG-010: The signature fits the canonical form that ends with the declared digest.
    pub const SIGNATURE_UNFIT: Rule = TABLE[162];

    /// SIG-011: An integrity block without a signature means that the signature was removed.
    pub const SIGNATURE_STRIPPED: Rule = TABLE[163];

    /// SIG-012: A verifier does not verify an envelope of which the reading left text out.
    pub const CONTENT_DROPPED: Rule = TABLE[164];

    /// SIG-015: A body that is not the signed one is damaged, and counts as unsigned.
    pub const BODY_DAMAGED: Rule = TABLE[167];

    /// SIG-020: A public key is written as its algorithm, :pk= and base64.
    pub const KEY_MALFORMED: Rule = TABLE[170];

    /// SIG-021: A program rejects a weak key, and a key in another encoding.
    pub const KEY_WEAK: Rule = TABLE[171];

    /// SIG-022: A key on the deny list verifies nothing.
    pub const KEY_DENIED: Rule = TABLE[172];

    /// SIG-024: A did:key id contains the key.
    pub const DID_KEY: Rule = TABLE[174];

    /// SIG-030: A verifier checks the rc1 form only on request; no program writes it.
    pub const RC1: Rule = TABLE[175];

    /// TRU-001: A verdict is one of eight words.
    pub const VERDICT: Rule = TABLE[176];

    /// TRU-002: Without a key, a verifier verifies nothing.
    pub const NO_KEY: Rule = TABLE[177];

    /// TRU-003: A key that comes with a message proves possession, and nothing else.
    pub const FIRST_CONTACT: Rule = TABLE[178];

    /// TRU-005: A message with another key for a known key id is not verified.
    pub const KEY_CHANGED: Rule = TABLE[180];

    /// TRU-006: A message of a known sender under another key id is not verified.
    pub const SENDER_CHANGED: Rule = TABLE[181];

    /// TRU-007: A distrusted key verifies nothing.
    pub const KEY_DISTRUSTED: Rule = TABLE[182];

    /// TRU-008: The Key-ID of a key block is the key id of the signature.
    pub const KEY_BLOCK: Rule = TABLE[183];

    /// TRU-009: A message of a sender who looks like a pinned one under another key id is not verified.
    pub const SENDER_LOOKS_LIKE: Rule = TABLE[184];

    /// TRU-010: A rotation carries proofs by the old and the new key.
    pub const ROTATION: Rule = TABLE[185];

    /// TRU-011: A replaced key can sign until its grace period expires.
    pub const KEY_REPLACED: Rule = TABLE[186];

    /// TRU-012: A revoked key verifies nothing.
    pub const KEY_REVOKED: Rule = TABLE[187];

    /// TRU-013: Only the key itself or its successor revokes a key.
    pub const REVOCATION_UNPROVEN: Rule = TABLE[188];

    /// TRU-021: A domain without key records vouches for no key.
    pub const DNS_ABSENT: Rule = TABLE[190];

    /// TRU-022: A look-up that fails for now gives no verdict about the key.
    pub const DNS_UNAVAILABLE: Rule = TABLE[191];

    /// TRU-023: A key that the domain does not list is not verified.
    pub const DNS_OTHER_KEY: Rule = TABLE[192];

    /// TRU-024: If DNSSEC is required, an answer without it vouches for nothing.
    pub const DNSSEC_REQUIRED: Rule = TABLE[193];

    /// TRU-026: A domain vouches only for its own senders; another sender needs a pin.
    pub const SENDER_UNBOUND: Rule = TABLE[195];

    /// TRU-030: A trust file is TOML of the schema crosstalk.trust/1.
    pub const TRUST_FILE: Rule = TABLE[196];

    /// RED-023: A program does not redact a signed envelope unless it may drop the signature.
    pub const REDACTION_SIGNED: Rule = TABLE[213];

    /// HTP-012: The same message again gets the first answer, and is not delivered again.
    pub const HTTP_REPLAY: Rule = TABLE[224];

    /// HTP-030: Only the relay sends as SYSTEM, and no sender looks like a known one.
    pub const HTTP_SYSTEM_SENDER: Rule = TABLE[239];

    /// HTP-074: The last hop proves which relay passed an envelope on.
    pub const HTTP_HOP_PROOF: Rule = TABLE[273];

    /// CON-001: Personal data and sensitive scopes need an explicit consent.
    pub const CONSENT_MISSING: Rule = TABLE[277];

    /// CON-002: A program rejects a message with explicit_no.
    pub const CONSENT_DENIED: Rule = TABLE[278];

    /// CON-003: An implicit consent is not enough for sensitive data.
    pub const CONSENT_IMPLICIT: Rule = TABLE[279];

    /// CON-004: A consent in an unknown word permits nothing.
    pub const CONSENT_UNKNOWN: Rule = TABLE[280];

    /// CON-005: A program neither accepts nor hands out a message that has expired.
    pub const CONSENT_OVER: Rule = TABLE[281];

    /// CON-006: A program rejects an Expires that is not a time.
    pub const CONSENT_UNCLEAR_END: Rule = TABLE[282];

    /// CON-007: A consent with a time in the future is not valid yet.
    pub const CONSENT_NOT_YET: Rule = TABLE[283];

    /// CON-008: A policy can require a signed consent for a scope.
    pub const CONSENT_SIGNED: Rule = TABLE[284];

    /// CON-009: A named jurisdiction requires what its profile says.
    pub const CONSENT_JURISDICTION: Rule = TABLE[285];

    /// CON-010: A policy can require an explicit consent for everything that leaves the organisation.
    pub const CONSENT_BORDER: Rule = TABLE[286];

    /// CON-011: A program checks pii_redacted by searching for personal data.
    pub const CONSENT_REDACTED: Rule = TABLE[287];

    /// CON-012: no_third_party keeps a message inside the organisation.
    pub const CONSENT_THIRD_PARTY: Rule = TABLE[288];

    /// CON-021: A message is never wider than the consent that it names.
    pub const CONSENT_WIDER: Rule = TABLE[290];

    /// CON-022: A transferred consent never holds longer than the original.
    pub const CONSENT_LONGER: Rule = TABLE[291];

    /// CON-023: A transferred consent names the original.
    pub const CONSENT_TRANSFER: Rule = TABLE[292];

    /// CON-024: Only the granter and the recipients of a consent rely on it or transfer it.
    pub const CONSENT_NOT_YOURS: Rule = TABLE[293];

    /// CON-025: A message under a consent reaches only the granter and the recipients of that consent.
    pub const CONSENT_RECIPIENT: Rule = TABLE[294];

    /// CON-026: Granting a consent again never adds a scope.
    pub const CONSENT_RENEWAL: Rule = TABLE[295];

    /// CON-027: An agent cannot agree for a person.
    pub const CONSENT_GRANTER: Rule = TABLE[296];

    /// CON-030: A revoked consent permits nothing.
    pub const CONSENT_REVOKED: Rule = TABLE[297];

    /// CON-031: A REVOKE of a consent or a permission is certainly from its sender.
    pub const CONSENT_REVOKE_PROOF: Rule = TABLE[298];

    /// CON-032: Only the granter or a configured authority revokes a consent.
    pub const CONSENT_REVOKE_BY: Rule = TABLE[299];

    /// CON-033: A permission is a token, by its name.
    pub const CONSENT_PERMISSION: Rule = TABLE[300];

    /// CON-014: A message names at most 64 consents.
    pub const CONSENT_MANY: Rule = TABLE[303];

    /// POL-001: meta: poll says how a POLL is counted.
    pub const POLL_KEYS: Rule = TABLE[312];
}
