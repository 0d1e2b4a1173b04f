//! The limits of the format (ENV-060 to ENV-063).

/// The largest envelope, in bytes, before and after NFC: 1 MiB.
pub const ENVELOPE_BYTES: usize = 1024 * 1024;
/// The longest line, in bytes, without its line end: 64 KiB.
pub const LINE_BYTES: usize = 64 * 1024;
/// The most headers, `meta:` lines and keys in one envelope.
pub const HEADERS: usize = 256;
/// The largest paste or file, in bytes: 64 MiB.
pub const PASTE_BYTES: usize = 64 * 1024 * 1024;
/// The most envelopes in one paste or file.
pub const ENVELOPES: usize = 65_536;
/// How many diagnostics one envelope collects before it says that there are more.
pub const DIAGNOSTICS: usize = 200;
