//! Any program under the case files: it reads one question per line and answers each with one line, both as JSON.
//!
//! Nothing that the program does holds up a run: an answer has a time limit and a largest size, and the process is killed
//! with everything that it started. A program that breaks off is started again for the next case, so that one crash does not
//! hide the other results.

mod process;
mod report;

pub use report::{AreaCount, ProgramOutcome, ProgramReport, ProgramResult, ProgramSummary, SCHEMA};

use crate::judge::judge;
use crate::level::SpecLevel;
use crate::question::{CaseFailure, CaseQuestion, Implementation};
use crate::set::{CaseSet, CaseSource};
use process::{NoLine, Process, ProcessEnd};
use report::shortened;
use serde_json::Value;
use std::cell::RefCell;
use std::io;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long an answer may take, if the caller does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The largest answer to a small question; a large one may have an answer of eight times its size.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// After so many cases in a row without an answer, the run stops. A mistake often shows in many cases that stand together, and
/// to start a program again costs little.
const MAX_BREAKS_IN_A_ROW: usize = 20;
/// After so many answers that did not come in time, the run stops: each one costs the whole time limit.
const MAX_TIMEOUTS: usize = 3;
/// How much of a question or an answer is kept to be shown.
const EXCHANGE_CHARS: usize = 2_000;

/// A question and its answer, shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseExchange {
    /// The line that was sent.
    pub question: String,
    /// The line that came, if one did.
    pub answer: Option<String>,
}

/// A program under test.
pub struct TestedProgram {
    command: String,
    timeout: Duration,
    runtime: Runtime,
    state: RefCell<RunState>,
}

#[derive(Default)]
struct RunState {
    process: Option<Process>,
    asked: u64,
    answered: u64,
    breaks_in_a_row: usize,
    timeouts: usize,
    is_interrupted: bool,
    exchanges: Vec<CaseExchange>,
}

