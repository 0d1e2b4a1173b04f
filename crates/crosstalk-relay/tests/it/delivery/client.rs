//! The client, against a real relay.

use super::{Post, message, meta, request};
use crosstalk_api::client::{AgentInfo, Blocking, Client, ClientError, NewToken};
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::meta::Digest;
use crosstalk_relay::server::{ServerOptions, serve};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// A relay without credentials, which gives everything to a script that fails, for `dead://`.
async fn open() -> (Post, Client) {
    let config = "[retry]\nattempts = 1\n[[route]]\nto = \"dead://*\"\nby = \"exec\"\ncommand = [\"false\"]\n";
    let post = Post::start(config);
    let address = listen(&post).await;
    let client = Client::new(&format!("http://{address}")).unwrap();
    (post, client)
}

async fn listen(post: &Post) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServerOptions {
        data: post.folder.path().to_owned(),
        tls: None,
        shutdown: std::future::pending(),
    };
    tokio::spawn(serve(post.relay.clone(), listener, options));
    address
}

const NO_WAIT: Duration = Duration::ZERO;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_sent_read_answered_and_acknowledged() {
    let (_post, client) = open().await;
    let sent = client.send(&request("M1", "bot://b")).await.unwrap();
    let receipt = sent.receipt.unwrap();
    assert!(receipt.digest.starts_with("sha256:") && receipt.index == Some(0));
    let inbox = client.inbox("bot://b", None, 10, NO_WAIT).await.unwrap();
    assert_eq!(
        (inbox.messages.len(), inbox.messages[0].id.as_str()),
        (1, "M1")
    );
    let asking = {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .ask(&request("M2", "bot://b"), Duration::from_secs(60))
                .await
        })
    };
    let next = client
        .inbox("bot://b", Some(&inbox.cursor), 10, Duration::from_secs(60))
        .await
        .unwrap();
    assert_eq!(next.messages[0].id, "M2");
    let answer = message("A2", "bot://b", "ANN", "RESPOND")
        .thread("T-M2")
        .parent("M2");
    client.send(&answer.build().unwrap()).await.unwrap();
    let answered = asking.await.unwrap().unwrap();
    assert!(
        answered.receipt.is_none() && answered.answer.contains("message: A2"),
        "{}",
        answered.answer
    );
    let acked = client
        .acknowledge("bot://b", &["M1", "NONE"])
        .await
        .unwrap();
    assert_eq!(
        (acked.changed.as_slice(), acked.unknown.as_slice()),
        (&["M1".to_owned()][..], &["NONE".to_owned()][..])
    );
    let status = client.status("M1").await.unwrap();
    assert_eq!(status.deliveries[0].state, "acknowledged");
    assert_eq!(client.message("M2").await.unwrap().from, "ANN");
    let tree = client.thread("T-M2").await.unwrap();
    assert_eq!(tree.messages[0].answers[0].message.id, "A2");
    assert!(client.export("T-M2").await.unwrap().contains("message: A2"));
    assert_eq!(
        client
            .threads(None, true, 10, None)
            .await
            .unwrap()
            .threads
            .len(),
        2
    );
    assert_eq!(client.search("port", 10).await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_keeps_its_code_and_its_words() {
    let (_post, client) = open().await;
    let Err(ClientError::Rejected(refused)) = client.send("hello").await else {
        panic!("it was taken");
    };
    assert_eq!(
        (refused.status, refused.code),
        (400, Some(ErrorCode::Format))
    );
    assert!(refused.detail.contains("What to do"), "{}", refused.detail);
    let error = client.status("NONE").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Route));
    assert!(!error.is_temporary());
    let wrong = client
        .clone()
        .with_token("xt_wrong")
        .inbox("ANN", None, 1, NO_WAIT)
        .await
        .unwrap_err();
    assert_eq!(wrong.code(), Some(ErrorCode::Perm));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_has_one_answer_each() {
    let (_post, client) = open().await;
    let (one, two) = (request("M1", "bot://b"), request("M2", "sms://b"));
    let answers = client.send_batch(&[&one, &two]).await.unwrap();
    assert_eq!(answers.len(), 2);
    assert!(meta(&answers[0], "receipt", "Digest").is_some());
    assert_eq!(
        meta(&answers[1], "error", "Code").as_deref(),
        Some("E-UNSUPPORTED")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_gives_what_comes() {
    let (_post, client) = open().await;
    client.send(&request("M1", "bot://b")).await.unwrap();
    let mut stream = client.stream("bot://b", None).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().id, "M1");
    client.send(&request("M2", "bot://b")).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().id, "M2");
    let cursor = stream.cursor().unwrap().to_owned();
    client.send(&request("M3", "bot://b")).await.unwrap();
    let mut again = client.stream("bot://b", Some(&cursor)).await.unwrap();
    assert_eq!(again.next().await.unwrap().unwrap().id, "M3");
}

