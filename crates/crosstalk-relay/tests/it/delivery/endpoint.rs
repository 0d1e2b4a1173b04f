//! An HTTP endpoint of an agent, with all the faults that one can have.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// What came.
#[derive(Clone, Debug)]
pub struct Asked {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// What is answered.
pub enum Say {
    /// A status, headers and a body.
    Status(u16, &'static str, String),
    /// Nothing: the connection is closed.
    Nothing,
    /// Nothing, and the connection stays until the other side ends it.
    Silence,
    /// A status with these headers, and no end of the body until the other side ends the connection.
    Endless(u16, &'static str),
}

impl Say {
    pub fn ok() -> Self {
        Self::Status(200, "", String::new())
    }
}

/// A running endpoint.
pub struct Endpoint {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// How many connections the other side ended that never got a whole answer.
    ended: Arc<AtomicUsize>,
    /// Answers are given as long as there are permits.
    gate: Arc<Semaphore>,
}

impl Endpoint {
    /// One that answers the request with each number, from 0.
    pub async fn start(answer: impl Fn(usize, &Asked) -> Say + Send + Sync + 'static) -> Self {
        let endpoint = Self::closed(answer).await;
        endpoint.gate.add_permits(1_000_000);
        endpoint
    }

    /// One that answers only when it is let.
    pub async fn closed(answer: impl Fn(usize, &Asked) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let gate = Arc::new(Semaphore::new(0));
        let ended: Arc<AtomicUsize> = Arc::default();
        let left = Arc::clone(&ended);
        let (seen, open, answer) = (Arc::clone(&asked), Arc::clone(&gate), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, open, answer) =
                    (Arc::clone(&seen), Arc::clone(&open), Arc::clone(&answer));
                let left = Arc::clone(&left);
                tokio::spawn(async move {
                    serve(stream, &seen, &open, &left, answer.as_ref()).await;
                });
            }
        });
        Self {
            address,
            asked,
            ended,
            gate,
        }
    }

    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }

    pub fn let_go(&self, count: usize) {
        self.gate.add_permits(count);
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Asked>>,
    gate: &Semaphore,
    ended: &AtomicUsize,
    answer: &(dyn Fn(usize, &Asked) -> Say + Send + Sync),
) {
    let Some(asked) = read(&mut stream).await else {
        return;
    };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(asked.clone());
        seen.len() - 1
    };
    gate.acquire().await.unwrap().forget();
    match answer(number, &asked) {
        Say::Nothing => {}
        Say::Silence => {
            let _ = stream.read_to_end(&mut Vec::new()).await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
        Say::Endless(status, headers) => {
            let head = format!("HTTP/1.1 {status} X\r\n{headers}\r\n");
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
        Say::Status(status, headers, body) => {
            let text = format!(
                "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(text.as_bytes()).await;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |l| l.parse().unwrap());
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[end + 4..].to_vec()).unwrap();
    Some(Asked {
        line,
        headers,
        body,
    })
}
