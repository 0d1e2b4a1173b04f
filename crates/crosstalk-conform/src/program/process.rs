//! The process of a program under test: lines in, lines out, and nothing that it does holds up a run.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much is read at once.
const PIECE_BYTES: usize = 64 << 10;
/// How much of stderr is kept: the end of it.
const STDERR_BYTES: usize = 4 << 10;
/// How long a program that has to end may take for it, and its last words to arrive.
const END: Duration = Duration::from_secs(2);

/// Why there is no line.
#[derive(Debug)]
pub(super) enum NoLine {
    /// It took too long.
    Timeout,
    /// The program closed its output, most often because it ended.
    Closed,
    /// The line has more than so many bytes.
    TooLong(usize),
    /// The person who runs the suite interrupted it.
    Interrupted,
}

/// How a program ended, and the end of what it wrote to stderr.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    /// Unknown if it had to be killed.
    pub(super) status: Option<ExitStatus>,
    pub(super) stderr: String,
}

/// A running program and everything that it started.
pub(super) struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// Bytes that were read behind the last line.
    rest: Vec<u8>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: JoinHandle<()>,
    /// Whether it read every question to its end.
    is_in_step: bool,
}

impl Process {
    /// Starts a command line, through the shell so that it may have arguments. It leads a process group of its own.
    pub(super) fn start(command: &str) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pipe = || io::Error::other("a pipe is missing");
        let stdin = child.stdin.take().ok_or_else(pipe)?;
        let stdout = child.stdout.take().ok_or_else(pipe)?;
        let from = child.stderr.take().ok_or_else(pipe)?;
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let stderr_reader = tokio::spawn(keep_tail(from, Arc::clone(&stderr)));
        Ok(Self {
            child,
            stdin,
            stdout,
            rest: Vec::new(),
            stderr,
            stderr_reader,
            is_in_step: true,
        })
    }

    /// Sends a line and waits for a line.
    pub(super) async fn ask(
        &mut self,
        line: &[u8],
        within: Duration,
        max_bytes: usize,
    ) -> Result<Vec<u8>, NoLine> {
        let stdin = &mut self.stdin;
        // If the program does not read, that shows in what it answers.
        let write = async {
            let _ = stdin.write_all(line).await;
            let _ = stdin.flush().await;
        };
        let read = read_line(&mut self.stdout, &mut self.rest, max_bytes);
        let is_in_step = &mut self.is_in_step;
        let exchange = async {
            tokio::pin!(write, read);
            tokio::select! {
                biased;
                // It answers before it read the question to its end, and may never do so.
                answer = &mut read => {
                    *is_in_step = timeout(END, write).await.is_ok();
                    answer
                }
                () = &mut write => read.await,
            }
        };
        tokio::select! {
            answer = timeout(within, exchange) => answer.unwrap_or(Err(NoLine::Timeout)),
            _ = tokio::signal::ctrl_c() => Err(NoLine::Interrupted),
        }
    }

    /// Whether the next question can be asked: the program read all before it.
    pub(super) const fn is_in_step(&self) -> bool {
        self.is_in_step
    }

    /// Ends the program: closes its input, waits a moment for it to end by itself if `politely`, and kills what is left.
    pub(super) async fn end(self, politely: bool) -> ProcessEnd {
        let Self {
            mut child,
            stdin,
            stdout,
            stderr,
            stderr_reader,
            ..
        } = self;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        // 0 and 1 would be our own group and everybody's.
        let group = group.filter(|id| *id > 1).and_then(Pid::from_raw);
        let kill = || {
            if let Some(group) = group {
                // If nothing is left, there is nothing to kill.
                let _ = kill_process_group(group, Signal::KILL);
            }
        };
        drop((stdin, stdout));
        let status = match politely {
            true => timeout(END, child.wait()).await.ok().and_then(Result::ok),
            false => None,
        };
        kill();
        if status.is_none() {
            let _ = timeout(END, child.wait()).await;
        }
        // A process that left the group may hold the pipe open: it is not waited for.
        let abort = stderr_reader.abort_handle();
        let _ = timeout(END, stderr_reader).await;
        abort.abort();
        let bytes = stderr.lock().unwrap_or_else(PoisonError::into_inner);
        ProcessEnd {
            status,
            stderr: String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        }
    }
}

/// Reads up to the next line end; the line end is not part of the line.
async fn read_line(
    from: &mut (impl AsyncRead + Unpin),
    rest: &mut Vec<u8>,
    max_bytes: usize,
) -> Result<Vec<u8>, NoLine> {
    let mut line = std::mem::take(rest);
    let mut searched = 0;
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let new = line.get(searched..).unwrap_or_default();
        if let Some(at) = new.iter().position(|b| *b == b'\n') {
            *rest = line.split_off(searched + at + 1);
            line.pop();
            return Ok(line);
        }
        searched = line.len();
        if searched > max_bytes {
            return Err(NoLine::TooLong(max_bytes));
        }
        let count = from.read(&mut buffer).await.unwrap_or(0);
        match buffer.get(..count) {
            Some(read) if !read.is_empty() => line.extend_from_slice(read),
            _ => return Err(NoLine::Closed),
        }
    }
}

/// Keeps the end of what comes.
async fn keep_tail(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut buffer).await.unwrap_or(0);
        let Some(read) = buffer.get(..count).filter(|read| !read.is_empty()) else {
            return;
        };
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(read);
        let surplus = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_split_wherever_the_pieces_end() {
        let mut rest = Vec::new();
        let mut from = &b"one\ntwo\r\n\nlast"[..];
        let mut lines = Vec::new();
        while let Ok(line) = read_line(&mut from, &mut rest, 10).await {
            lines.push(line);
        }
        assert_eq!(lines, [&b"one"[..], b"two\r", b""]);
        let endless = vec![b'x'; 3 * PIECE_BYTES];
        let long = read_line(&mut &endless[..], &mut Vec::new(), PIECE_BYTES).await;
        assert!(matches!(long, Err(NoLine::TooLong(PIECE_BYTES))));
    }
}