#[tokio::test(flavor = "multi_thread")]
async fn attachments_names_agents_couriers_and_dead_letters() {
    let (post, client) = open().await;
    let digest = client.put_blob("hello".into()).await.unwrap();
    assert_eq!(digest, Digest::of(b"hello"));
    assert_eq!(client.get_blob(digest, 100).await.unwrap(), "hello");
    assert!(client.get_blob(Digest::of(b"other"), 100).await.is_err());
    assert_eq!(client.resolve("NOBODY").await.unwrap().by, "nobody");
    let agent = AgentInfo {
        address: "bot://b".into(),
        capabilities: vec!["sql".into()],
    };
    client.declare(&agent).await.unwrap();
    // The operator assigned nothing to it.
    assert_eq!(client.agents().await.unwrap(), []);
    client.send(&request("C1", "CHATGPT")).await.unwrap();
    let carried = client.courier(10).await.unwrap();
    assert_eq!((carried.len(), carried[0].id.as_str()), (1, "C1"));
    client.carried("C1", "CHATGPT", None).await.unwrap();
    assert!(client.courier(10).await.unwrap().is_empty());
    client.send(&request("D1", "dead://x")).await.unwrap();
    post.is("D1", crosstalk_protocol::relay::DeliveryState::Failed)
        .await;
    let dead = client.dead(10).await.unwrap();
    assert_eq!(
        (dead[0].id.as_str(), dead[0].to.as_str()),
        ("D1", "dead://x")
    );
    assert_eq!(client.requeue("D1").await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_made_used_and_revoked() {
    let (_post, client) = open().await;
    let admin = NewToken {
        name: "boss".into(),
        role: "admin".into(),
        addresses: vec!["*".into()],
        courier: Vec::new(),
        expires_at: None,
    };
    let made = client.add_token(&admin).await.unwrap();
    let boss = client.clone().with_token(made.token.unwrap());
    let agent = NewToken {
        name: "ci".into(),
        role: "agent".into(),
        addresses: vec!["bot://ci".into()],
        courier: Vec::new(),
        expires_at: None,
    };
    let secret = boss.add_token(&agent).await.unwrap().token.unwrap();
    let ci = client.clone().with_token(secret);
    ci.send(
        &message("M1", "bot://ci", "bot://b", "REQUEST")
            .build()
            .unwrap(),
    )
    .await
    .unwrap();
    let forged = ci.send(&request("M2", "bot://b")).await.unwrap_err();
    assert_eq!(forged.code(), Some(ErrorCode::Perm));
    assert_eq!(boss.tokens().await.unwrap().len(), 2);
    boss.revoke_token("ci").await.unwrap();
    assert!(ci.inbox("bot://ci", None, 1, NO_WAIT).await.is_err());
}

#[test]
fn a_program_without_a_runtime_can_use_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_post, client) = runtime.block_on(open());
    let client = Blocking::new(client).unwrap();
    client
        .run(async |c| c.send(&request("M1", "bot://b")).await)
        .unwrap();
    let inbox = client
        .run(async |c| c.inbox("bot://b", None, 10, NO_WAIT).await)
        .unwrap();
    assert_eq!(inbox.messages.len(), 1);
}

/// A relay that never comes to an end is cut off at what one answer can hold, whatever it is asked for.
#[test]
fn an_endless_answer_is_cut_off() {
    use crosstalk_api::outbound::OutboundError;
    use std::io::{Read as _, Write as _};
    const MIB: u64 = 1 << 20;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
            let part = vec![b' '; 1 << 20];
            while stream.write_all(&part).is_ok() {}
        }
    });
    let client = Blocking::new(Client::new(&url).unwrap()).unwrap();
    let cut_at = |error: ClientError| match error {
        ClientError::Outbound(OutboundError::TooLarge { most, .. }) => most / MIB,
        other => panic!("{other:?}"),
    };
    let inbox = client.run(async |c| c.inbox("BOT", None, 500, Duration::ZERO).await);
    assert_eq!(cut_at(inbox.unwrap_err()), 32);
    let tokens = client.run(async |c| c.tokens().await);
    assert_eq!(cut_at(tokens.unwrap_err()), 32);
    let thread = client.run(async |c| c.thread("T1").await);
    assert_eq!(cut_at(thread.unwrap_err()), 64);
    let acked = client.run(async |c| c.acknowledge("BOT", &["M1"]).await);
    assert_eq!(cut_at(acked.unwrap_err()), 8);
    let note = client.run(async |c| {
        c.checkpoint(crosstalk_protocol::audit::ChainId::FIRST)
            .await
    });
    assert_eq!(cut_at(note.unwrap_err()), 8);
}