impl TestedProgram {
    /// A program by its command line, which the shell reads. It is started with the first question.
    ///
    /// # Errors
    /// The system gives no runtime.
    pub fn new(command: &str, timeout: Duration) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            command: command.to_owned(),
            timeout,
            runtime,
            state: RefCell::default(),
        })
    }

    /// Runs the cases of a set, one after the other. `tell` gets each result as it comes.
    pub fn run(
        &self,
        set: &CaseSet,
        level: SpecLevel,
        mut tell: impl FnMut(&ProgramResult),
    ) -> ProgramReport {
        let began = Instant::now();
        let mut stopped = None;
        let mut results = Vec::with_capacity(set.sources().len());
        for (number, source) in set.sources().iter().enumerate() {
            let result = match &stopped {
                None => self.run_case(source),
                Some(_) => ProgramResult::new(source, ProgramOutcome::NotRun, Duration::ZERO),
            };
            tell(&result);
            results.push(result);
            let is_last = number + 1 == set.sources().len();
            stopped = stopped.or_else(|| self.why_stop().filter(|_| !is_last));
        }
        ProgramReport {
            program: self.command.clone(),
            level,
            results,
            stopped,
            stderr: self.end(),
            time: began.elapsed(),
        }
    }

    fn run_case(&self, source: &CaseSource) -> ProgramResult {
        let began = Instant::now();
        self.state.borrow_mut().exchanges.clear();
        let judged = match source.read() {
            Ok(case) => judge(&case, self),
            Err(fault) => Err(CaseFailure::Case(fault)),
        };
        let outcome = match judged {
            Ok(()) => ProgramOutcome::Passed,
            Err(CaseFailure::Unsupported) => match source.optional.is_some() {
                true => ProgramOutcome::LeftOut,
                false => ProgramOutcome::Unsupported,
            },
            Err(fault) => ProgramOutcome::failed(fault),
        };
        ProgramResult::new(source, outcome, began.elapsed())
    }

    /// The questions and answers of the last case.
    pub fn exchanges(&self) -> Vec<CaseExchange> {
        self.state.borrow().exchanges.clone()
    }

    /// Why no further case is run, if so.
    fn why_stop(&self) -> Option<String> {
        let state = self.state.borrow();
        let breaks = state.breaks_in_a_row;
        if state.is_interrupted {
            Some("The run was interrupted.".into())
        } else if breaks > 0 && state.answered == 0 {
            Some("The program never answered.".into())
        } else if breaks >= MAX_BREAKS_IN_A_ROW {
            Some(format!(
                "The program gave no answer to {breaks} cases in a row."
            ))
        } else if state.timeouts >= MAX_TIMEOUTS {
            Some(format!("{MAX_TIMEOUTS} answers did not come in time."))
        } else {
            None
        }
    }

    /// Sends a question and reads the answer.
    fn exchange(&self, question: &CaseQuestion) -> Result<ProgramAnswer, Break> {
        let mut state = self.state.borrow_mut();
        state.asked += 1;
        let id = state.asked;
        let line = question.line(id);
        state.exchanges.push(CaseExchange {
            question: shown(&line),
            answer: None,
        });
        let mut process = match state.process.take() {
            Some(process) => process,
            None => {
                let _inside = self.runtime.enter();
                Process::start(&self.command).map_err(Break::Start)?
            }
        };
        let max_bytes = MAX_ANSWER_BYTES.saturating_add(line.len().saturating_mul(8));
        let came = process.ask(&line, self.timeout, max_bytes);
        let came = self.runtime.block_on(came);
        state.process = Some(process);
        let came = came.map_err(Break::NoLine)?;
        if let Some(exchange) = state.exchanges.last_mut() {
            exchange.answer = Some(shown(&came));
        }
        let answer = ProgramAnswer::read(&came, id)?;
        state.answered += 1;
        state.breaks_in_a_row = 0;
        if let Some(process) = state.process.take_if(|process| !process.is_in_step()) {
            // The rest of the question would be read as the next one.
            self.runtime.block_on(process.end(false));
        }
        Ok(answer)
    }

    /// Ends a program that broke off, and says how.
    fn break_off(&self, why: &Break) -> String {
        let mut state = self.state.borrow_mut();
        state.breaks_in_a_row += 1;
        let process = state.process.take();
        // One that closed its output most often ends by itself, and then says how.
        let is_closed = matches!(why, Break::NoLine(NoLine::Closed));
        let ended = process.map(|process| self.runtime.block_on(process.end(is_closed)));
        match why {
            Break::NoLine(NoLine::Timeout) => state.timeouts += 1,
            Break::NoLine(NoLine::Interrupted) => state.is_interrupted = true,
            _ => {}
        }
        let mut told = why.sentence(self.timeout, ended.as_ref());
        if let Some(ProcessEnd { stderr, .. }) = ended
            && !stderr.is_empty()
        {
            told.push_str("\nstderr: ");
            told.push_str(&stderr);
        }
        told
    }

    /// Ends the program; the end of what it wrote to stderr.
    fn end(&self) -> String {
        let process = self.state.borrow_mut().process.take();
        let ended = process.map(|process| self.runtime.block_on(process.end(true)));
        ended.map(|ended| ended.stderr).unwrap_or_default()
    }
}

impl Implementation for TestedProgram {
    fn answer(&self, question: &CaseQuestion) -> Result<Value, CaseFailure> {
        match self.exchange(question) {
            Ok(ProgramAnswer::Result(result)) => Ok(result),
            Ok(ProgramAnswer::Unsupported) => Err(CaseFailure::Unsupported),
            Ok(ProgramAnswer::Error(error)) => {
                let error = shortened(&error, EXCHANGE_CHARS);
                let why = format!("the program reports an error: {error}");
                Err(CaseFailure::NoAnswer(why))
            }
            Err(why) => Err(CaseFailure::NoAnswer(self.break_off(&why))),
        }
    }
}

fn shown(line: &[u8]) -> String {
    // Four bytes are enough for a character: only what is shown is decoded.
    let start = line.get(..4 * EXCHANGE_CHARS).unwrap_or(line);
    let text = String::from_utf8_lossy(start);
    let text = shortened(text.trim_end(), EXCHANGE_CHARS);
    match start.len() < line.len() {
        true => format!("{text} … ({} bytes in all)", line.len()),
        false => text,
    }
}

