//! The limits of a mail (MAI-001). A mail beyond one of them is rejected before anything else is done with it.

/// The largest mail, in bytes: 32 MiB.
pub const MAIL_BYTES: usize = 32 * 1024 * 1024;
/// The largest head of a mail or of one of its parts, in bytes: 256 KiB.
pub const HEAD_BYTES: usize = 256 * 1024;
/// The most header fields of a mail.
pub const FIELDS: usize = 1_000;
/// The most parts of a mail.
pub const PARTS: usize = 200;
/// How deep parts may be nested.
pub const DEPTH: usize = 16;
/// The largest text of a mail, in bytes, after its encoding was undone: 2 MiB.
pub const TEXT_BYTES: usize = 2 * 1024 * 1024;
/// The most lines of a text.
pub const LINES: usize = 50_000;
/// The most envelopes that a mail brings.
pub const ENVELOPES: usize = 100;
