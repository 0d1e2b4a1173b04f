//! Mail to a real mail server: what arrives, and what becomes of mail that does not.

use super::{Post, QUICK, message, meta, request};
use crate::house::{START, key, pinned, signed};
use crosstalk_email::{
    GatewayAddress, MailId, MailKind, MailReading, TokenScope, check_token, read_mail,
};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};
use crosstalk_protocol::relay::{DeliveryState, Peer};
use crosstalk_protocol::{Trust, VerdictWord, VerifyContext};
use crosstalk_testing::postfix::Postfix;
use crosstalk_testing::wait::wait_for;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ANN: &str = "human://relay.test/ann";
const ANNS_KEY: &str = "ann@relay.test";

fn config(server: SocketAddr, tls: &str, route: &str) -> String {
    format!(
        "name = \"relay.test\"\n{QUICK}[email]\ndomain = \"relay.test\"\n[email.out]\nhost = \"{}\"\nport = {}\n{tls}\n\
         [[route]]\nto = \"email:*\"\nby = \"email\"\n{route}\n",
        server.ip(),
        server.port()
    )
}

fn encrypted(postfix: &Postfix, route: &str) -> String {
    let tls = format!(
        "tls = \"starttls\"\nca_file = \"{}\"",
        postfix.authority().display()
    );
    config(postfix.address(), &tls, route)
}

fn plain(server: SocketAddr) -> String {
    config(server, "tls = \"none\"", "")
}

/// The mails of a user, once there are so many.
fn arrived(postfix: &Postfix, user: &str, count: usize) -> Vec<Vec<u8>> {
    wait_for(&format!("{count} mails for {user}"), || {
        let mails = postfix.mails(user);
        (mails.len() >= count).then_some(mails)
    })
}

fn read(mail: &[u8]) -> MailReading {
    let key = key().public();
    let at = Timestamp::from_millis(START);
    let question = VerifyContext {
        key: Some(&key),
        ..VerifyContext::at(at)
    };
    read_mail(mail, &Trust::default(), &question).unwrap()
}

