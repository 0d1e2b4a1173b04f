//! Delivery: leases the deliveries that are due, hands them to handlers, and records the results.
//!
//! ```text
//! lease ──> lanes, one per destination ──> DeliveryHandler ──> AttemptOutcome ──> finish
//!           urgent first, a few at          │                     │
//!           once, paused after              └─ an answer ──> accepted as a message
//!           failures                                              └─ dead letter ──> ERROR to the sender
//! ```
//!
//! A slow destination keeps its own lane busy and no other. A crash loses nothing: the lease expires, and the delivery is
//! leased again.

mod email;
mod exec;
mod file;
mod http;
pub(crate) mod lane;
mod mcp;
mod missing;
mod relay;
mod reply;
mod run;
pub(crate) mod sms;
mod watch;

pub use email::{MailFault, MailStep, SmtpConnection};
pub use missing::{Missing, can_run, missing};
pub use reply::HandlerReply;

use crate::config::RouteEntry;
use crate::core::Relay;
use crate::port::Later;
use crosstalk_api::outbound::{Outbound, OutboundError};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::FollowUp;
use crosstalk_protocol::relay::Handler as By;
use crosstalk_protocol::store::Record;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as signal;
use tokio::task::JoinHandle;

/// What delivery needs besides the relay.
#[derive(Clone)]
pub struct DeliverySetup {
    /// Where commands run that have no directory of their own. It is made if it is not there.
    pub work: PathBuf,
    /// The data folder, in which the attachments are.
    pub data: PathBuf,
    /// Makes requests to other servers.
    pub outbound: Outbound,
}

/// One message for one recipient.
#[derive(Clone, Debug)]
pub struct DeliveryJob {
    /// The recipient.
    pub to: String,
    /// How.
    pub by: By,
    /// How often it was tried before.
    pub attempts: u32,
    /// When it was queued. A dead letter that the operator queues again has a later time.
    pub queued_at: Timestamp,
    /// The message, as it is kept.
    pub record: Record,
    /// The message, as it leaves the relay.
    pub text: String,
    /// The line of the table of routes that leads there; relays are found without one.
    pub route: Option<Arc<RouteEntry>>,
    /// What it follows up, if it is a person's reply to what a program asked.
    pub follow_up: Option<Box<FollowUp>>,
}

impl DeliveryJob {
    /// The number of this attempt, from 1. One that ended with the relay does not count.
    pub fn attempt(&self) -> u32 {
        self.attempts.saturating_add(1)
    }

    /// The message that an answer belongs to: this one, or the question that it follows up.
    pub(crate) fn asked(&self) -> &Record {
        let follow_up = self.follow_up.as_deref();
        follow_up.map_or(&self.record, |f| &f.question)
    }
}

/// What a failed attempt says about its destination: only a destination that fails gets a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It can't be reached, or fails whatever it gets.
    Destination,
    /// It got the message and failed: the message may be the cause. However often one message fails, it counts once.
    Either,
    /// It works, and does not accept this message; or the relay itself has no room for its answer.
    Message,
}

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The other side has it.
    Delivered {
        /// What it answered.
        answer: Option<HandlerReply>,
    },
    /// It did not work, and may work later.
    Later {
        /// What the sender is told in the end, if it never does.
        code: ErrorCode,
        /// Why, in one line: for the log and the dead letter.
        reason: String,
        /// Why, as the sender may know it; without it, the code says enough.
        public: Option<String>,
        /// Not before so long.
        after: Option<Duration>,
        /// What it says about other messages to the same destination.
        blame: Blame,
    },
    /// It will never work.
    Failed {
        /// What the sender is told.
        code: ErrorCode,
        /// Why, in one line: for the log and the dead letter.
        reason: String,
        /// Why, as the sender may know it; without it, the code says enough.
        public: Option<String>,
    },
}

impl AttemptOutcome {
    /// It arrived, and nothing came back.
    pub const fn delivered() -> Self {
        Self::Delivered { answer: None }
    }

    /// It did not work, and may work later.
    pub fn later(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self::Later {
            code,
            reason: reason.into(),
            public: None,
            after: None,
            blame: Blame::Destination,
        }
    }

    /// The same, blaming something else than the destination if it may work later.
    pub fn blaming(mut self, on: Blame) -> Self {
        if let Self::Later { blame, .. } = &mut self {
            *blame = on;
        }
        self
    }

    /// It will never work.
    pub fn failed(code: ErrorCode, reason: impl Into<String>) -> Self {
        Self::Failed {
            code,
            reason: reason.into(),
            public: None,
        }
    }

    /// It will never work, for a reason that the sender may know as it is.
    pub fn refused(code: ErrorCode, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Failed {
            code,
            public: Some(reason.clone()),
            reason,
        }
    }
}

impl From<OutboundError> for AttemptOutcome {
    fn from(error: OutboundError) -> Self {
        let code = match error {
            OutboundError::Late(_) => ErrorCode::Timeout,
            _ => ErrorCode::Route,
        };
        match error.is_temporary() {
            true => Self::later(code, error.to_string()),
            false => Self::failed(code, error.to_string()),
        }
    }
}

/// A way to bring a message to its recipient.
pub trait DeliveryHandler: Send + Sync {
    /// Brings it there.
    fn handle<'l>(&'l self, job: &'l DeliveryJob) -> Later<'l, AttemptOutcome>;
}

/// The workers of a relay.
pub struct DeliveryTask {
    stop: signal::Sender<Option<Duration>>,
    tasks: Vec<JoinHandle<()>>,
}

impl DeliveryTask {
    /// Starts to deliver, to close polls, to tell senders whose questions were not answered in time, and to look into the folders that are watched.
    pub fn start(relay: &Relay, setup: DeliverySetup) -> Self {
        let (stop, stopped) = signal::channel(None);
        let mut tasks = vec![tokio::spawn(run::run(
            relay.clone(),
            setup,
            stopped.clone(),
        ))];
        tasks.push(tokio::spawn(run::meet_deadlines(
            relay.clone(),
            stopped.clone(),
        )));
        for watch in &relay.config().watches {
            let (relay, watch) = (relay.clone(), watch.clone());
            tasks.push(tokio::spawn(watch::run(relay, watch, stopped.clone())));
        }
        Self { stop, tasks }
    }

    /// Stops: nothing new is begun, what runs gets so long, and what was leased is given back.
    pub async fn stop(self, grace: Duration) {
        self.stop.send_replace(Some(grace));
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(reason = %error, "a delivery worker panicked");
            }
        }
    }
}
