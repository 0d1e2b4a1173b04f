//! The program that answers messages: it gets one on standard input and prints the answer.

use super::ProgramInput;
use crate::failure::Failure;
use crate::service::relay::remote::MessageView;
use crate::view;
use crosstalk_envelope::{Document, ErrorCode, Reading, limit};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{FollowUp, follow_up_prompt, message_variables, program_prompt};
use crosstalk_relay::delivery::can_run;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(20);

/// The prefix of the variables of all settings.
const SETTINGS_PREFIX: &[u8] = b"CROSSTALK_";

#[derive(Debug)]
pub(super) struct Program {
    name: String,
    arguments: Vec<String>,
    given: ProgramInput,
    timeout: Duration,
}

impl Program {
    /// The program of the command line, checked before the first message arrives.
    pub(super) fn new(
        words: &[String],
        given: ProgramInput,
        timeout: Duration,
    ) -> Result<Option<Self>, Failure> {
        let Some((name, arguments)) = words.split_first() else {
            return Ok(None);
        };
        if !can_run(name, Path::new("."), None) {
            let name = view::line(name);
            return Err(Failure::usage(format!(
                "--exec: the program `{name}` does not exist, or can't be run"
            ))
            .help("install it, or write its path"));
        }
        Ok(Some(Self {
            name: name.clone(),
            arguments: arguments.to_vec(),
            given,
            timeout,
        }))
    }

    fn text(&self, waiting: &MessageView, record: &Record, follow_up: Option<&FollowUp>) -> String {
        let document = Document::parse(&waiting.envelope, Reading::Strict);
        match (self.given, follow_up) {
            (ProgramInput::Envelope, _) => waiting.envelope.clone(),
            (ProgramInput::Prompt, Some(follow_up)) => follow_up_prompt(&waiting.to, follow_up),
            (ProgramInput::Prompt, None) => {
                let sender = speaker(&record.sender, &record.text, 1).into_owned();
                let record = Record {
                    sender,
                    ..record.clone()
                };
                program_prompt(&waiting.to, &record)
            }
            (ProgramInput::Body, _) => format!("{}\n", document.body_text()),
        }
    }

    /// Runs the program on a message and returns its output. The message is not in its arguments; the environment names
    /// the sender.
    pub(super) fn run(
        &self,
        waiting: &MessageView,
        record: &Record,
        follow_up: Option<&FollowUp>,
    ) -> Result<String, Failure> {
        let name = &self.name;
        let mut command = Command::new(name);
        command.args(&self.arguments);
        // Its surroundings are those of the person who started it, without their settings of Crosstalk and without what
        // opens their keys.
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(SETTINGS_PREFIX) {
                command.env_remove(variable);
            }
        }
        let mut child = command
            .envs(message_variables(record, 1, waiting.attempt.unwrap_or(1)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|e| Failure::failed(format!("`{name}` can't be run: {e}")))?;
        let text = self.text(waiting, record, follow_up);
        if let Some(mut pipe) = child.stdin.take() {
            // A program that does not read its input closes the pipe; that is its right.
            std::thread::spawn(move || drop(pipe.write_all(text.as_bytes())));
        }
        let (tell, said) = mpsc::channel();
        if let Some(pipe) = child.stdout.take() {
            std::thread::spawn(move || drop(tell.send(bounded(pipe))));
        }
        let is_well = self.wait(&mut child)?;
        let bytes = said
            .recv_timeout(Duration::from_secs(10))
            .map_err(|_| Failure::failed(format!("`{name}` ended, and left its output open")))?
            .map_err(|e| Failure::io(format!("the output of {name}"), e))?;
        if !is_well.0 {
            return Err(Failure::failed(format!("`{name}` failed ({})", is_well.1)));
        }
        if bytes.len() > limit::ENVELOPE_BYTES {
            return Err(Failure::refused(
                ErrorCode::TooLarge,
                format!(
                    "`{name}` printed more than the {} bytes of an envelope",
                    limit::ENVELOPE_BYTES
                ),
            ));
        }
        String::from_utf8(bytes)
            .map_err(|_| Failure::malformed(format!("the output of `{name}` is not UTF-8")))
    }

