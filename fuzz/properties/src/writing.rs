//! Properties of what is written, and of the small readers.

use crate::text;
use crosstalk_envelope::flow::Flow;
use crosstalk_envelope::meta::{Attachment, ConsentValue, Digest, list, options, words};
use crosstalk_envelope::{
    Address, Builder, CoreHeader, Document, Reading, Session, Severity, Signature, Timestamp,
    base64, fence, id, json, scan,
};

/// The builder: an error, or an envelope that says exactly what was given.
pub fn builder(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let mut parts = text.split('\u{1f}');
    let mut next = || parts.next().unwrap_or("x");
    let (sender, receiver, body) = (next(), next(), next());
    let mut builder = Builder::new(sender, receiver).body(body);
    for core in CoreHeader::ALL {
        let value = next();
        if value != "-" {
            builder = builder.core(core, value);
        }
    }
    builder = builder.header(next(), next()).meta(next(), next(), next());
    let Ok(written) = builder.build() else { return };
    let document = Document::parse(&written, Reading::Strict);
    assert!(document.is_accepted());
    assert_eq!(document.to_well_formed(), written);
    let pasted = scan(&written, Reading::Paste);
    assert_eq!(
        pasted.documents.len(),
        1,
        "one message is one message in a paste, too"
    );
    let repaired = |d: &Document<'_>| {
        d.diagnostics()
            .iter()
            .any(|f| f.severity == Severity::Repair)
    };
    for paste in pasted.documents.iter().filter(|d| !repaired(d)) {
        assert_eq!(paste.canonical(), document.canonical());
    }
    let fenced = fence(&written);
    assert_eq!(
        scan(&fenced, Reading::Paste).documents.len(),
        1,
        "and in a fence"
    );
}

/// The JSON form: what is read becomes JSON and comes back as the same message.
pub fn json(data: &[u8]) {
    let Some(text) = text(data) else { return };
    for builder in json::builders(text).unwrap_or_default() {
        let Ok(written) = builder.build() else {
            continue;
        };
        let document = Document::parse(&written, Reading::Strict);
        let report = json::report(&written, &scan(&written, Reading::Strict));
        let Ok(printed) = serde_json::to_string(&report) else {
            panic!("a report is JSON")
        };
        let again = json::builders(&printed).unwrap_or_else(|e| panic!("{e}"));
        let [again] = again.as_slice() else {
            panic!("one message comes back")
        };
        let again = again.build().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(
            Document::parse(&again, Reading::Strict).canonical(),
            document.canonical()
        );
    }
}

/// The small readers: nothing panics, and what is read prints back.
pub fn values(data: &[u8]) {
    let Some(text) = text(data) else { return };
    if let Ok(address) = Address::parse(text) {
        assert_eq!(address.to_string(), text);
        let parts = [
            address.authority(),
            address.user(),
            address.host(),
            address.query(),
            address.fragment(),
        ];
        assert!(
            parts.into_iter().flatten().all(|p| text.contains(p)) && text.contains(address.path())
        );
    }
    if let Some(bytes) = base64::decode(text) {
        assert_eq!(base64::encode(&bytes), text, "base64 is canonical");
    }
    assert_eq!(base64::decode(&base64::encode(data)).as_deref(), Some(data));
    if let Some(time) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
    }
    if let Ok(Signature::Signed {
        algorithm,
        pkid,
        base64,
    }) = Signature::parse(text)
    {
        assert_eq!(format!("{algorithm}:pkid={pkid};sig={base64}"), text);
    }
    if let Some(digest) = Digest::parse(text) {
        assert_eq!(digest.to_string(), text.to_ascii_lowercase());
    }
    let _ = (
        Flow::parse(text),
        Attachment::parse(text),
        ConsentValue::parse(text),
        Session::of(text).is_usual(),
    );
    let _ = (
        list(text),
        options(text),
        words(text),
        id::IdForm::of(text),
        id::time_of(text),
    );
}
