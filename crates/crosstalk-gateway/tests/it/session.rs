//! Conversations with the servers: the cases of `conformance/email/gateway.toml`, and bytes that cheat.

use crate::house::{MailClient, MailHouse, config};
use serde::Deserialize;
use std::fs;
use std::io::Write as _;
use std::path::Path;

#[derive(Deserialize)]
struct Cases {
    session: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    rule: String,
    protocol: String,
    talk: Vec<String>,
}

#[test]
fn conversations_go_as_the_cases_say() {
    let house = MailHouse::new(&config(""));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/email/gateway.toml");
    let cases: Cases = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    for case in cases.session {
        let mut client = MailClient::raw(match case.protocol.as_str() {
            "lmtp" => house.lmtp_address(),
            _ => house.smtp_address(),
        });
        for line in &case.talk {
            match line.split_at(1) {
                (">", text) => client
                    .send(format!("{}\r\n", text.strip_prefix(' ').unwrap_or(text)).as_bytes()),
                (_, code) => assert_eq!(client.hear(), code.trim(), "{}: {line}", case.rule),
            }
        }
    }
}

#[test]
fn no_variant_of_the_end_of_a_mail_smuggles_a_second_one() {
    let house = MailHouse::new(&config(""));
    let ends = ["\n", "\r", "\n\r", "\0\r\n", "\r\r\n"];
    for before in ends {
        for after in ["\r\n", "\n", "\r"] {
            let mut client = house.smtp();
            for line in [
                "MAIL FROM:<eve@evil.example>",
                "RCPT TO:<crosstalk@relay.example>",
            ] {
                assert_eq!(client.say(line), "250");
            }
            assert_eq!(client.say("DATA"), "354");
            let inner = "MAIL FROM:<boss@acme.example>\r\nRCPT TO:<crosstalk@relay.example>\r\nDATA\r\nFrom: boss@acme.example\r\n\r\nx";
            client.send(
                format!("From: eve@evil.example\r\n\r\na{before}.{after}{inner}\r\n.\r\n")
                    .as_bytes(),
            );
            // One mail, one answer; then the conversation goes on where the client thinks that it is.
            assert_eq!(client.hear(), "554", "{before:?} {after:?}");
            assert_eq!(client.say("NOOP"), "250", "{before:?} {after:?}");
        }
    }
}

#[test]
fn conversation_is_encrypted_and_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=relay.example".split(' '))
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .expect("openssl");
    assert!(made.status.success());
    let key = folder.path().join("key.pem");
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let tls = format!(
        "tls = {{ certificate = \"{}\", key = \"{}\" }}\n",
        folder.path().join("cert.pem").display(),
        key.display()
    );
    let plain = "[email.smtp]\nlisten = \"127.0.0.1:0\"\n";
    let house = MailHouse::new(&config("").replace(plain, &format!("{plain}{tls}")));
    let address = house.smtp_address().to_string();
    let mut client = std::process::Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-crlf",
            "-starttls",
            "smtp",
            "-connect",
            &address,
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("openssl");
    let said = "MAIL FROM:<x@y.example>\nEHLO client.example\nMAIL FROM:<x@y.example>\nRCPT TO:<crosstalk@relay.example>\nDATA\n\
                From: x@y.example\n\nhello\n.\nQUIT\n";
    client
        .stdin
        .take()
        .unwrap()
        .write_all(said.as_bytes())
        .unwrap();
    let talk = client.wait_with_output().unwrap().stdout;
    let talk = String::from_utf8_lossy(&talk).into_owned();
    // What was said before the encryption is forgotten, and it is not offered again.
    let codes: Vec<&str> = talk
        .lines()
        .filter_map(|line| line.get(..4))
        .filter(|code| !code.ends_with('-'))
        .collect();
    assert!(
        codes.ends_with(&["503 ", "250 ", "250 ", "250 ", "354 ", "554 ", "221 "]),
        "{talk}"
    );
    let (_, encrypted) = talk.split_once("503 ").unwrap();
    assert!(!encrypted.contains("STARTTLS"), "{talk}");
    // A command that came before the encryption is not one behind it.
    let mut client = house.smtp();
    client.send(b"STARTTLS\r\nMAIL FROM:<x@y.example>\r\n");
    assert_eq!(client.hear(), "220");
    assert_eq!(client.hear(), "");
}
