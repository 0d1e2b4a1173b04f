//! Which consent holds in a thread, and what goes on with a bundle.

use crate::bundle::{MESSAGE, bundle, escalated};
use crate::conversation::{at, judged, message, records};
use crosstalk_envelope::{Builder, Document, ErrorCode, Reading, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::bundle::{
    BundleError, ConsentStanding, Escalation, HandoffBundle, consent_state, escalation, handoff,
};
use crosstalk_protocol::consent::Pii;
use crosstalk_protocol::store::Record;

/// A message with these lines of `meta: privacy`.
fn private(number: usize, fields: &str) -> Builder {
    let fields = fields.split(';').map(|f| f.split_once('=').unwrap());
    fields.fold(message(number, "BROADCAST", "x"), |b, (key, value)| {
        b.meta("privacy", key.trim(), value)
    })
}

/// The REVOKE of a consent, under this verdict.
fn revoke(number: usize, id: &str, effective: Option<&str>, verdict: VerdictWord) -> Record {
    let mut builder = message(number, "REVOKE", "stop")
        .meta("revocation", "Consent-ID", id)
        .sig(format!(
            "ed25519:pkid=a@example.com;sig={}==",
            "A".repeat(86)
        ));
    if let Some(effective) = effective {
        builder = builder.meta("revocation", "Effective", effective);
    }
    judged(records(&[builder]).remove(0), verdict)
}

fn now() -> Timestamp {
    at("2025-10-10T12:00Z")
}

fn standing(thread: &[Record]) -> Vec<ConsentStanding> {
    let state = consent_state(thread, now());
    state.consents.iter().map(|c| c.standing).collect()
}

fn escalate(thread: &[Record]) -> Result<Builder, BundleError> {
    let request = Escalation {
        bundle: bundle(),
        reason: "why",
        urgency: None,
    };
    escalation(thread, &request)
}

fn hand_over(thread: &[Record], approved: bool) -> Result<Builder, BundleError> {
    let request = HandoffBundle {
        bundle: bundle(),
        approved,
    };
    handoff(thread, &request)
}

fn privacy_of(text: &str) -> Vec<(String, String)> {
    let document = Document::parse(text, Reading::Strict);
    let block = document.block("privacy");
    let fields = block.into_iter().flat_map(|b| b.fields());
    fields.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

const YES: &str = "Consent=explicit_yes_2025-10-09T16:00Z";

#[test]
fn the_latest_word_of_each_consent_counts() {
    use ConsentStanding::{Denied, Expired, Holds, Revoked, Unclear};
    let one = |fields: &str| standing(&records(&[private(1, fields)]));
    assert_eq!(one(&format!("{YES};Consent-ID=a")), [Holds]);
    assert_eq!(one("Consent=implicit"), [Holds]);
    assert_eq!(one("Consent=explicit_no;Consent-ID=a"), [Denied]);
    assert_eq!(one("Consent=perhaps;Consent-ID=a"), [Unclear]);
    assert_eq!(one(&format!("{YES};Expires=soon")), [Unclear]);
    let until = |time: &str| one(&format!("{YES};Expires={time}"));
    assert_eq!(until("2025-10-10T12:00:00.001Z"), [Holds]);
    assert_eq!(until("2025-10-10T12:00Z"), [Expired]);

    let no = "Consent=explicit_no;Consent-ID=a";
    let yes = format!("{YES};Consent-ID=a");
    let two =
        |first: &str, second: &str| standing(&records(&[private(1, first), private(3, second)]));
    assert_eq!(two(&yes, no), [Denied]);
    assert_eq!(two(no, &yes), [Holds]);
    assert_eq!(two(&yes, &format!("{YES};Consent-ID=b")), [Holds, Holds]);
    assert_eq!(two(&yes, "Consent=explicit_no"), [Denied, Denied]);
    assert_eq!(
        two(
            &format!("{yes};Scope=medical"),
            "Consent=explicit_no;Scope=financial"
        ),
        [Holds, Denied]
    );
    // A transfer is never wider or longer than what it goes back to, and ends with it.
    let original = format!("{yes};Scope=medical;Expires=2025-10-10T11:00Z");
    let transfer = "Consent=transferred_with_approval;Consent-ID=t;Original-Consent-ID=a;Scope=medical, pii;Expires=2026-01-01";
    assert_eq!(two(&original, transfer), [Expired, Expired]);
    let wide = records(&[
        private(1, &format!("{yes};Scope=medical")),
        private(2, transfer),
    ]);
    assert_eq!(consent_state(&wide, now()).consents[1].scopes, ["medical"]);
    assert_eq!(
        two(&format!("{yes};Scope=medical"), transfer),
        [Holds, Holds]
    );

    let mut thread = records(&[private(1, &yes), private(2, transfer)]);
    thread.push(revoke(3, "a", None, VerdictWord::Verified));
    assert_eq!(standing(&thread), [Revoked, Revoked]);
    // A revoked consent stays revoked under its name.
    thread.push(records(&[private(4, &yes)]).remove(0));
    assert!(standing(&thread).iter().all(|s| *s == Revoked));
}

#[test]
fn revocation_counts_if_it_is_verified_and_in_force() {
    use ConsentStanding::{Holds, Revoked};
    let with = |record: Record| {
        let mut thread = records(&[private(1, &format!("{YES};Consent-ID=a"))]);
        thread.push(record);
        standing(&thread)[0]
    };
    for word in VerdictWord::ALL {
        let expected = if word == VerdictWord::Verified {
            Revoked
        } else {
            Holds
        };
        assert_eq!(with(revoke(2, "a", None, word)), expected, "{word:?}");
    }
    assert_eq!(with(revoke(2, "b", None, VerdictWord::Verified)), Holds);
    // A revocation does not wait.
    let at = |time| with(revoke(2, "a", Some(time), VerdictWord::Verified));
    assert_eq!(at("2025-10-10T12:00Z"), Revoked);
    assert_eq!(at("9999-12-31T00:00Z"), Revoked);
}

#[test]
fn messages_that_must_not_be_acted_on_say_nothing() {
    let mut thread = records(&[
        private(1, &format!("PII=none;{YES};Consent-ID=a")),
        private(
            2,
            "PII=present;Consent=explicit_no;Consent-ID=a;Scope=medical",
        ),
    ]);
    let state = consent_state(&thread, now());
    assert_eq!(
        (state.pii, state.is_sensitive()),
        (Some(Pii::Present), true)
    );
    for word in [
        VerdictWord::Damaged,
        VerdictWord::NotVerified,
        VerdictWord::Revoked,
    ] {
        thread[1] = judged(thread[1].clone(), word);
        let state = consent_state(&thread, now());
        assert_eq!((state.pii, state.is_sensitive()), (Some(Pii::None), false));
        assert_eq!(standing(&thread), [ConsentStanding::Holds]);
    }
}

#[test]
fn invalid_consent_stops_a_bundle() {
    let scopes = [
        "pii",
        "medical",
        "phi",
        "financial",
        "biometric",
        "location",
        "custom",
        "x-rays",
    ];
    let denied = [
        "Consent=explicit_no",
        "Consent=explicit_yes;Expires=2025-10-09",
        "Consent=maybe",
    ];
    for consent in denied {
        for scope in scopes {
            let thread = records(&[private(1, &format!("{consent};Scope={scope};Consent-ID=a"))]);
            for refused in [
                escalate(&thread),
                hand_over(&thread, true),
                hand_over(&thread, false),
            ] {
                let refused = refused.unwrap_err();
                assert_eq!(refused.code, ErrorCode::Consent);
                assert!(
                    refused.explanation.what.contains("consent a of message"),
                    "{refused}"
                );
                assert!(
                    refused.explanation.help.contains("new consent"),
                    "{refused}"
                );
            }
        }
        let present = records(&[private(1, &format!("PII=present;{consent}"))]);
        assert_eq!(escalate(&present).unwrap_err().code, ErrorCode::Consent);
        // Where nothing is sensitive, it goes on as it is.
        let general = records(&[private(1, &format!("PII=none;{consent};Scope=general"))]);
        let text = escalate(&general).unwrap().build().unwrap();
        let (_, written) = consent.split(';').next().unwrap().split_once('=').unwrap();
        assert!(
            privacy_of(&text).contains(&("Consent".into(), written.into())),
            "{text}"
        );
        assert!(hand_over(&general, false).is_ok());
        // A later consent for the same makes up for it.
        let renewed = records(&[
            private(1, &format!("{consent};Scope=medical;Consent-ID=a")),
            private(3, &format!("{YES};Scope=medical;Consent-ID=b")),
        ]);
        let fields = privacy_of(&escalate(&renewed).unwrap().build().unwrap());
        assert!(
            fields.contains(&("Consent-ID".into(), "b".into())),
            "{fields:?}"
        );
        let other = records(&[
            private(1, &format!("{consent};Scope=medical;Consent-ID=a")),
            private(2, &format!("{YES};Scope=general;Consent-ID=b")),
        ]);
        assert!(escalate(&other).is_err());
    }
}

/// Nobody agrees in the name of who has refused, nor less surely than it was refused.
#[test]
fn only_who_refused_can_agree_again() {
    use crosstalk_protocol::store::Side;
    let no = "PII=present;Consent=explicit_no;Scope=medical;Consent-ID=a";
    for id in ["a", "b"] {
        let yes = format!("{YES};Scope=medical;Consent-ID={id}");
        let thread = |by: usize, no_is: VerdictWord, yes_is: VerdictWord| {
            let mut thread = records(&[private(1, no), private(by, &yes)]);
            thread[0].verdict = no_is;
            thread[1].verdict = yes_is;
            thread
        };
        let agreed = |thread: &[Record]| escalate(thread).is_ok();
        assert!(agreed(&thread(
            3,
            VerdictWord::Unsigned,
            VerdictWord::Unsigned
        )));
        assert!(agreed(&thread(
            3,
            VerdictWord::Verified,
            VerdictWord::Verified
        )));
        assert!(!agreed(&thread(
            3,
            VerdictWord::Verified,
            VerdictWord::Unsigned
        )));
        assert!(!agreed(&thread(
            3,
            VerdictWord::Verified,
            VerdictWord::FirstContact
        )));
        assert!(
            !agreed(&thread(2, VerdictWord::Unsigned, VerdictWord::Verified)),
            "a stranger"
        );
        let mut mine = thread(2, VerdictWord::Verified, VerdictWord::Unsigned);
        mine[1].side = Side::Mine;
        assert!(agreed(&mine), "the person here takes it on");
    }
}

/// A bundle that is passed on again does not quote the conversation twice.
#[test]
fn a_bundle_in_a_bundle_is_its_own_words() {
    let first = records(&[message(1, "REQUEST", "A rare word: xylomarimba.")]);
    let bundle = escalate(&first).unwrap().build().unwrap();
    let mut thread = first.clone();
    let mut again = records(&[message(2, "ESCALATE", "x")]).remove(0);
    again.text = bundle;
    again.side = crosstalk_protocol::store::Side::Mine;
    thread.push(again);
    let text = escalate(&thread).unwrap().build().unwrap();
    assert_eq!(text.matches("xylomarimba").count(), 1, "{text}");
    assert!(
        text.contains("| (It quotes the conversation up to here.)"),
        "{text}"
    );
}

#[test]
fn an_escalation_carries_the_consent_as_it_is() {
    let thread = records(&[private(
        1,
        &format!(
            "PII=present;{YES};Scope=medical;Expires=2025-10-10T16:00Z;Jurisdiction=GDPR, HIPAA;Consent-ID=a"
        ),
    )]);
    let expected = [
        ("PII", "present"),
        ("Consent", "explicit_yes_2025-10-09T16:00Z"),
        ("Scope", "medical"),
        ("Expires", "2025-10-10T16:00:00Z"),
        ("Jurisdiction", "GDPR, HIPAA"),
        ("Consent-ID", "a"),
    ];
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(k, v)| ((*k).into(), (*v).into()))
        .collect();
    assert_eq!(privacy_of(&escalated(&thread, bundle())), expected);
    assert!(
        privacy_of(&escalated(
            &records(&[message(1, "REQUEST", "x")]),
            bundle()
        ))
        .is_empty()
    );
}

#[test]
fn a_handoff_needs_an_approval_for_what_is_sensitive() {
    for fields in [
        &format!("{YES};Scope=medical;Expires=2025-10-11;Consent-ID=a"),
        "Consent=implicit;Scope=location;Expires=2025-10-11;Consent-ID=a",
        "PII=present",
        "Scope=financial",
    ] {
        let thread = records(&[private(1, fields)]);
        let refused = hand_over(&thread, false).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Consent);
        assert!(
            refused.explanation.help.contains("approve the transfer"),
            "{refused}"
        );
        let text = hand_over(&thread, true).unwrap().build().unwrap();
        let fields = privacy_of(&text);
        let get = |key: &str| {
            fields
                .iter()
                .find(|(k, _)| k == key)
                .map(|(_, v)| v.as_str())
        };
        assert_eq!(
            get("Consent"),
            Some("transferred_with_approval_2025-10-10T12:00:00Z")
        );
        assert_eq!(
            get("Consent-ID"),
            Some(format!("transfer-{MESSAGE}").as_str())
        );
        if get("Original-Consent-ID").is_some() {
            assert_eq!(get("Original-Consent-ID"), Some("a"));
            assert_eq!(get("Expires"), Some("2025-10-11T00:00:00Z"));
        }
        assert_eq!(
            get("Original-Consent-ID").is_some(),
            get("Expires").is_some()
        );
        // The next one finds the transfer in place of the original, and no more than that.
        let mut longer = thread.clone();
        longer.push(crate::conversation::record(2, &text).0);
        let again = privacy_of(&escalate(&longer).unwrap().build().unwrap());
        assert_eq!(again, fields);
    }
}

