//! The floor: the least that a server in Rust does with a request of this size. It reads the body, and answers with as
//! much of it as the relay's answer has.

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use std::io::{Error, Result};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// The server, on all cores, until it is killed.
pub fn serve(address: &str, size: &str) -> Result<()> {
    let size = size.parse().map_err(Error::other)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async { axum::serve(TcpListener::bind(address).await?, echo(size)).await })
}

fn echo(size: usize) -> Router {
    let answer = move |body: Bytes| async move {
        let kind = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
        (kind, body.slice(..size.min(body.len()))).into_response()
    };
    Router::new().route("/crosstalk/receive", post(answer))
}

/// The server in a process of its own.
pub struct Floor {
    process: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Floor {
    /// Starts this program as the floor, and waits until it takes connections.
    pub fn start(size: usize) -> Result<Self> {
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let process = Command::new(std::env::current_exe()?)
            .args(["floor", &address.to_string(), &size.to_string()])
            .stdin(Stdio::null())
            .spawn()?;
        let floor = Self { process, address };
        let end = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(address).is_err() {
            if Instant::now() > end {
                return Err(Error::other("the floor does not come up"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(floor)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server in a thread of this process, for tests.
#[cfg(test)]
pub fn here(size: usize) -> Result<SocketAddr> {
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    std::thread::spawn(move || serve(&address.to_string(), &size.to_string()));
    while std::net::TcpStream::connect(address).is_err() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(address)
}