/// An answer of the program.
enum ProgramAnswer {
    Result(Value),
    Unsupported,
    Error(String),
}

impl ProgramAnswer {
    fn read(line: &[u8], id: u64) -> Result<Self, Break> {
        let Ok(Value::Object(mut object)) = serde_json::from_slice(line) else {
            return Err(Break::NotJson(shown(line)));
        };
        if object.get("id").and_then(Value::as_u64) != Some(id) {
            let came = object.get("id").unwrap_or(&Value::Null);
            let came = shortened(&came.to_string(), 40);
            return Err(Break::OtherId { came, asked: id });
        }
        if object.get("unsupported") == Some(&Value::Bool(true)) {
            return Ok(Self::Unsupported);
        }
        match (object.remove("result"), object.remove("error")) {
            (_, Some(Value::String(error))) => Ok(Self::Error(error)),
            (Some(result @ Value::Object(_)), _) => Ok(Self::Result(result)),
            _ => Err(Break::NoResult(shown(line))),
        }
    }
}

/// Why there is no usable answer, and the program has to be ended.
#[derive(Debug)]
enum Break {
    Start(io::Error),
    NoLine(NoLine),
    NotJson(String),
    OtherId { came: String, asked: u64 },
    NoResult(String),
}

impl Break {
    fn sentence(&self, timeout: Duration, ended: Option<&ProcessEnd>) -> String {
        match self {
            Self::Start(error) => format!("the shell can't be started: {error}"),
            Self::NoLine(NoLine::Timeout) => format!(
                "the program did not answer within {} s and was killed. A program has to flush its output after each line; \
                 --timeout gives it more time",
                timeout.as_secs()
            ),
            Self::NoLine(NoLine::Closed) => match ended.and_then(|ended| ended.status) {
                Some(status) => format!("the program ended before it answered ({status})"),
                None => "the program closed its output before it answered, and was killed".into(),
            },
            Self::NoLine(NoLine::TooLong(bytes)) => format!(
                "the program printed more than {bytes} bytes without a line end and was killed"
            ),
            Self::NoLine(NoLine::Interrupted) => "the run was interrupted".into(),
            Self::NotJson(line) => format!(
                "the program printed a line that is not a JSON object: {line}\nOnly answers belong on stdout; \
                 write everything else to stderr"
            ),
            Self::OtherId { came, asked } => format!(
                "the program answered with the id {came} where the question has the id {asked}: each question gets one \
                 line with its own id"
            ),
            Self::NoResult(line) => format!(
                "the answer has neither `result`, an object, nor `unsupported`: true, nor `error`, a text: {line}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let read = |line: &str| ProgramAnswer::read(line.as_bytes(), 7);
        assert!(matches!(
            read(r#"{"id":7,"result":{}}"#),
            Ok(ProgramAnswer::Result(_))
        ));
        assert!(matches!(
            read(r#"{"id":7,"unsupported":true}"#),
            Ok(ProgramAnswer::Unsupported)
        ));
        assert!(matches!(
            read(r#"{"id":7,"error":"x"}"#),
            Ok(ProgramAnswer::Error(_))
        ));
        assert!(matches!(read("ready"), Err(Break::NotJson(_))));
        assert!(matches!(read("[7]"), Err(Break::NotJson(_))));
        assert!(matches!(
            read(r#"{"id":6,"result":{}}"#),
            Err(Break::OtherId { .. })
        ));
        assert!(matches!(
            read(r#"{"result":{}}"#),
            Err(Break::OtherId { .. })
        ));
        for line in [
            r#"{"id":7}"#,
            r#"{"id":7,"result":[]}"#,
            r#"{"id":7,"unsupported":false}"#,
        ] {
            assert!(matches!(read(line), Err(Break::NoResult(_))), "{line}");
        }
    }

    #[test]
    fn long_lines_are_shown_by_their_start() {
        let line = format!("{}\n", "é".repeat(40_000));
        let told = shown(line.as_bytes());
        assert!(told.chars().count() < EXCHANGE_CHARS + 80, "{}", told.len());
        assert!(told.ends_with("(80001 bytes in all)"), "{told}");
    }
}