#[test]
fn several_consents_go_on_together_until_the_first_ends() {
    let thread = records(&[
        private(
            1,
            &format!("{YES};Scope=medical;Expires=2025-10-12;Jurisdiction=GDPR;Consent-ID=a"),
        ),
        private(
            2,
            "Consent=implicit;Scope=location;Expires=2025-10-11;Jurisdiction=CCPA;Consent-ID=b",
        ),
    ]);
    let text = escalate(&thread).unwrap().build().unwrap();
    let fields = privacy_of(&text);
    for (key, value) in [
        ("Consent", "implicit"),
        ("Scope", "medical, location"),
        ("Expires", "2025-10-11T00:00:00Z"),
        ("Jurisdiction", "GDPR, CCPA"),
        ("Consent-ID", "a, b"),
    ] {
        assert!(
            fields.contains(&(key.into(), value.into())),
            "{key}: {fields:?}"
        );
    }
    // A revocation of one of them ends what they became.
    let mut thread = thread;
    thread.push(crate::conversation::record(3, &text).0);
    assert!(escalate(&thread).is_ok());
    thread.push(revoke(4, "b", None, VerdictWord::Verified));
    assert_eq!(escalate(&thread).unwrap_err().code, ErrorCode::Consent);
}

#[test]
fn no_third_party_binds_a_handoff() {
    let thread = records(&[message(1, "REQUEST", "x").meta(
        "routing",
        "X-Policy",
        "no_third_party, ok_to_cache",
    )]);
    assert_eq!(
        hand_over(&thread, false).unwrap_err().code,
        ErrorCode::Consent
    );
    let text = hand_over(&thread, true).unwrap().build().unwrap();
    assert!(text.contains("\nX-Policy: no_third_party\n"), "{text}");
    let mut inside = bundle();
    inside.receiver = "chatgpt";
    let request = HandoffBundle {
        bundle: inside,
        approved: false,
    };
    assert!(handoff(&thread, &request).is_ok());
    assert!(escalated(&thread, bundle()).contains("\nX-Policy: no_third_party\n"));
}

#[test]
fn an_escalation_to_a_program_is_no_way_around_an_approval() {
    let thread = records(&[private(1, &format!("{YES};Scope=medical;Consent-ID=a"))]);
    let to = |receiver| {
        let mut other = bundle();
        other.receiver = receiver;
        let request = Escalation {
            bundle: other,
            reason: "why",
            urgency: None,
        };
        escalation(&thread, &request).map_err(|e| e.code)
    };
    for program in [
        "claude://session/other",
        "chatgpt://thread/x",
        "mcp://tool.example/x",
    ] {
        assert_eq!(to(program).unwrap_err(), ErrorCode::Consent, "{program}");
    }
    for person in ["human://clinic.example/desk", "KALLE", "CHATGPT"] {
        assert!(to(person).is_ok(), "{person}");
    }
}
