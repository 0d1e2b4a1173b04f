//! No change of a text makes a message verified that was not signed.

use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::{
    Algorithm, Document, PrivateKey, PublicKey, Reading, Timestamp, rc1, scan,
};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{
    KeyStanding, KnownKey, Origin, Trust, Verdict, VerdictWord, VerifyContext, verify,
};
use std::sync::LazyLock;

const PKID: &str = "alice@keys";
const NOW: Timestamp = Timestamp::from_millis(1_763_208_000_000);
const MESSAGE: &str = "[[A→B v1]]\nuser: u\nsession: s\nmessage: 01K74V6VX0S86Z5JATM52C3M7Z\ncontext: c d\n\
    intent: REQUEST\n\nmeta: routing\nX-Priority: low\n\nbody: |\n  It's one \"thing\" & another -- or < two:\n\n\
    \x20   - tea\n    - coffee\nsig: none\n[[END]]\n";

/// The one message that was signed with the one key that is trusted.
struct Signed {
    text: String,
    canonical: String,
    trust: Trust,
}

static SIGNED: LazyLock<Option<Signed>> = LazyLock::new(|| {
    let key = PrivateKey::from_seed(Algorithm::Ed25519, &[1; 32]).ok()?;
    let block = key_block(PKID, &key.public(), None);
    let signer = Signer {
        key: &key,
        pkid: PKID,
        at: NOW,
        key_block: &block,
    };
    let text = signer
        .sign(&Document::parse(MESSAGE, Reading::Strict))
        .ok()?;
    let canonical = Document::parse(&text, Reading::Strict).canonical().ok()?;
    let mut trust = Trust::default();
    let pin = KnownKey {
        id: PKID.to_owned(),
        key: key.public(),
        since: NOW,
        how: Origin::Manual,
        by: None,
        senders: vec!["A".to_owned()],
        standing: KeyStanding::Active,
        credential: None,
    };
    trust.pin(pin).ok()?;
    Some(Signed {
        text,
        canonical,
        trust,
    })
});

/// A text that was signed, for those who damage it.
pub fn signed_message() -> &'static str {
    SIGNED.as_ref().map_or("", |s| &s.text)
}

/// Only what was signed is verified, in the words that were signed; and every text of keys reads back.
pub fn trust(data: &[u8]) {
    let Some(text) = crate::text(data) else {
        return;
    };
    let Some(signed) = SIGNED.as_ref() else {
        panic!("the message of the property can't be signed");
    };
    let stranger = Trust::default();
    for document in &scan(text, Reading::Paste).documents {
        for trust in [&signed.trust, &stranger] {
            let question = VerifyContext {
                restore: true,
                ..VerifyContext::at(NOW)
            };
            let verdict = verify(document, trust, &question);
            check(&verdict, signed, text);
        }
    }
    round_trips(text);
}

fn check(verdict: &Verdict, signed: &Signed, text: &str) {
    let is_verified = matches!(
        verdict.word(),
        VerdictWord::Verified | VerdictWord::FirstContact
    );
    match verdict.verified() {
        Some(verified) => {
            assert!(is_verified, "verified, and the verdict is another: {text}");
            assert_eq!(verified.canonical(), signed.canonical, "forged: {text}");
            let rebuilt = verified.to_envelope();
            let rebuilt = Document::parse(&rebuilt, Reading::Strict);
            let canonical = rebuilt.canonical().unwrap_or_default();
            assert_eq!(canonical, signed.canonical, "not rebuilt: {text}");
        }
        None => assert!(!is_verified, "nothing to show for the verdict: {text}"),
    }
    if let Some(restored) = verdict.restored() {
        let body = Document::parse(&signed.text, Reading::Strict).body_text();
        assert_eq!(restored, body, "restored to something else: {text}");
    }
    for sentence in [verdict.sentence(), verdict.next()] {
        assert!(
            !sentence.is_empty() && !sentence.contains('\n'),
            "{sentence}"
        );
    }
}

fn round_trips(text: &str) {
    let line = text.trim_end_matches('\n');
    if let Ok(key) = PublicKey::parse_record(line) {
        assert_eq!(key.record(), line);
    }
    if let Some(Ok(key)) = PublicKey::from_did(line) {
        let written = key.to_did();
        assert!(
            line == written || line.starts_with(&format!("{written}#")),
            "{line}"
        );
    }
    if let Ok(key) = PublicKey::from_pem(text) {
        assert!(PublicKey::from_pem(&key.to_pem()).is_ok_and(|k| k == key));
    }
    if let Ok(trust) = Trust::parse(text) {
        assert_eq!(
            Trust::parse(&trust.to_text()).as_ref(),
            Ok(&trust),
            "{text}"
        );
    }
    // No test signs with a denied key.
    assert!(rc1::verify(text, None).is_err() || text.contains("BROTHER"));
}
