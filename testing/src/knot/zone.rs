//! The zones that a server serves.

use std::fmt::Write as _;

/// A zone: its name and its records.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    records: String,
    signing: Option<Signing>,
}

/// How the server signs a zone, always with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// For two weeks; what is not there is denied with NSEC.
    Nsec,
    /// For two weeks; what is not there is denied with NSEC3.
    Nsec3,
    /// For four minutes at a time, which is less than the TTL of the records.
    Minutes,
    /// For three seconds at a time.
    Seconds,
}

impl Zone {
    /// A zone with nothing but what every zone has.
    pub fn new(name: &str) -> Self {
        let name = format!("{}.", name.trim_end_matches('.'));
        let records = format!(
            "$ORIGIN {name}\n$TTL 300\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n"
        );
        Self {
            name,
            records,
            signing: None,
        }
    }

    /// A zone with this text, whatever it is: signed elsewhere, tampered with, or nothing that can be loaded, in
    /// which case the server answers SERVFAIL.
    pub fn with_text(name: &str, text: &str) -> Self {
        Self {
            records: text.to_owned(),
            ..Self::new(name)
        }
    }

    /// One more record, as in a zone file: `www A 127.0.0.1`.
    #[must_use]
    pub fn record(mut self, line: &str) -> Self {
        let _ = writeln!(self.records, "{line}");
        self
    }

    /// One more TXT record, of these strings.
    #[must_use]
    pub fn txt(self, owner: &str, strings: &[&str]) -> Self {
        let mut line = format!("{owner} TXT");
        for string in strings {
            let _ = write!(
                line,
                " \"{}\"",
                string.replace('\\', "\\\\").replace('"', "\\\"")
            );
        }
        self.record(&line)
    }

    /// The same zone, signed by the server.
    #[must_use]
    pub fn signed(mut self, signing: Signing) -> Self {
        self.signing = Some(signing);
        self
    }

    /// Its name, with a dot at the end.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn file(&self) -> String {
        match self.name.trim_end_matches('.') {
            "" => "root.zone".to_owned(),
            name => format!("{name}.zone"),
        }
    }

    pub(super) fn text(&self) -> String {
        self.records.clone()
    }

    pub(super) fn signing(&self) -> Option<Signing> {
        self.signing
    }
}
