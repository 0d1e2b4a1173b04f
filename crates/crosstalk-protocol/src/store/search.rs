//! Search terms as a person types them, and the text that is searched.

use super::arrival::Arrival;
use crosstalk_envelope::{CoreHeader, Document, Reading};

/// A search: a message has to match every term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The terms.
    pub terms: Vec<Term>,
}

/// A word, a phrase or the beginning of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Where to look; everywhere if nothing is said.
    pub field: Option<Field>,
    /// The words, which have to follow each other.
    pub words: Vec<String>,
    /// Whether the last word may go on.
    pub prefix: bool,
}

/// A part of a message that can be searched alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The sender and who speaks.
    From,
    /// The receiver.
    To,
    /// Its subject.
    Context,
    /// The intent, as it was written or as it is meant.
    Intent,
}

/// Nothing to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no word to look for: a word has letters or digits")]
pub struct SearchError;

impl Search {
    /// Reads what a person typed: words, `"a phrase"`, `begin*`, and `from:`, `to:`, `context:`, `intent:` before one.
    ///
    /// ```
    /// use crosstalk_protocol::store::{Field, Search};
    /// let search = Search::parse("jwt \"short expiry\" from:claude auth*").unwrap();
    /// assert_eq!(search.terms.len(), 4);
    /// assert_eq!(search.terms[1].words, ["short", "expiry"]);
    /// assert_eq!(search.terms[2].field, Some(Field::From));
    /// assert!(search.terms[3].prefix);
    /// assert!(Search::parse("--").is_err());
    /// ```
    ///
    /// # Errors
    /// If there is no letter and no digit in it.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let terms: Vec<Term> = pieces(text).into_iter().filter_map(term).collect();
        match terms.is_empty() {
            true => Err(SearchError),
            false => Ok(Self { terms }),
        }
    }

    /// The same for a person who may still be typing: the last word may go on, unless it is in quotes. One letter alone
    /// would find almost everything, and has to be a word.
    ///
    /// ```
    /// use crosstalk_protocol::store::Search;
    /// let goes_on = |text| Search::parse_typed(text).unwrap().terms.last().unwrap().prefix;
    /// assert!(goes_on("jwt expi") && goes_on("from:chat"));
    /// assert!(!goes_on("jwt \"expi\"") && !goes_on("plan b"));
    /// ```
    ///
    /// # Errors
    /// If there is no letter and no digit in it.
    pub fn parse_typed(text: &str) -> Result<Self, SearchError> {
        let mut search = Self::parse(text)?;
        let is_quoted = text.trim_end().ends_with('"');
        if let Some(last) = search.terms.last_mut() {
            let word = last.words.last().map_or(0, |w| w.chars().count());
            last.prefix |= !is_quoted && word > 1;
        }
        Ok(search)
    }
}

/// The text in pieces at white space outside quotes.
fn pieces(text: &str) -> Vec<String> {
    let (mut out, mut piece, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        if c.is_whitespace() && !quoted {
            out.push(std::mem::take(&mut piece));
        } else {
            piece.push(c);
        }
    }
    out.push(piece);
    out
}

fn term(piece: String) -> Option<Term> {
    let (field, rest) = match piece.split_once(':') {
        Some((name, rest)) => match field(name) {
            Some(field) => (Some(field), rest),
            None => (None, piece.as_str()),
        },
        None => (None, piece.as_str()),
    };
    let prefix = rest.ends_with('*');
    let words = searchable(rest);
    let words: Vec<String> = words
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect();
    (!words.is_empty()).then_some(Term {
        field,
        words,
        prefix,
    })
}

fn field(name: &str) -> Option<Field> {
    let fields = [
        ("from", Field::From),
        ("to", Field::To),
        ("context", Field::Context),
        ("intent", Field::Intent),
    ];
    let mut fields = fields.into_iter();
    fields
        .find(|(n, _)| n.eq_ignore_ascii_case(name))
        .map(|(_, f)| f)
}

impl Search {
    /// Whether every term is found in a message. Words are compared without their case; an adapter with an index may also
    /// find words that differ in accents.
    pub fn finds(&self, arrival: &Arrival) -> bool {
        let texts = searched_texts(&arrival.text).map(|text| split(&text));
        let [_, context, sender, receiver, intent] = &texts;
        let is_found = |term: &Term| match term.field {
            None => texts.iter().any(|words| term.is_in(words)),
            Some(Field::From) => term.is_in(sender),
            Some(Field::To) => term.is_in(receiver),
            Some(Field::Context) => term.is_in(context),
            Some(Field::Intent) => term.is_in(intent),
        };
        !self.terms.is_empty() && self.terms.iter().all(is_found)
    }
}

impl Term {
    fn is_in(&self, words: &[String]) -> bool {
        let wanted = split(&self.words.join(" "));
        let Some((last, before)) = wanted.split_last() else {
            return false;
        };
        words.windows(wanted.len()).any(|found| {
            found.split_last().is_some_and(|(end, begin)| {
                let is_last = end == last || (self.prefix && end.starts_with(last.as_str()));
                begin == before && is_last
            })
        })
    }
}

/// The words of a text, without their case.
fn split(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// A text as it is searched: characters of scripts that write no spaces between words stand alone.
pub fn searchable(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if stands_alone(c) {
            out.push(' ');
            out.push(c);
            out.push(' ');
        } else {
            out.push(c);
        }
    }
    out
}

/// The searched parts of the text of a message: body, context, sender, receiver, intent.
pub fn searched_texts(text: &str) -> [String; 5] {
    let document = Document::parse(text, Reading::Strict);
    let two = |one: &str, other: &str| searchable(&format!("{one} {other}"));
    let header = |core| document.header(core).unwrap_or_default();
    let meaning = document.envelope().meaning();
    [
        searchable(&document.body_text()),
        searchable(header(CoreHeader::Context)),
        two(document.sender(), header(CoreHeader::User)),
        searchable(document.receiver()),
        two(
            header(CoreHeader::Intent),
            meaning.map_or("", |m| m.as_str()),
        ),
    ]
}

/// Han, kana, Thai, Lao, Burmese, Khmer.
const fn stands_alone(c: char) -> bool {
    matches!(
        c,
        '\u{0e00}'..='\u{0eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{323af}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_spaces_are_found_by_their_characters() {
        let search = Search::parse("認証 FROM:ann http://x.example").unwrap();
        let words: Vec<Vec<String>> = search.terms.iter().map(|t| t.words.clone()).collect();
        assert_eq!(
            words,
            [vec!["認", "証"], vec!["ann"], vec!["http", "x", "example"]]
        );
        assert_eq!(search.terms[1].field, Some(Field::From));
    }

    #[test]
    fn an_open_quote_ends_with_the_text() {
        let search = Search::parse("\"two words").unwrap();
        assert_eq!(search.terms.len(), 1);
        assert_eq!(Search::parse(" \" "), Err(SearchError));
    }
}
