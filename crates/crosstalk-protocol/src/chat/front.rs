//! What stands before the first turn: front matter, a title, a date, the name of the assistant.

use super::speaker::Word;
use crosstalk_envelope::Timestamp;

/// What an export says about itself.
#[derive(Debug, Default)]
pub(super) struct Front {
    pub(super) title: Option<String>,
    pub(super) at: Option<Timestamp>,
    /// The assistant that the title, the front matter or the text around them names.
    pub(super) assistant: Option<&'static str>,
}

/// When a chat began, by the names that exporters use. When it was changed or exported is another matter.
const CREATED: [&str; 6] = [
    "created",
    "created_at",
    "created at",
    "create_time",
    "date created",
    "date",
];

impl Front {
    pub(super) fn read(preamble: &str) -> Self {
        let mut front = Self {
            assistant: Word::mentioned(preamble),
            ..Self::default()
        };
        let mut rank = CREATED.len();
        for line in preamble.lines() {
            let line = line.trim();
            if let Some(title) = line.strip_prefix("# ") {
                front.title.get_or_insert_with(|| title.trim().to_owned());
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let noise = ['*', '_', '-', '>', ' ', '\t', '"', '\''];
            let key = key.trim_matches(noise).to_lowercase();
            let value = value.trim_matches(noise);
            if key == "title" && !value.is_empty() {
                front.title = Some(value.to_owned());
            }
            let found = CREATED.iter().position(|c| *c == key);
            let at = super::label::time_in(value);
            if let Some(better) = found.filter(|f| *f < rank && at.is_some()) {
                (rank, front.at) = (better, at);
            }
        }
        front.title = front.title.filter(|t| !t.is_empty());
        front
    }
}