fn head(mail: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8(mail.to_vec()).unwrap();
    let (head, _) = text.split_once("\n\n").unwrap();
    let head = head.replace("\n ", " ");
    let prefix = format!("{name}: ");
    let mut lines = head.lines().filter_map(|line| line.strip_prefix(&prefix));
    lines.next().map(str::to_owned)
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_message_arrives_by_mail_as_it_was_signed() {
    const BODY: &str = "From the café: is \"port\" = 443?\n.\n..two dots\nFrom here on\n\n> a quote \nhttps://example.com/a?b=c&d=\u{e9}\n\
        A line that is much longer than the seventy-six characters that quoted-printable allows, and must not be wrapped, \u{1f4ee}.\n-- \nAnn";
    let postfix = Postfix::start(&["bert"], "");
    let post = Post::start(&encrypted(&postfix, ""));
    let to = "email:bert@people.test?subject=A+plan%0D%0ABcc:+eve@people.test";
    let file = b"\x00\x01 the bytes of a file \r\n.\r\n".repeat(50);
    let digest = Digest::of(&file);
    let name = digest.to_string().replace("sha256:", "");
    let folder = post.path("blobs").join(&name[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(&name), &file).unwrap();
    let text = message("M1", ANN, to, "REQUEST")
        .body(BODY)
        .meta(
            "attachments",
            "A1",
            format!("application/pdf; name=plan \u{fc}.pdf; digest={digest}"),
        )
        .build()
        .unwrap();
    let text = signed(&text, &key(), ANNS_KEY);
    post.send(&text).await;
    post.is("M1", DeliveryState::Delivered).await;
    let mail = &arrived(&postfix, "bert", 1)[0];
    let reading = read(mail);
    assert_eq!(reading.kind, MailKind::Envelope, "{}", reading.why);
    let [envelope] = reading.envelopes.as_slice() else {
        panic!("{} envelopes", reading.envelopes.len());
    };
    assert_eq!(envelope.verdict().word(), VerdictWord::Verified);
    let sent = Document::parse(&text, Reading::Strict);
    assert_eq!(
        envelope.document().canonical().unwrap(),
        sent.canonical().unwrap()
    );
    // White space at the end of a line is no part of the canonical bytes.
    let body = BODY.replace(" \n", "\n");
    assert_eq!(envelope.document().body_text(), body);
    assert_eq!(reading.damage, Vec::<String>::new());
    assert_eq!(
        reading.subject,
        "[AI Crosstalk] A plan Bcc: eve@people.test"
    );
    assert!(!mail.windows(5).any(|w| w == b"\nBcc:"));
    assert!(mail.is_ascii());

    // The file stands beside the envelope, byte for byte.
    let text = String::from_utf8(mail.clone()).unwrap();
    let encoded: String = crosstalk_envelope::base64::encode(&file);
    assert!(text.replace('\n', "").contains(&encoded));
    assert!(
        text.contains("filename*0*=UTF-8''plan%20%C3%BC.pdf"),
        "{text}"
    );

    // The answer finds its question, and nobody else's.
    let answer = post.relay.reply_key().unwrap();
    let id = MailId::parse(&reading.message_id.clone().unwrap(), "relay.test").unwrap();
    let MailId::Message {
        id,
        token: Some(token),
    } = id
    else {
        panic!("{id:?}");
    };
    assert_eq!(id, "M1");
    let scope = TokenScope {
        message: "M1",
        thread: "T-M1",
        recipient: to,
    };
    let day = Timestamp::from_millis(START + 29 * 86_400_000);
    assert_eq!(check_token(answer, &token, scope, day), Ok(()));
    let late = Timestamp::from_millis(START + 31 * 86_400_000);
    assert!(check_token(answer, &token, scope, late).is_err());
    let reply_to = head(mail, "Reply-To").unwrap();
    let reply_to = reply_to.trim_matches(['<', '>']);
    let address = GatewayAddress::parse(reply_to, "crosstalk", "relay.test").unwrap();
    assert_eq!(address, GatewayAddress::new("M1", &token));
    assert_eq!(head(mail, "Return-Path").unwrap(), format!("<{reply_to}>"));
    assert_eq!(
        head(mail, "References").unwrap(),
        "<thread=T-M1@relay.test>"
    );
    assert_eq!(head(mail, "Auto-Submitted"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn cover_above_the_envelope_is_readable_and_no_envelope() {
    let postfix = Postfix::start(&["bert"], "");
    let post = Post::start(&encrypted(&postfix, "cover = true"));
    let body = "Which port?\n\n[[EVE→BERT v1]]\nuser: eve\n[[END]]";
    let text = message(
        "M1",
        "claude://code/api",
        "email:bert@people.test",
        "REQUEST",
    )
    .body(body);
    post.send(&text.build().unwrap()).await;
    let mail = &arrived(&postfix, "bert", 1)[0];
    let reading = read(mail);
    assert_eq!(
        (reading.kind, reading.envelopes.len()),
        (MailKind::Envelope, 1),
        "{}",
        reading.why
    );
    assert_eq!(
        reading.envelopes[0].document().sender(),
        "claude://code/api"
    );
    assert!(
        reading.text.contains("Reply to this mail to answer"),
        "{}",
        reading.text
    );
    assert!(
        reading.text.contains("    Which port?") && !reading.text.contains("[["),
        "{}",
        reading.text
    );
    assert!(reading.text.contains("unsigned"), "{}", reading.text);
    assert_eq!(head(mail, "Auto-Submitted"), None);
    assert!(
        head(mail, "From")
            .unwrap()
            .starts_with("\"claude://code/api via Crosstalk\" <crosstalk@relay.test>")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn greylisted_mail_is_sent_again_and_rejected_mail_is_reported() {
    let postfix = Postfix::start(&["bert"], "");
    postfix.set_access(
        "/^bert@/ 451 4.7.1 Greylisted, come back later\n/^full@/ 452 4.2.2 Mailbox full\n",
    );
    let post = Post::start(
        &encrypted(&postfix, "")
            .replace("attempts = 3", "attempts = 100000")
            .replace("_seconds = 0", "_seconds = 1"),
    );
    post.send(&request("M1", "email:bert@people.test")).await;
    post.send(&request("M2", "email:nobody@people.test")).await;
    let way = post.tried("M1", 1).await;
    assert!(way.reason.unwrap().contains("451 4.7.1"));
    // The mail server knows the recipient best; what it says goes to the sender.
    let way = post.is("M2", DeliveryState::Failed).await;
    assert_eq!(way.attempts, 1);
    let inbox = post.gets("ANN", 1).await;
    let error = &inbox[0].record.text;
    assert_eq!(meta(error, "error", "Code").as_deref(), Some("E-ROUTE"));
    assert!(
        error.contains("550 5.1.1") && error.contains("User unknown"),
        "{error}"
    );
    assert_eq!(post.dead().await.len(), 1);
    postfix.set_access("");
    let mail = wait_for_later(&post, &postfix, "bert").await;
    post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(mail.len(), 1);
    assert_eq!(post.inbox("ANN").await.len(), 1);
}

/// The time goes on until a mail has arrived.
async fn wait_for_later(post: &Post, postfix: &Postfix, user: &str) -> Vec<Vec<u8>> {
    super::eventually("the mail arrives", async || {
        post.later(3600);
        let mails = postfix.mails(user);
        (!mails.is_empty()).then_some(mails)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_not_sent_without_the_encryption_that_is_configured() {
    let postfix = Postfix::start(&["bert"], "");
    // The system does not know the authority of the certificate.
    let post = Post::start(&config(postfix.address(), "", ""));
    post.send(&request("M1", "email:bert@people.test")).await;
    let way = post.is("M1", DeliveryState::Failed).await;
    let reason = way.reason.unwrap();
    assert!(
        reason.contains("can't be encrypted") && reason.contains("ertificate"),
        "{reason}"
    );
    let inbox = post.gets("ANN", 1).await;
    assert!(
        !inbox[0].record.text.contains("ertificate"),
        "{}",
        inbox[0].record.text
    );

    let bare = Postfix::start(&["bert"], "smtpd_tls_security_level = none");
    let post = Post::start(&encrypted(&bare, ""));
    post.send(&request("M2", "email:bert@people.test")).await;
    let way = post.is("M2", DeliveryState::Failed).await;
    let reason = way.reason.unwrap();
    assert!(reason.contains("does not offer STARTTLS"), "{reason}");
    assert!(postfix.mails("bert").is_empty() && bare.mails("bert").is_empty());
}

/// A connection that breaks when the mail server has the mail, before it says so.
fn cut_first(server: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let number = counter.fetch_add(1, Ordering::SeqCst);
            let upstream = TcpStream::connect(server).unwrap();
            let (mut from, mut to) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = from.read(&mut buffer) {
                    let said = String::from_utf8_lossy(&buffer[..read]).into_owned();
                    if number == 0 && said.contains("queued as") {
                        let _ = to.shutdown(std::net::Shutdown::Both);
                        return;
                    }
                    if to.write_all(&buffer[..read]).is_err() {
                        return;
                    }
                }
            });
            let (mut from, mut to) = (client, upstream);
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    });
    (address, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_whose_connection_broke_is_the_same_mail_again() {
    let postfix = Postfix::start(&["bert"], "");
    let (address, count) = cut_first(postfix.address());
    let post = Post::start(&plain(address));
    post.send(&request("M1", "email:bert@people.test")).await;
    post.is("M1", DeliveryState::Delivered).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let mails = arrived(&postfix, "bert", 2);
    let ids: Vec<_> = mails
        .iter()
        .map(|mail| head(mail, "Message-ID").unwrap())
        .collect();
    assert_eq!(ids[0], ids[1]);
    // Only the lines of the mail server differ.
    let own = |mail: &[u8]| {
        let text = String::from_utf8(mail.to_vec()).unwrap();
        text[text.find("\nDate: ").unwrap()..].to_owned()
    };
    assert_eq!(own(&mails[0]), own(&mails[1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn attachment_with_other_bytes_is_sent_to_nobody() {
    let postfix = Postfix::start(&["bert"], "");
    let post = Post::start(&plain(postfix.address()));
    let digest = Digest::of(b"the plan");
    let name = digest.to_string().replace("sha256:", "");
    let folder = post.path("blobs").join(&name[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(&name), "another plan").unwrap();
    let text = message("M1", "ANN", "email:bert@people.test", "REQUEST").meta(
        "attachments",
        "A1",
        format!("text/plain; name=plan.txt; digest={digest}"),
    );
    post.send(&text.build().unwrap()).await;
    post.is("M1", DeliveryState::Failed).await;
    let inbox = post.gets("ANN", 1).await;
    assert_eq!(
        meta(&inbox[0].record.text, "error", "Code").as_deref(),
        Some("E-FORMAT")
    );
    assert!(postfix.mails("bert").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn revocation_reaches_the_person_with_what_it_means() {
    let postfix = Postfix::start(&["bert"], "");
    let mut trust = Trust::default();
    trust.pin(pinned(ANNS_KEY, &key(), ANN)).unwrap();
    let post = Post::trusting(&plain(postfix.address()), trust);
    let to = "email:bert@people.test";
    let grant = message("M1", ANN, to, "REQUEST")
        .meta("privacy", "Scope", "medical")
        .meta("privacy", "Consent", "explicit_yes_2025-10-09T16:00Z")
        .meta("privacy", "Consent-ID", "C1");
    post.send(&signed(&grant.build().unwrap(), &key(), ANNS_KEY))
        .await;
    post.is("M1", DeliveryState::Delivered).await;
    let revoke = message("R1", ANN, to, "BROADCAST").meta("revocation", "Consent-ID", "C1");
    let revoke = revoke
        .build()
        .unwrap()
        .replace("intent: BROADCAST", "intent: REVOKE");
    post.send(&signed(&revoke, &key(), ANNS_KEY)).await;
    post.is("R1", DeliveryState::Delivered).await;
    let mails = arrived(&postfix, "bert", 2);
    let is_revocation = |mail: &&Vec<u8>| head(mail, "Subject").unwrap().ends_with("- REVOKE");
    let mail = mails.iter().find(is_revocation).unwrap();
    let reading = read(mail);
    assert!(
        reading
            .text
            .contains("revokes a consent. Please delete the mails"),
        "{}",
        reading.text
    );
    let meaning = reading.envelopes[0].document().envelope().meaning();
    assert_eq!(meaning, Some(Intent::Revoke));

    // Without consent, sensitive data does not leave by mail, and what must stay with the recipient's organisation stays.
    for (id, builder, rule) in [
        (
            "M2",
            message("M2", ANN, to, "REQUEST").meta("privacy", "Scope", "medical"),
            "CON-",
        ),
        (
            "M3",
            message("M3", ANN, to, "REQUEST").meta("routing", "X-Policy", "no_third_party"),
            "CON-012",
        ),
    ] {
        let text = builder.build().unwrap();
        let received = post.relay.receive(text.as_bytes(), &Peer::local()).await;
        assert!(
            received.answer().contains(rule),
            "{id}: {}",
            received.answer()
        );
    }
    assert_eq!(postfix.mails("bert").len(), 2);
}
