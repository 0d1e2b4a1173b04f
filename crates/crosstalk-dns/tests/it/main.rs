//! The keys, addresses and relays of a domain, asked of a real name server.

mod address;
mod dnssec;
mod failure;
mod record;
mod relay;

use crosstalk_dns::{Dns, Options};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec};
use crosstalk_testing::knot::{Knot, Zone};
use std::net::SocketAddr;
use std::time::Duration;

const FIRST: &str = "ed25519:pk=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
const SECOND: &str = "ed25519:pk=PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
const THIRD: &str = "secp256r1:pk=A2sX0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW";
const OWNER: &str = "_crosstalk-key";

/// Enough for a server on this machine, and short enough for one that is not there.
fn options() -> Options {
    Options {
        timeout: Duration::from_secs(2),
        attempts: 2,
        anchor: None,
    }
}

/// What the server there says about a domain, in a line: the keys by the names above.
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
