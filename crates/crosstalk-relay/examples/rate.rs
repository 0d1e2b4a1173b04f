#![allow(
    missing_docs,
    clippy::all,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::expect_used
)]
use crosstalk_envelope::{Timestamp, id};
use crosstalk_protocol::{
    Trust,
    relay::{Peer, RelayStore},
};
use crosstalk_relay::{
    config::Config,
    core::{Relay, Setup},
    port::Keyring,
};
use crosstalk_store::SqliteStore;
use std::time::Instant;
struct K;
impl Keyring for K {
    fn read(&self) -> Result<Trust, String> {
        Ok(Trust::default())
    }
    fn update(&self, _: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        Ok(Trust::default())
    }
}
fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("relay.db");
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let writer = SqliteStore::open(&path).unwrap(); let p2 = path.clone();
        let relay = Relay::start(Setup{config: Config::default(), writer: Box::new(writer), open: Box::new(move || Ok(Box::new(SqliteStore::open(&p2)?) as Box<dyn RelayStore+Send>)), resolver: None, keyring: Box::new(K), key: None, command: Box::new(|words| format!("crosstalk {words}")), clock: Box::new(|| Timestamp::from_millis(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64))}).unwrap();
        let body = "  A line of text that is about sixty characters long, as prose is.\n".repeat(13);
        for conns in [64usize, 256] {
            let total = 100_000usize; let t = Instant::now();
            let tasks: Vec<_> = (0..conns).map(|c| { let relay = relay.clone(); let body = body.clone(); tokio::spawn(async move {
                let peer = Peer::local();
                for n in 0..total/conns {
                    let text = format!("[[CLAUDE→claude://session/{} v1]]\nuser: kalle\nthread: 01K74V6VX0S86Z5JATM52C{:04}\nmessage: {}\ncontext: auth\nintent: REQUEST\n\nmeta: routing\nX-Priority: high\n\nbody: |\n{body}sig: none\n[[END]]\n", c, n % 1000, id::new_ulid());
                    assert_eq!(relay.receive(text.as_bytes(), &peer).await.status(), 200);
                }
            })}).collect();
            for t in tasks { t.await.unwrap(); }
            let e = t.elapsed().as_secs_f64();
            println!("{conns}: {:.0}/s, batches {}, backlog {}", total as f64 / e, relay.metrics().batches.load(std::sync::atomic::Ordering::Relaxed), relay.metrics().backlog.load(std::sync::atomic::Ordering::Relaxed));
            let t = Instant::now(); let left = relay.metrics().backlog.load(std::sync::atomic::Ordering::Relaxed);
            let mut f = relay.indexing(); f.wait_for(|f| f.left == 0).await.unwrap();
            println!("filed {left} in {:.2} s: {:.0}/s", t.elapsed().as_secs_f64(), left as f64/t.elapsed().as_secs_f64());
        }
        relay.stop().await;
    });
}
