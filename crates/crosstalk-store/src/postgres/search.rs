//! Words of messages: PostgreSQL finds candidates by an index, and the rules of searching decide ([`Search::finds`]).

use crosstalk_protocol::relay::port::{FilledSearch, SearchQuery};
use crosstalk_protocol::store::{Arrival, Field, Listing, Record, Search, Term, searched_texts};
use std::collections::BTreeSet;

use super::fault::PgResult;
use super::inbox;
use super::index::{INDEXED, progress};
use super::intake::{INTAKE_ROW, intake_row};
use super::sql::{Db, params, value};

/// How long a word of the index is at most, and how many bytes the words of a message take at most: PostgreSQL has such
/// limits. The rest of a longer message is not found.
const WORD_CHARS: usize = 400;
const WORDS_BYTES: usize = 600_000;
/// How many candidates are looked at together.
const CANDIDATES: i64 = 200;

/// The words that are searched for in one part alone begin so.
const PARTS: [&str; 5] = ["", "context:", "from:", "to:", "intent:"];

/// The words of a text as the index has them.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty()).map(str::to_lowercase);
    words.map(|word| word.chars().take(WORD_CHARS).collect())
}

/// Makes messages searchable, or searchable by other words.
pub(super) fn fill(db: &Db, messages: &[(i64, &Arrival)]) -> PgResult<()> {
    let (mut seqs, mut texts) = (Vec::new(), Vec::new());
    for (seq, arrival) in messages {
        let (mut all, mut bytes) = (BTreeSet::new(), 0);
        let parts = searched_texts(&arrival.text);
        // The short parts first: they are always found.
        for (part, text) in PARTS.iter().zip(&parts).rev() {
            for word in words(text) {
                for word in [format!("{part}{word}"), word] {
                    if bytes < WORDS_BYTES && !all.contains(&word) {
                        bytes += word.len();
                        all.insert(word);
                    }
                }
            }
        }
        seqs.push(*seq);
        texts.push(all.into_iter().collect::<Vec<String>>().join("\n"));
    }
    let sql = "INSERT INTO words (seq, words) SELECT w.seq, array_to_tsvector(string_to_array(w.words, chr(10))) FROM \
        unnest($1::bigint[], $2::text[]) AS w (seq, words) ON CONFLICT (seq) DO UPDATE SET words = excluded.words";
    db.run(sql, params![seqs, texts])?;
    Ok(())
}

/// A search in the query language of the index: every message that it finds is a candidate. All words are quoted, so that no
/// input acts as an operator.
fn expression(search: &Search) -> String {
    let terms: Vec<String> = search.terms.iter().flat_map(lexemes).collect();
    terms.join(" & ")
}

fn lexemes(term: &Term) -> Vec<String> {
    let part = match term.field {
        None => PARTS[0],
        Some(Field::Context) => PARTS[1],
        Some(Field::From) => PARTS[2],
        Some(Field::To) => PARTS[3],
        Some(Field::Intent) => PARTS[4],
    };
    let all: Vec<String> = words(&term.words.join(" ")).collect();
    let last = all.len().saturating_sub(1);
    let lexeme = |(place, word): (usize, String)| {
        let more = if term.prefix && place == last {
            ":*"
        } else {
            ""
        };
        let quoted = format!("{part}{word}")
            .replace('\\', "\\\\")
            .replace('\'', "''");
        format!("'{quoted}'{more}")
    };
    all.into_iter().enumerate().map(lexeme).collect()
}

/// The messages that a search finds, the latest first.
pub(super) fn find(db: &Db, query: &SearchQuery) -> PgResult<FilledSearch> {
    let through = progress(db, INDEXED)?.unsigned_abs();
    let expression = expression(&query.search);
    let mut items: Vec<Record> = Vec::new();
    let (mut skipped, mut before, mut more) = (0, i64::MAX, false);
    if !expression.is_empty() {
        let sql = "SELECT seq FROM words WHERE words @@ $1::text::tsquery AND seq < $2 ORDER BY seq DESC LIMIT $3";
        'pages: loop {
            let asked = params![expression, before, CANDIDATES];
            let candidates = db.all(sql, asked, value::<i64>)?;
            let Some(last) = candidates.last() else { break };
            before = *last;
            let of = format!(
                "SELECT {INTAKE_ROW} FROM intake WHERE seq = ANY ($1) AND text <> '' ORDER BY seq DESC"
            );
            for row in db.all(&of, params![candidates], intake_row)? {
                if !query.search.finds(&row.arrival) {
                    continue;
                }
                if skipped < query.page.skip {
                    skipped += 1;
                } else if items.len() == query.page.limit {
                    more = true;
                    break 'pages;
                } else {
                    items.extend(inbox::at(db, row.seq)?);
                }
            }
        }
    }
    Ok(FilledSearch {
        found: Listing { items, more },
        through,
    })
}
