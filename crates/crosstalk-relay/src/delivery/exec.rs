//! Runs a command with a message on its standard input. Its output is the answer. Its environment names the sender of the message;
//! nothing of a message is in its arguments.

mod output;

use super::{AttemptOutcome, Blame, DeliveryHandler, DeliveryJob, HandlerReply};
use crate::config::{ExecInput, RouteEntry};
use crate::port::Later;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::relay::{Handler as By, public_reason};
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{follow_up_prompt, message_variables, program_prompt};
use output::whole;
pub(super) use output::{Stop, Tail, plain};
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

/// How long a command may take, if nothing is configured.
pub(super) const TIMEOUT_SECONDS: u64 = 300;
/// How many bytes of an answer are read, if nothing is configured.
pub(super) const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// The status of a command that does not accept its input: EX_DATAERR of `sysexits.h`.
const REJECTED_INPUT: i32 = 65;
/// Variables that a command has of the relay's own.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TERM"];
/// How long the rest of the output may take once the command has ended: others may hold the pipe open.
pub(super) const REST_TIME: Duration = Duration::from_secs(2);

/// Runs commands.
pub(super) struct Exec {
    work: PathBuf,
}

impl Exec {
    pub(super) fn new(work: PathBuf) -> Self {
        Self { work }
    }

    async fn run(&self, job: &DeliveryJob) -> AttemptOutcome {
        let Some(route) = job.route.as_deref() else {
            return AttemptOutcome::later(ErrorCode::Route, "the route that led there is gone");
        };
        let child = match spawn(route, &self.work, job).await {
            Ok(child) => child,
            Err(outcome) => return outcome,
        };
        // Whatever happens to this attempt, nothing of the command is left behind.
        let group = ProcessGroup::of(&child);
        let input = input_of(job, route.input);
        let within = route.timeout_seconds.unwrap_or(TIMEOUT_SECONDS).max(1);
        let most = route.answer_bytes.unwrap_or(MAX_ANSWER_BYTES);
        let within = Duration::from_secs(within);
        match tokio::time::timeout(within, converse(child, &group, (&job.record, input), most))
            .await
        {
            Ok(Ok(answer)) => AttemptOutcome::Delivered { answer },
            Ok(Err(outcome)) => outcome,
            Err(_) => AttemptOutcome::later(
                ErrorCode::Timeout,
                format!(
                    "the command did not end within {} s and was killed",
                    within.as_secs()
                ),
            )
            .blaming(Blame::Either),
        }
    }
}

/// Starts the command of a route in a process group of its own. The error is the outcome of the attempt.
pub(super) async fn spawn(
    route: &RouteEntry,
    work: &Path,
    job: &DeliveryJob,
) -> Result<Child, AttemptOutcome> {
    start(route, work, job).await.map_err(|error| {
        let program = route.command.first().map_or("", String::as_str);
        AttemptOutcome::later(
            ErrorCode::Route,
            format!("the command `{program}` can't be started: {error}"),
        )
    })
}

async fn start(route: &RouteEntry, work: &Path, job: &DeliveryJob) -> std::io::Result<Child> {
    let directory = match &route.directory {
        Some(directory) => directory,
        None => {
            tokio::fs::create_dir_all(work).await?;
            work
        }
    };
    let (program, arguments) = route
        .command
        .split_first()
        .ok_or_else(|| std::io::Error::other("there is no command"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.envs(&route.environment);
    command.envs(message_variables(&job.record, 0, job.attempt()));
    command.spawn()
}

impl DeliveryHandler for Exec {
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome> {
        Box::pin(self.run(job))
    }
}

/// Hands the input over, reads what comes, and waits for the end.
async fn converse(
    mut child: Child,
    group: &ProcessGroup,
    (record, input): (&Record, String),
    most: u64,
) -> Result<Option<HandlerReply>, AttemptOutcome> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async move {
        if let Some(mut stdin) = stdin {
            // A command may answer without reading everything.
            let _ = stdin.write_all(input.as_bytes()).await;
            let _ = stdin.shutdown().await;
        }
    };
    let mut tail = Tail::default();
    let (ended, stop) = tokio::sync::oneshot::channel();
    let read = async {
        let stop = Stop::after(stop, REST_TIME);
        tokio::join!(whole(stdout, most, stop.clone()), tail.read(stderr, stop))
    };
    let end = async {
        let status = child.wait().await;
        // What it left behind in its group goes with it.
        group.kill();
        let _ = ended.send(());
        status
    };
    // A command that prints too much is not waited for.
    let read = async {
        let (output, ()) = read.await;
        if output.is_none() {
            group.kill();
        }
        output
    };
    let ((), output, status) = tokio::join!(feed, read, end);
    let said = tail.complaint();
    let Some(output) = output else {
        return Err(AttemptOutcome::failed(
            ErrorCode::TooLarge,
            format!("the command printed more than {most} bytes and was killed{said}"),
        ));
    };
    match status {
        Ok(status) if status.success() => {
            let reply = output::reply(&output, &record.text);
            reply.map_err(|why| {
                let reason = format!("the command {why}{said}");
                AttemptOutcome::later(ErrorCode::Route, reason).blaming(Blame::Either)
            })
        }
        Ok(status) => Err(AttemptOutcome::Later {
            code: ErrorCode::Route,
            reason: format!("the command ended with {status}{said}"),
            // How it ended says nothing about the machine.
            public: Some(format!(
                "{} ({status})",
                public_reason(By::Exec, ErrorCode::Route)
            )),
            after: None,
            blame: match status.code() {
                Some(REJECTED_INPUT) => Blame::Message,
                _ => Blame::Either,
            },
        }),
        Err(error) => Err(AttemptOutcome::later(
            ErrorCode::Route,
            format!("the command can't be waited for: {error}"),
        )),
    }
}

/// The process group of a command; it is killed when this goes.
pub(super) struct ProcessGroup {
    leader: Option<Pid>,
}

impl ProcessGroup {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            // 0 would be the group of the relay itself.
            leader: id.filter(|id| *id > 1).and_then(Pid::from_raw),
        }
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) {
        if let Some(leader) = self.leader {
            // If nothing is left, there is nothing to kill.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The input for a command.
fn input_of(job: &DeliveryJob, form: ExecInput) -> String {
    let record = &job.record;
    match (form, &job.follow_up) {
        (ExecInput::Envelope, _) => record.text.clone(),
        (ExecInput::Body, _) => {
            let body = Document::parse(&record.text, Reading::Strict).body_text();
            let mut body = visible(&body).into_owned();
            body.push('\n');
            body
        }
        (ExecInput::Prompt, Some(follow_up)) => follow_up_prompt(&job.to, follow_up),
        (ExecInput::Prompt, None) => {
            let sender = speaker(&record.sender, &record.text, 0).into_owned();
            let record = Record {
                sender,
                ..record.clone()
            };
            program_prompt(&job.to, &record)
        }
    }
}
