//! Properties of the two readings.

use crate::canonical::Meaning;
use crate::text;
use crosstalk_envelope::{Document, Edit, Reading, Severity, diagnose, json, lint, scan};

/// The strict reading: lossless, canonical, editable.
pub fn strict(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let document = Document::parse(text, Reading::Strict);
    assert_eq!(
        document.to_string(),
        text,
        "text → document → text is the identity"
    );
    places_are_in(&document, text);
    if !document.is_accepted() {
        assert!(
            document.canonical().is_err(),
            "what is refused has no canonical form"
        );
        return;
    }
    canonical_holds(&document);
    edits_stay_local(&document);
    // A clean text reads the same in a paste.
    let pasted = scan(text, Reading::Paste);
    for paste in &pasted.documents {
        if let Ok(canonical) = paste.canonical()
            && pasted.documents.len() == 1
            && pasted.rejected.is_empty()
            && !paste
                .diagnostics()
                .iter()
                .any(|d| d.severity == Severity::Repair)
        {
            assert_eq!(
                Ok(canonical),
                document.canonical(),
                "an unrepaired paste is the message"
            );
        }
    }
}

/// The paste reading: what it gives is well-formed, in order, and says what it changed.
pub fn paste(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let found = scan(text, Reading::Paste);
    let mut end = 0;
    for document in &found.documents {
        assert!(document.is_accepted());
        assert!(document.span().start >= end, "envelopes do not overlap");
        end = document.span().end;
        assert_eq!(
            text.get(document.span()),
            Some(document.to_string().as_str()),
            "the source is part of the text"
        );
        places_are_in(document, text);
        lint(document);
        let _ = diagnose(document);
        if document.is_well_formed() {
            canonical_holds(document);
        }
        let repaired = document
            .diagnostics()
            .iter()
            .any(|d| d.severity == Severity::Repair);
        let as_it_is = Meaning::of(&Document::parse(document.source(), Reading::Strict));
        assert!(
            repaired || as_it_is == Meaning::of(document),
            "nothing is changed in silence"
        );
    }
    for finding in &found.rejected {
        assert!(finding.span.end <= text.len() && finding.span.start <= finding.span.end);
    }
    assert!(
        !found.documents.is_empty() || !found.rejected.is_empty(),
        "something is always said"
    );
    let _ = json::report(text, &found);
}

fn places_are_in(document: &Document<'_>, text: &str) {
    for finding in document.diagnostics().iter().chain(&lint(document)) {
        let span = finding.span.clone();
        assert!(
            span.start <= span.end && span.end <= text.len(),
            "{finding} at {span:?}"
        );
        finding.render(text);
    }
}

/// The canonical form is the same however the message is written, and says all that the message says.
fn canonical_holds(document: &Document<'_>) {
    let canonical = document.canonical().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        Meaning::decode(&canonical),
        Some(Meaning::of(document)),
        "{canonical}"
    );
    let rewritten = document.to_well_formed();
    let again = Document::parse(&rewritten, Reading::Strict);
    assert!(
        again.is_accepted(),
        "{rewritten}\n{:?}",
        again.diagnostics()
    );
    assert_eq!(
        again.canonical().as_deref(),
        Ok(canonical.as_str()),
        "idempotent"
    );
    assert_eq!(
        again.to_well_formed(),
        rewritten,
        "writing what was written changes nothing"
    );
}

/// A hop's edits add bytes, and take none away.
fn edits_stay_local(document: &Document<'_>) {
    let hop = || {
        Edit::new(document)
            .and_then(|e| e.add_block("audit", &[("Hop", "7"), ("Received-By", "relay://a")]))
    };
    let Ok(edit) = hop() else {
        panic!("an accepted document can be edited")
    };
    let edited = edit.finish();
    let before = document.source();
    let kept = common_prefix(before, &edited);
    let added = edited.len() - before.len();
    assert_eq!(
        before.get(kept..),
        edited.get(kept + added..),
        "all bytes but the added ones stay"
    );
    let after = Document::parse(&edited, Reading::Strict);
    if after.is_accepted() {
        assert_eq!(
            after.canonical(),
            document.canonical(),
            "a hop leaves the canonical form alone"
        );
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    a.floor_char_boundary(same)
}
