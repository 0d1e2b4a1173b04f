//! Signed zones: what holds, what can't be told, and what is broken.

use crate::{FIRST, OWNER, SECOND, ask, example, options};
use crosstalk_dns::Options;
use crosstalk_envelope::Timestamp;
use crosstalk_testing::knot::{Knot, Signing, Zone};
use crosstalk_testing::wait::wait_until;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::UNIX_EPOCH;

const BROKEN: &str = "DNSSEC is broken: the signatures of the answer do not lead to a trusted key";

fn with_anchor(address: SocketAddr, domain: &str, anchor: &str) -> String {
    let anchor = Some(anchor.to_owned());
    ask(
        address,
        domain,
        Options {
            anchor,
            ..options()
        },
    )
}

fn assert_broken(said: &str, domain: &str) {
    assert_eq!(
        said,
        format!("unavailable: _crosstalk-key.{domain}: {BROKEN}")
    );
}

/// A root with signed and unsigned zones below it.
#[test]
fn a_chain_from_the_root() {
    let signed = |name: &str, signing| Zone::new(name).signed(signing);
    let nsec = signed("nsec.test", Signing::Nsec).txt(OWNER, &[FIRST]);
    let nsec3 = signed("nsec3.test", Signing::Nsec3).txt(OWNER, &[FIRST]);
    let empty = signed("empty.test", Signing::Nsec);
    let empty3 = signed("empty3.test", Signing::Nsec3);
    let nodata = signed("nodata.test", Signing::Nsec).record("_crosstalk-key A 127.0.0.1");
    let nodata3 = signed("nodata3.test", Signing::Nsec3).record("_crosstalk-key A 127.0.0.1");
    let wildcard = signed("wild.test", Signing::Nsec3).txt("*", &[FIRST]);
    let to_plain = signed("toplain.test", Signing::Nsec)
        .record("_crosstalk-key CNAME _crosstalk-key.plain.test.");
    let to_signed =
        Zone::new("tosigned.test").record("_crosstalk-key CNAME _crosstalk-key.nsec.test.");
    let to_nothing =
        Zone::new("tonothing.test").record("_crosstalk-key CNAME _crosstalk-key.empty.test.");
    let plain = Zone::new("plain.test").txt(OWNER, &[SECOND]);
    let bare = Zone::new("bare.test");
    // Signed above, not signed here.
    let stripped = Zone::new("stripped.test").txt(OWNER, &[SECOND]);
    let secure = [
        &nsec, &nsec3, &empty, &empty3, &nodata, &nodata3, &wildcard, &to_plain,
    ];
    let insecure = [&to_signed, &to_nothing, &plain, &bare];
    let root = Zone::new(".").signed(Signing::Nsec);
    let zones = secure.into_iter().chain(insecure).chain([&root, &stripped]);
    let knot = Knot::start(zones.cloned());

    let mut above = root.clone();
    for zone in secure.into_iter().chain(insecure).chain([&stripped]) {
        above = above.record(&format!("{0} NS ns.{0}", zone.name()));
    }
    for zone in secure {
        above = above.record(&knot.ds(zone));
    }
    above = above.record(&knot.ds(&nsec).replace("nsec.test.", "stripped.test."));
    knot.set(&above);

    let anchor = knot.anchor(&root);
    for (domain, expected) in [
        ("nsec.test", "first, 300 s, secure"),
        ("nsec3.test", "first, 300 s, secure"),
        ("wild.test", "first, 300 s, secure"),
        ("empty.test", "absent, secure"),
        ("empty3.test", "absent, secure"),
        ("nodata.test", "absent, secure"),
        ("nodata3.test", "absent, secure"),
        ("nowhere.test", "absent, secure"),
        ("plain.test", "second, 300 s, insecure"),
        ("bare.test", "absent, insecure"),
        // A chain is as strong as its weakest part.
        ("toplain.test", "second, 300 s, insecure"),
        ("tosigned.test", "first, 300 s, insecure"),
        ("tonothing.test", "absent, indeterminate"),
    ] {
        assert_eq!(
            with_anchor(knot.address(), domain, &anchor),
            expected,
            "{domain}"
        );
    }
    assert_broken(
        &with_anchor(knot.address(), "stripped.test", &anchor),
        "stripped.test",
    );
    // This root has signatures, and is not the one that is built in.
    for domain in ["nsec.test", "plain.test", "empty.test"] {
        assert_broken(&ask(knot.address(), domain, options()), domain);
    }
}

