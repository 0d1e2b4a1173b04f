//! The addresses that a domain lists for simple names.

use crate::{hasty, options};
use crosstalk_dns::{Dns, Options};
use crosstalk_protocol::dns::AddressAnswer;
use crosstalk_testing::knot::{Knot, Signing, Zone};
use std::net::{SocketAddr, UdpSocket};

fn ask(server: SocketAddr, name: &str, domain: &str) -> AddressAnswer {
    match Dns::server(server, options()) {
        Ok(dns) => dns.addresses_blocking(name, domain),
        Err(error) => AddressAnswer::Unavailable {
            reason: format!("setup: {error}"),
        },
    }
}

/// The answer of a server about a name of `example.test`, in a line.
fn say(knot: &Knot, name: &str) -> String {
    tell(ask(knot.address(), name, "example.test"))
}

fn tell(answer: AddressAnswer) -> String {
    match answer {
        AddressAnswer::Found {
            addresses,
            wrong,
            ttl,
            dnssec,
            ..
        } => {
            let (list, wrong) = (addresses.join(" "), wrong.len());
            format!("{list}, {wrong} wrong, {ttl} s, {}", dnssec.as_str())
        }
        AddressAnswer::Absent { at, dnssec } => format!("absent at {at}, {}", dnssec.as_str()),
        AddressAnswer::Wrong { reason } => format!("wrong: {reason}"),
        AddressAnswer::Unavailable { reason } => format!("unavailable: {reason}"),
        AddressAnswer::Unasked { reason } => format!("unasked: {reason}"),
    }
}

#[test]
fn an_address_is_found_whatever_the_case_and_the_spaces() {
    let zone = Zone::new("example.test")
        .txt("_crosstalk-addr.claude", &["claude://session/abc123"])
        .txt("_crosstalk-addr.brother-ai", &["mcp://tool", "@host"])
        .txt("_crosstalk-addr.many", &["mcp://b@host"])
        .txt("_crosstalk-addr.many", &["v=spf1 -all"])
        .txt("_crosstalk-addr.many", &["claude://a"])
        .txt("_crosstalk-addr.name", &["CLAUDE"])
        .txt("_crosstalk-addr.broken", &["tel:call-me"])
        .txt("_crosstalk-addr.broken", &["claude://a b"])
        .record(r#"_crosstalk-addr.bytes TXT "\255\254""#)
        .record("_crosstalk-addr.nothing A 127.0.0.1")
        .record("_crosstalk-addr.alias 30 CNAME _crosstalk-addr.claude");
    let knot = Knot::start([zone]);
    for name in ["CLAUDE", "claude", "Claude"] {
        assert_eq!(
            say(&knot, name),
            "claude://session/abc123, 0 wrong, 300 s, indeterminate"
        );
    }
    for (name, expected) in [
        (
            "BROTHER AI",
            "mcp://tool@host, 0 wrong, 300 s, indeterminate",
        ),
        (
            "many",
            "claude://a mcp://b@host, 1 wrong, 300 s, indeterminate",
        ),
        (
            "alias",
            "claude://session/abc123, 0 wrong, 30 s, indeterminate",
        ),
        (
            "nobody",
            "absent at _crosstalk-addr.nobody.example.test, indeterminate",
        ),
        (
            "nothing",
            "absent at _crosstalk-addr.nothing.example.test, indeterminate",
        ),
        (
            "name",
            "wrong: _crosstalk-addr.name.example.test: the TXT record is no address: `CLAUDE` is no URL with a scheme",
        ),
        (
            "bytes",
            "wrong: _crosstalk-addr.bytes.example.test: the TXT record is no address: it is not UTF-8",
        ),
    ] {
        assert_eq!(say(&knot, name), expected, "{name}");
    }
    let said = say(&knot, "broken");
    assert!(
        said.starts_with("wrong: _crosstalk-addr.broken.example.test: none of the TXT records"),
        "{said}"
    );
}

#[test]
fn no_answer_is_not_the_same_as_none() {
    let knot = Knot::start([Zone::with_text("broken.test", "this is no zone\n")]);
    assert_eq!(
        tell(ask(knot.address(), "CLAUDE", "broken.test")),
        "unavailable: _crosstalk-addr.claude.broken.test: the name server reports a failure (SERVFAIL)"
    );
    assert_eq!(
        tell(ask(knot.address(), "CLAUDE", "elsewhere.test")),
        "unavailable: _crosstalk-addr.claude.elsewhere.test: the name server refuses to answer (REFUSED)"
    );
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let dns = Dns::server(silent.local_addr().unwrap(), hasty()).unwrap();
    assert_eq!(
        tell(dns.addresses_blocking("CLAUDE", "example.test")),
        "unavailable: _crosstalk-addr.claude.example.test: no name server answered in time"
    );
}

#[test]
fn names_that_the_dns_does_not_have_are_not_sent() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    for (name, domain) in [
        ("Jürgen", "example.test"),
        ("a_b", "example.test"),
        ("a.b", "example.test"),
        ("CLAUDE", "192.0.2.1"),
        ("CLAUDE", ""),
    ] {
        let said = tell(ask(address, name, domain));
        assert!(said.starts_with("unasked: "), "{name} {domain}: {said}");
    }
    server.set_nonblocking(true).unwrap();
    let nothing = server.recv(&mut [0; 512]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_signed_zone_is_told_apart() {
    let signed = Zone::new("signed.test")
        .signed(Signing::Nsec)
        .txt("_crosstalk-addr.claude", &["claude://a"]);
    let knot = Knot::start([signed.clone()]);
    let anchor = Some(knot.anchor(&signed));
    let options = Options {
        anchor,
        ..options()
    };
    let dns = Dns::server(knot.address(), options).unwrap();
    let found = dns.addresses_blocking("CLAUDE", "signed.test");
    assert_eq!(tell(found.clone()), "claude://a, 0 wrong, 300 s, secure");
    assert_eq!(
        tell(found.protected()),
        "claude://a, 0 wrong, 300 s, secure"
    );
    assert_eq!(
        tell(dns.addresses_blocking("GPT", "signed.test")),
        "absent at _crosstalk-addr.gpt.signed.test, secure"
    );
    // Without the key of the zone nobody can tell.
    let unprotected = ask(knot.address(), "CLAUDE", "signed.test").protected();
    assert!(matches!(unprotected, AddressAnswer::Wrong { .. }));
}
