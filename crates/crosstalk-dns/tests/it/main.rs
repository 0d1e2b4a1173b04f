//! The keys, addresses and relays of a domain, asked of a real name server.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod address;
mod dnssec;
mod failure;
mod record;
mod relay;

use crosstalk_dns::{Dns, Options};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_testing::knot::{Knot, Zone};
use crosstalk_testing::wait::LIMIT;
use std::net::SocketAddr;
use std::time::Duration;

const FIRST: &str = "ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const SECOND: &str = "ed25519:pk=PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
const THIRD: &str = "secp256r1:pk=A2sX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW";
const OWNER: &str = "_crosstalk-key";

/// For a server that answers, however busy the machine is.
fn options() -> Options {
    const ATTEMPTS: u32 = 10;
    Options {
        timeout: LIMIT / ATTEMPTS,
        attempts: ATTEMPTS,
        anchor: None,
    }
}

/// How often a question is put to a server that does not answer.
const ATTEMPTS: u32 = 2;

/// For a server that does not answer.
fn hasty() -> Options {
    Options {
        timeout: Duration::from_millis(150),
        attempts: ATTEMPTS,
        anchor: None,
    }
}

/// The answer of a server about a domain, in a line: the keys by the names above.
fn ask(address: SocketAddr, domain: &str, options: Options) -> String {
    let dns = Dns::server(address, options).map_err(|e| e.to_string());
    tell(&dns.map(|dns| dns.keys_blocking(domain)))
}

fn tell(answer: &Result<DnsAnswer, String>) -> String {
    let name = |record: String| match record.as_str() {
        FIRST => "first",
        SECOND => "second",
        THIRD => "third",
        _ => "unknown",
    };
    match answer {
        Ok(DnsAnswer::Keys { keys, ttl, dnssec }) => {
            let mut names: Vec<&str> = keys.iter().map(|k| name(k.record())).collect();
            names.sort_unstable();
            format!("{}, {ttl} s, {}", names.join(" and "), dnssec.as_str())
        }
        Ok(DnsAnswer::Absent { dnssec }) => format!("absent, {}", dnssec.as_str()),
        Ok(DnsAnswer::Wrong { reason }) => format!("wrong: {reason}"),
        Ok(DnsAnswer::Unavailable { reason }) => format!("unavailable: {reason}"),
        Err(error) => format!("setup: {error}"),
    }
}

/// The zone `example.test`, with these TXT records for its keys.
fn example(records: &[&[&str]]) -> Zone {
    records
        .iter()
        .fold(Zone::new("example.test"), |zone, strings| {
            zone.txt(OWNER, strings)
        })
}

#[test]
fn the_async_and_the_blocking_call_say_the_same_inside_and_outside_of_a_runtime() {
    let knot = Knot::start([example(&[&[FIRST]])]);
    let dns = Dns::server(knot.address(), options()).unwrap();
    let outside = dns.keys_blocking("example.test");
    assert!(matches!(
        &outside,
        DnsAnswer::Keys { keys, ttl: 300, dnssec: Dnssec::Indeterminate } if keys.len() == 1
    ));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        assert_eq!(dns.keys("example.test").await, outside);
        assert_eq!(dns.keys_blocking("example.test"), outside);
        assert_eq!(dns.clone().keys("example.test").await, outside);
    });
}