    /// Waits for the program and kills it after the timeout. Returns whether it succeeded, and its status.
    fn wait(&self, child: &mut Child) -> Result<(bool, String), Failure> {
        let io = |e| Failure::io(self.name.clone(), e);
        let end = Instant::now() + self.timeout;
        loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                return Ok((status.success(), status.to_string()));
            }
            if Instant::now() >= end {
                // It may have ended just now.
                let _ = child.kill();
                child.wait().map_err(io)?;
                let seconds = self.timeout.as_secs();
                return Err(Failure::refused(
                    ErrorCode::Timeout,
                    format!(
                        "`{}` did not end within {seconds} seconds, and was killed",
                        self.name
                    ),
                ));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Reads slightly more than the limit of an answer and drops the rest, so that the program can end.
fn bounded(mut pipe: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(limit::ENVELOPE_BYTES).unwrap_or(u64::MAX);
    pipe.by_ref()
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    std::io::copy(&mut pipe, &mut std::io::sink())?;
    Ok(bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn waiting() -> MessageView {
        let envelope = "[[A→B v1]]\nuser: u\nthread: T\nmessage: M\ncontext: c\nintent: REQUEST\nbody: |\n  $(touch /tmp/x)\nsig: none\n[[END]]\n";
        MessageView {
            id: "M".into(),
            thread: "T".into(),
            from: "A".into(),
            to: "B".into(),
            intent: Some("REQUEST".into()),
            state: None,
            attempt: None,
            received_at: String::new(),
            signature: None,
            pkid: None,
            envelope: envelope.into(),
            history: None,
            withheld: None,
        }
    }

    fn record() -> Option<Record> {
        let at = crosstalk_envelope::Timestamp::from_millis(0);
        let envelope = waiting().envelope;
        let document = Document::parse(&envelope, Reading::Strict);
        let (arrival, _) = crate::service::deliver::arrival(&document, None, at);
        let folder = tempfile::tempdir().ok()?;
        let mut store = crosstalk_store::SqliteStore::open(folder.path().join("s.db")).ok()?;
        store.accept(&[arrival]).ok()?;
        store.message("M").ok()?
    }

    fn run(words: &[&str], given: ProgramInput, seconds: u64) -> Result<String, Failure> {
        let words: Vec<String> = words.iter().map(|w| w.to_string()).collect();
        let program = Program::new(&words, given, Duration::from_secs(seconds))?;
        let gone = || Failure::failed("the message is not kept");
        let record = record().ok_or_else(gone)?;
        program.map_or_else(|| Ok(String::new()), |p| p.run(&waiting(), &record, None))
    }

    #[test]
    fn the_message_comes_on_standard_input_and_nowhere_else() {
        assert_eq!(
            run(&["cat"], ProgramInput::Envelope, 60).unwrap(),
            waiting().envelope
        );
        assert_eq!(
            run(&["cat"], ProgramInput::Body, 60).unwrap(),
            "$(touch /tmp/x)\n"
        );
        let prompt = run(&["cat"], ProgramInput::Prompt, 60).unwrap();
        assert!(prompt.contains("[[A→B v1]]") && prompt.contains("Verification: unsigned"));
        for word in ["chat", "copy and paste", "ask me", "code block"] {
            assert!(!prompt.contains(word), "{word}: {prompt}");
        }
        let around = run(
            &["sh", "-c", "echo \"$0 $# $*\"; env", "x"],
            ProgramInput::Envelope,
            60,
        )
        .unwrap();
        assert!(!around.contains("touch"), "{around}");
    }

    #[test]
    fn a_program_that_fails_or_hangs_is_no_answer() {
        assert!(
            run(&["sh", "-c", "echo no; exit 3"], ProgramInput::Body, 60)
                .unwrap_err()
                .to_string()
                .contains("3")
        );
        assert_eq!(
            run(&["sleep", "600"], ProgramInput::Body, 1)
                .unwrap_err()
                .exit(),
            ErrorCode::Timeout.into()
        );
        assert!(run(&["/no/such/program"], ProgramInput::Body, 60).is_err());
        let flood = run(
            &["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"],
            ProgramInput::Body,
            60,
        );
        assert_eq!(flood.unwrap_err().exit(), ErrorCode::TooLarge.into());
        // Input that nobody reads does no harm.
        assert_eq!(run(&["true"], ProgramInput::Body, 60).unwrap(), "");
    }
}
