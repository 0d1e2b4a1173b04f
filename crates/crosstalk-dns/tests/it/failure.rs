//! No server answers, or a server says that it can't: never an answer about keys, and never another try than those that
//! were asked for.

use crate::{ATTEMPTS, FIRST, ask, example, hasty, options};
use crosstalk_dns::{Dns, Options, SetupError};
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_testing::knot::{Knot, Zone};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

/// How many questions wait at a socket.
fn count_questions(socket: &UdpSocket) -> usize {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 512];
    let count = std::iter::from_fn(|| socket.recv(&mut buffer).ok()).count();
    socket.set_nonblocking(false).unwrap();
    count
}

#[test]
fn a_failing_server_and_one_that_refuses() {
    let knot = Knot::start([
        example(&[&[FIRST]]),
        Zone::with_text("broken.test", "this is no zone\n"),
    ]);
    assert_eq!(
        ask(knot.address(), "broken.test", options()),
        "unavailable: _crosstalk-key.broken.test: the name server reports a failure (SERVFAIL)"
    );
    assert_eq!(
        ask(knot.address(), "elsewhere.test", options()),
        "unavailable: _crosstalk-key.elsewhere.test: the name server refuses to answer (REFUSED)"
    );
    // A part of the zone that another server has: it is not here, which does not mean that it is not there.
    knot.set(&example(&[&[FIRST]]).record("sub NS ns.elsewhere.test."));
    let said = ask(knot.address(), "sub.example.test", options());
    assert!(said.starts_with("unavailable: "), "{said}");
}

#[test]
fn a_server_that_is_down() {
    let knot = Knot::start([example(&[&[FIRST]])]);
    // Nothing listens on this port of another loopback address, and nothing can take it while the server has it.
    let address = SocketAddr::from((Ipv4Addr::new(127, 77, 0, 1), knot.address().port()));
    let said = ask(address, "example.test", hasty());
    assert!(
        said.starts_with("unavailable: _crosstalk-key.example.test: "),
        "{said}"
    );
}

#[test]
fn a_server_that_never_answers_and_one_that_talks_rubbish() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    assert_eq!(
        ask(address, "example.test", hasty()),
        "unavailable: _crosstalk-key.example.test: no name server answered in time"
    );
    let asked = count_questions(&silent);
    assert!(
        (1..=ATTEMPTS as usize).contains(&asked),
        "{asked} questions"
    );

    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = silent.recv_from(&mut buffer) {
            // Its own question back, then the header alone, then anything.
            let rubbish = [&buffer[..length], &buffer[..length.min(12)], &[0xff; 40]];
            for datagram in rubbish {
                let _ = silent.send_to(datagram, from);
            }
        }
    });
    let said = ask(address, "example.test", hasty());
    assert!(said.starts_with("unavailable: "), "{said}");
}

/// Each answer comes in time, all of them together do not.
#[test]
fn a_server_that_is_slow_time_and_again() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = server.recv_from(&mut buffer) {
            let (socket, mut datagram) = (server.try_clone().unwrap(), buffer[..length].to_vec());
            datagram[2] |= 0x80;
            datagram[3] = 5;
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(350));
                let _ = socket.send_to(&datagram, from);
            });
        }
    });
    let slow = Options {
        timeout: Duration::from_millis(500),
        ..hasty()
    };
    // Two questions, twice each: at least 1.4 seconds, of which one is granted. On a busy machine it takes longer, and
    // the answer is the same.
    assert_eq!(
        ask(address, "example.test", slow),
        "unavailable: _crosstalk-key.example.test: no name server answered in time"
    );
}

#[test]
fn only_domains_are_asked_for_and_nothing_is_sent_before_a_question() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let dns = Dns::server(server.local_addr().unwrap(), hasty()).unwrap();
    for domain in [
        "",
        "a..b",
        "127.0.0.1",
        "exa mple.test",
        "a@b.test",
        &"x.".repeat(200),
    ] {
        let answer = dns.keys_blocking(domain);
        let DnsAnswer::Wrong { reason } = answer else {
            panic!("{domain}: {answer:?}");
        };
        assert!(reason.contains("is no domain: "), "{reason}");
        assert!(reason.chars().count() < 250, "{reason}");
    }
    server.set_nonblocking(true).unwrap();
    let nothing = server.recv(&mut [0; 512]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn invalid_trust_anchor_is_reported_before_a_look_up() {
    let server = "127.0.0.1:53".parse().unwrap();
    let anchor = Some("example.test. IN DS 1 13 2 00".to_owned());
    let error = Dns::server(server, Options { anchor, ..hasty() }).unwrap_err();
    assert!(matches!(error, SetupError::Anchor(_)));
    assert!(error.to_string().contains("DNSKEY"), "{error}");
}
