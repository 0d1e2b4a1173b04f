//! Mail that comes in by LMTP, beside the LMTP delivery of Dovecot in the same run: both answer 250 when the mail is on disk.

use crosstalk_testing::dovecot::Dovecot;
use crosstalk_testing::folder::Folder;
use crosstalk_testing::loopback::own_ip;
use crosstalk_testing::relay::Relay;
use std::io::{BufRead as _, BufReader, Error, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Connections at once, as a mail server opens them.
const CLIENTS: usize = 20;
const ROUNDS: usize = 5;
const ANSWER: Duration = Duration::from_secs(60);

/// Prints the mails a second of both, and the ratio.
pub fn run(program: &Path, is_quick: bool) -> Result<()> {
    let mails = if is_quick { 100 } else { 400 };
    // On the disk, where a sync costs something; in memory it costs nothing.
    let place = Folder::within(Path::new("target"), "bench-mail");
    let port = TcpListener::bind((own_ip(), 0))?.local_addr()?;
    let config = format!(
        "[limits]\nrequests_per_minute = 0\n[email]\ndomain = \"relay.test\"\ntrust_results = \"mx.test\"\n[email.lmtp]\nlisten = \"{port}\"\n"
    );
    let _relay = Relay::of(program)
        .within(place.path())
        .config(config)
        .start();
    let dovecot = Dovecot::start_within(place.path(), &["ann"]);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    println!("{CLIENTS} connections, {mails} mails of 1.6 KB each, durable before 250\n");
    for round in 0..ROUNDS {
        // By turns: what else the machine does meets both.
        ours.push(load(port, "crosstalk@relay.test", round, mails)?);
        theirs.push(load(dovecot.lmtp(), "ann@mail.test", round, mails)?);
        println!(
            "round {round}: relay {:>6.0}/s, Dovecot {:>6.0}/s",
            ours.last().unwrap_or(&0.0),
            theirs.last().unwrap_or(&0.0)
        );
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "\nmails a second, relay ÷ Dovecot: {:.2} ({ours:.0} ÷ {theirs:.0})",
        ours / theirs
    );
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Mails a second with every client at work.
fn load(address: SocketAddr, to: &str, round: usize, mails: usize) -> Result<f64> {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || deliver(address, to, (round, client), mails)))
            .collect();
        clients.into_iter().try_for_each(|client| {
            let ended = client.join();
            ended.unwrap_or_else(|_| Err(Error::other("a client panicked")))
        })
    })?;
    let number = u32::try_from(CLIENTS * mails).unwrap_or(u32::MAX);
    Ok(f64::from(number) / begin.elapsed().as_secs_f64())
}

fn deliver(
    address: SocketAddr,
    to: &str,
    (round, client): (usize, usize),
    mails: usize,
) -> Result<()> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    expect(&mut stream, 1, "220")?;
    stream.get_mut().write_all(b"LHLO client\r\n")?;
    expect(&mut stream, 1, "250")?;
    for number in 0..mails {
        let mail = mail(&format!("B{round}-{client}-{number}"));
        let head = format!("MAIL FROM:<x@y.example>\r\nRCPT TO:<{to}>\r\nDATA\r\n");
        stream.get_mut().write_all(head.as_bytes())?;
        expect(&mut stream, 3, "354")?;
        stream.get_mut().write_all(mail.as_bytes())?;
        expect(&mut stream, 1, "250")?;
    }
    Ok(())
}

/// Reads so many answers; the last one has this code.
fn expect(stream: &mut BufReader<TcpStream>, answers: usize, code: &str) -> Result<()> {
    let mut line = String::new();
    for _ in 0..answers {
        loop {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err(Error::other("the server ended the conversation"));
            }
            if line.get(3..4) == Some(" ") {
                break;
            }
        }
    }
    match line.starts_with(code) {
        true => Ok(()),
        false => Err(Error::other(format!("{code} was expected: {line}"))),
    }
}

/// A mail with an envelope of 1.1 KB, and the dot that ends it.
fn mail(name: &str) -> String {
    let line = "  A line of the message, as people write them to each other every day, of some eighty letters.\n";
    let text = format!(
        "Authentication-Results: mx.test; dmarc=pass header.from=y.example\nFrom: <x@y.example>\nTo: <crosstalk@relay.test>\n\
         Date: Thu, 9 Oct 2025 08:00:00 +0000\nMessage-ID: <{name}@y.example>\nSubject: [AI Crosstalk] bench - NOTE\n\
         MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n\
         [[email:x@y.example→BOB v1]]\nuser: x\nthread: T{name}\nmessage: {name}\ncontext: bench\nintent: NOTE\nbody: |\n{}sig: none\n[[END]]\n.\n",
        line.repeat(10)
    );
    text.replace('\n', "\r\n")
}
