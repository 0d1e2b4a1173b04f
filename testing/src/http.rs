//! A small HTTP/1.1 client for tests: one connection, kept alive, every byte of it under the test's control.
//!
//! ```
//! use crosstalk_testing::http::Connection;
//! use std::io::{Read as _, Write as _};
//!
//! let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let address = server.local_addr()?;
//! let serving = std::thread::spawn(move || -> std::io::Result<()> {
//!     let (mut peer, _) = server.accept()?;
//!     peer.read(&mut [0; 1024])?;
//!     peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nup")
//! });
//! let answer = Connection::open(address)?.get("/healthz")?;
//! assert_eq!((answer.status, answer.text()), (200, "up".into()));
//! # serving.join().expect("no panic")?;
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::wait::LIMIT;
use std::io::{BufRead as _, BufReader, Error, ErrorKind, Read, Result, Write as _};
use std::net::{SocketAddr, TcpStream};

/// The longest answer.
const LONGEST: u64 = 1 << 30;

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    headers: String,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self {
            stream: BufReader::new(stream),
            address,
            headers: String::new(),
        })
    }

    /// The same connection; a header goes with every request from now on.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(name);
        self.headers.push_str(": ");
        self.headers.push_str(value);
        self.headers.push_str("\r\n");
        self
    }

    /// Asks with GET.
    ///
    /// # Errors
    /// If no whole answer comes.
    pub fn get(&mut self, path: &str) -> Result<Answer> {
        self.request("GET", path, "", b"")
    }

    /// Sends one envelope.
    ///
    /// # Errors
    /// If no whole answer comes.
    pub fn receive(&mut self, envelope: &str) -> Result<Answer> {
        let body = envelope.as_bytes();
        let kind = "Content-Type: text/plain; charset=utf-8\r\n";
        self.request("POST", "/crosstalk/receive", kind, body)
    }

    /// Sends JSON with POST.
    ///
    /// # Errors
    /// If no whole answer comes.
    pub fn post_json(&mut self, path: &str, json: &str) -> Result<Answer> {
        let kind = "Content-Type: application/json\r\n";
        self.request("POST", path, kind, json.as_bytes())
    }

    /// Sends any request. More headers are given as lines, each with its end.
    ///
    /// # Errors
    /// If no whole answer comes.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<Answer> {
        let mut length = String::new();
        if !body.is_empty() || method == "POST" || method == "PUT" {
            length = format!("Content-Length: {}\r\n", body.len());
        }
        let (address, own) = (self.address, &self.headers);
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{own}{headers}{length}\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        self.send(&bytes)?;
        self.answer()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If they can't be sent.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// If no whole answer comes.
    pub fn answer(&mut self) -> Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| broken(format!("the answer begins with {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| broken(format!("no header: {line:?}")))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            self.chunks(&mut answer.body)?;
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().ok().filter(|l| *l <= LONGEST);
            let length = length.ok_or_else(|| broken("no length that is sensible".into()))?;
            self.exactly(length, &mut answer.body)?;
        }
        Ok(answer)
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Result<()> {
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16)
                .map_err(|_| broken(format!("no size of a chunk: {line:?}")))?;
            self.exactly(size.min(LONGEST), body)?;
            self.line()?;
            if size == 0 {
                return Ok(());
            }
        }
    }

    fn exactly(&mut self, length: u64, body: &mut Vec<u8>) -> Result<()> {
        let read = self.stream.by_ref().take(length).read_to_end(body)?;
        if read as u64 == length {
            Ok(())
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stream.by_ref().take(1 << 16).read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn broken(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of a name, given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Reads a response from the bytes of a server.
    fn read(bytes: &'static [u8]) -> Vec<Result<Answer>> {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut peer, _) = server.accept().unwrap();
            peer.write_all(bytes).unwrap();
        });
        let mut connection = Connection::open(address).unwrap();
        let answers = vec![connection.answer(), connection.answer()];
        serving.join().unwrap();
        answers
    }

    #[test]
    fn one_answer_after_the_other() {
        let answers = read(
            b"HTTP/1.1 200 OK\r\nX-A:  b \r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 503 No\r\nTransfer-Encoding: \
              chunked\r\n\r\n2\r\nxy\r\n1;e=f\r\nz\r\n0\r\n\r\n",
        );
        let [Ok(one), Ok(two)] = answers.as_slice() else {
            panic!("{answers:?}");
        };
        assert_eq!((one.status, one.text().as_str()), (200, "abc"));
        assert_eq!(one.header("x-a"), Some("b"));
        assert_eq!((two.status, two.text().as_str()), (503, "xyz"));
    }

    #[test]
    fn half_an_answer_is_none() {
        for bytes in [
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc".as_slice(),
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"",
        ] {
            let answers = read(bytes);
            let first = answers.first().unwrap().as_ref().unwrap_err();
            assert_eq!(first.kind(), ErrorKind::UnexpectedEof);
        }
    }
}
