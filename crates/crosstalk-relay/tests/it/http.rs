//! A client that sends exactly the bytes it is told to.

use crosstalk_envelope::{Document, Reading};
use crosstalk_testing::wait::LIMIT;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection.
pub struct Line {
    stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Line {
    pub fn to(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    /// Sends bytes. What the other side does not take any more is not sent.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.get_mut().write_all(bytes.as_ref());
    }

    /// Waits until the other side ends the connection; false if it says something.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => true,
            Err(e) => panic!("the connection is not closed: {e}"),
        }
    }

    /// Whether there is something to read, or the end.
    pub fn has_come(&mut self) -> bool {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).unwrap();
        let seen = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        let is_nothing = seen.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
        !self.stream.buffer().is_empty() || !is_nothing
    }

    /// The next line of an answer that is still coming.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The head of an answer.
    pub fn head(&mut self) -> Option<Answer> {
        let mut status = String::new();
        self.stream.read_line(&mut status).ok()?;
        let status = status.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(": ") else {
                break;
            };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let body = Vec::new();
        Some(Answer {
            status,
            headers,
            body,
        })
    }

    /// An answer; nothing if the connection ended before.
    pub fn try_answer(&mut self, has_body: bool) -> Option<Answer> {
        let mut answer = self.head()?;
        while answer.status == 100 {
            answer = self.head()?;
        }
        if !has_body || matches!(answer.status, 204 | 304) {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                let mut part = vec![0; size];
                self.stream.read_exact(&mut part).unwrap();
                answer.body.extend(part);
                self.line();
                if size == 0 {
                    break;
                }
            }
        } else {
            let length = answer.header("content-length").unwrap().parse().unwrap();
            answer.body = vec![0; length];
            self.stream.read_exact(&mut answer.body).unwrap();
        }
        Some(answer)
    }

    pub fn answer(&mut self) -> Answer {
        self.try_answer(true).expect("an answer")
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn json(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/json"),
            "{}",
            self.text()
        );
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The intent of the envelope, which is read strictly.
    pub fn intent(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        let document = strict(self.text());
        let intent = document.envelope().intent.map(|i| i.written.to_owned());
        intent.unwrap()
    }

    /// The code of the ERROR envelope, which is read strictly.
    pub fn code(&self) -> String {
        assert_eq!(self.intent(), "ERROR", "{}", self.text());
        let document = strict(self.text());
        document.meta("error", "Code").unwrap().to_owned()
    }
}

/// An envelope that keeps every rule.
pub fn strict(text: &str) -> Document<'_> {
    let mut document = Document::parse(text, Reading::Strict);
    document.check();
    assert!(
        !document.diagnostics().iter().any(|d| d.is_error()),
        "{text}\n{:?}",
        document.diagnostics()
    );
    document
}

/// A request.
#[derive(Clone)]
pub struct Ask {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("Host".to_owned(), "localhost".to_owned())],
            body: Vec::new(),
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// A message for the relay.
    pub fn send(text: impl AsRef<[u8]>) -> Self {
        let post = Self::new("POST", "/crosstalk/receive");
        post.header("Content-Type", "text/plain; charset=utf-8")
            .body(text)
    }

    pub fn json(method: &str, path: &str, value: &Value) -> Self {
        let ask = Self::new(method, path);
        ask.header("Content-Type", "application/json")
            .body(value.to_string())
    }

    /// Sets a header in place of one that is there.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    pub fn accept(self, value: &str) -> Self {
        self.header("Accept", value)
    }

    pub fn token(self, secret: &str) -> Self {
        self.header("Authorization", &format!("Bearer {secret}"))
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.header("Content-Length", &length)
    }

    /// As it goes over the line.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        out.extend(&self.body);
        out
    }

    /// Asks on a line.
    pub fn on(&self, line: &mut Line) -> Answer {
        line.send(self.bytes());
        line.try_answer(self.method != "HEAD").expect("an answer")
    }
}