#[test]
fn a_zone_on_its_own() {
    let signed = example(&[&[FIRST]]).signed(Signing::Nsec);
    let other = Zone::new("other.test")
        .txt(OWNER, &[SECOND])
        .signed(Signing::Nsec);
    let knot = Knot::start([signed.clone(), other.clone()]);
    let (ours, theirs) = (knot.anchor(&signed), knot.anchor(&other));

    assert_eq!(
        with_anchor(knot.address(), "example.test", &ours),
        "first, 300 s, secure"
    );
    // No anchor, or none above it: nobody can say.
    assert_eq!(
        ask(knot.address(), "example.test", options()),
        "first, 300 s, indeterminate"
    );
    assert_eq!(
        with_anchor(knot.address(), "other.test", &ours),
        "second, 300 s, indeterminate"
    );
    // The key of another zone.
    let wrong = theirs.replace("other.test.", "example.test.");
    assert_broken(
        &with_anchor(knot.address(), "example.test", &wrong),
        "example.test",
    );
    // Both.
    assert_eq!(
        with_anchor(knot.address(), "other.test", &format!("{ours}{theirs}")),
        "second, 300 s, secure"
    );
    // A key that comes and goes in a signed zone.
    let bare = example(&[]).signed(Signing::Nsec);
    knot.set(&bare);
    assert_eq!(
        with_anchor(knot.address(), "example.test", &ours),
        "absent, secure"
    );
    assert!(
        with_anchor(knot.address(), "example.test", &wrong).contains("DNSSEC is broken"),
        "what is not there has to be proven as well"
    );
}

/// Forwarders that know nothing about DNSSEC are common. They are no attack.
#[test]
fn a_resolver_without_signatures() {
    const KEY: &str = "@ DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";
    for root in [Zone::new("."), Zone::new(".").record(KEY)] {
        let below = root.record("example.test. NS ns.example.test.");
        let knot = Knot::start([below, example(&[&[FIRST]])]);
        assert_eq!(
            ask(knot.address(), "example.test", options()),
            "first, 300 s, indeterminate"
        );
    }
    // This one should know, and does not for now.
    let root = Zone::with_text(".", "this is no zone\n");
    let knot = Knot::start([root, example(&[&[FIRST]])]);
    assert_eq!(
        ask(knot.address(), "example.test", options()),
        "unavailable: _crosstalk-key.example.test: the name server reports a failure (SERVFAIL)"
    );
}

#[test]
fn a_zone_that_was_tampered_with() {
    let signed = example(&[&[FIRST]]).signed(Signing::Nsec);
    let knot = Knot::start([signed.clone()]);
    let anchor = knot.anchor(&signed);
    let text = knot.served(&signed);
    drop(knot);
    let without = |word: &str| -> String {
        let kept = text.lines().filter(|line| !line.contains(word));
        kept.flat_map(|line| [line, "\n"]).collect()
    };
    let knot = Knot::start([Zone::with_text("example.test", &text)]);
    assert_eq!(
        with_anchor(knot.address(), "example.test", &anchor),
        "first, 300 s, secure"
    );
    for (what, tampered) in [
        ("another key", text.replace(FIRST, SECOND)),
        (
            "one more key",
            format!("{text}{OWNER}.example.test. 300 TXT \"{SECOND}\"\n"),
        ),
        ("no signatures", without(" RRSIG ")),
        ("no key", without(FIRST)),
    ] {
        assert_ne!(text, tampered, "{what}");
        knot.set(&Zone::with_text("example.test", &tampered));
        let said = with_anchor(knot.address(), "example.test", &anchor);
        assert!(said.ends_with(BROKEN), "{what}: {said}");
        // A resolver without an anchor can not see it.
        let blind = ask(knot.address(), "example.test", options());
        assert!(blind.ends_with("indeterminate"), "{what}: {blind}");
    }
}

/// The shorter time counts: the one for which it is signed.
#[test]
fn an_answer_is_good_as_long_as_its_signature() {
    let signed = example(&[&[FIRST]]).signed(Signing::Minutes);
    let knot = Knot::start([signed.clone()]);
    let anchor = knot.anchor(&signed);
    let said = with_anchor(knot.address(), "example.test", &anchor);
    let ttl = said
        .strip_prefix("first, ")
        .and_then(|s| s.strip_suffix(" s, secure"));
    let ttl: u32 = ttl.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(ttl <= 240, "{said}");
}

/// The time at which the last signature of a zone expires.
fn last_expiry(zone: &str) -> Timestamp {
    let written = zone.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip_while(|w| *w != "RRSIG");
        words.nth(5)
    });
    let last = written.max().unwrap();
    let part = |range: Range<usize>| last.get(range).unwrap();
    let date = [part(0..4), part(4..6), part(6..8)].join("-");
    let time = [part(8..10), part(10..12), part(12..14)].join(":");
    Timestamp::parse(&format!("{date}T{time}Z")).unwrap()
}

#[test]
fn a_zone_whose_signatures_have_expired() {
    let signed = example(&[&[FIRST]]).signed(Signing::Seconds);
    let knot = Knot::start([signed.clone()]);
    let anchor = knot.anchor(&signed);
    let text = knot.served(&signed);
    let stale = Knot::start([Zone::with_text("example.test", &text)]);
    let expired = last_expiry(&text).as_millis() + 1000;
    wait_until("the end of the signatures", || {
        let now = UNIX_EPOCH.elapsed().unwrap().as_millis();
        now > u128::try_from(expired).unwrap()
    });
    assert_broken(
        &with_anchor(stale.address(), "example.test", &anchor),
        "example.test",
    );
}
