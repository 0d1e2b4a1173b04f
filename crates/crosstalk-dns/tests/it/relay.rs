//! Where the relay of a domain is, and the addresses of hosts.

#![allow(clippy::expect_used, reason = "a test may fail")]

use crate::{hasty, options};
use crosstalk_dns::{Dns, Options};
use crosstalk_testing::knot::{Knot, Signing, Zone};
use std::net::{IpAddr, SocketAddr, UdpSocket};

type Answer<T> = Result<Vec<T>, String>;

/// Relays of a domain and addresses of a host, in one order.
fn ask(server: SocketAddr, domain: &str, host: &str) -> (Answer<String>, Answer<IpAddr>) {
    ask_with(options(), server, domain, host)
}

fn ask_with(
    options: Options,
    server: SocketAddr,
    domain: &str,
    host: &str,
) -> (Answer<String>, Answer<IpAddr>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let dns = Dns::server(server, options).expect("a server");
    let (mut relays, mut hosts) =
        runtime.block_on(async { (dns.relays(domain).await, dns.hosts(host).await) });
    if let Ok(list) = &mut relays {
        list.sort();
    }
    if let Ok(list) = &mut hosts {
        list.sort();
    }
    (relays, hosts)
}

fn addresses(list: &[&str]) -> Answer<IpAddr> {
    Ok(list
        .iter()
        .map(|a| a.parse().expect("an address"))
        .collect())
}

fn zone() -> Zone {
    Zone::new("example.test")
        .txt(
            "_crosstalk",
            &["v=crosstalk1; url=", "https://relay.example.test/"],
        )
        .txt("_crosstalk", &["something else"])
        .record("relay A 192.0.2.7")
        .record("relay A 192.0.2.8")
        .record("relay AAAA 2001:db8::7")
        .record("four A 192.0.2.4")
        .record("six AAAA 2001:db8::6")
        .record("alias CNAME relay")
        .record("text TXT \"x\"")
}

#[test]
fn relays_and_hosts_are_found() {
    let knot = Knot::start([zone()]);
    let server = knot.address();
    let records = [
        "something else",
        "v=crosstalk1; url=https://relay.example.test/",
    ];
    let records = records.map(str::to_owned).to_vec();
    for (host, wanted) in [
        (
            "relay.example.test",
            &["192.0.2.7", "192.0.2.8", "2001:db8::7"][..],
        ),
        (
            "RELAY.Example.test.",
            &["192.0.2.7", "192.0.2.8", "2001:db8::7"],
        ),
        (
            "alias.example.test",
            &["192.0.2.7", "192.0.2.8", "2001:db8::7"],
        ),
        ("four.example.test", &["192.0.2.4"]),
        ("six.example.test", &["2001:db8::6"]),
        ("text.example.test", &[]),
        ("no.example.test", &[]),
    ] {
        let (relays, hosts) = ask(server, "Example.test", host);
        assert_eq!(relays, Ok(records.clone()));
        assert_eq!(hosts, addresses(wanted), "{host}");
    }
    let (relays, hosts) = ask(server, "no.example.test", "no host");
    assert_eq!((relays, hosts), (Ok(Vec::new()), Ok(Vec::new())));
}

#[test]
fn signed_answers_count_and_forged_ones_do_not() {
    let signed = zone().signed(Signing::Nsec);
    let knot = Knot::start([signed.clone()]);
    let anchor = knot.anchor(&signed);
    let dns = |server| {
        let options = crosstalk_dns::Options {
            anchor: Some(anchor.clone()),
            ..options()
        };
        Dns::server(server, options).expect("a server")
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let found = runtime.block_on(dns(knot.address()).hosts("four.example.test"));
    assert_eq!(found, addresses(&["192.0.2.4"]));
    let none = runtime.block_on(dns(knot.address()).hosts("no.example.test"));
    assert_eq!(none, addresses(&[]));
    // The same zone, unsigned, where a signature is due.
    let forger = Knot::start([zone()]);
    let forged = runtime.block_on(dns(forger.address()).hosts("four.example.test"));
    assert!(forged.is_err(), "{forged:?}");
    let forged = runtime.block_on(dns(forger.address()).relays("example.test"));
    assert!(forged.is_err(), "{forged:?}");
}

#[test]
fn no_answer_is_no_absence() {
    let broken = Zone::with_text("example.test", "this is no zone");
    let knot = Knot::start([broken]);
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for (server, options) in [
        (knot.address(), options()),
        (silent.local_addr().expect("a port"), hasty()),
    ] {
        for domain in ["example.test", "elsewhere.test"] {
            let host = format!("relay.{domain}");
            let (relays, hosts) = ask_with(options.clone(), server, domain, &host);
            assert!(relays.is_err(), "{relays:?}");
            assert!(hosts.is_err(), "{hosts:?}");
        }
    }
}
