//! Delivery of one message to one recipient: handler, state, attempts and retries.

use crate::audit::{Event, EventDetail, EventKind};
use crosstalk_envelope::words;
use std::time::Duration;

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;

words! {
    /// How a message gets to its recipient: `X-Delivery`, or the handler of a route.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Handler {
        /// It waits here until the recipient asks for it.
        Inbox = "inbox",
        /// A person carries it to a chat and back.
        CopyPaste = "copy_paste",
        /// It is posted to an endpoint.
        Http = "http",
        /// It is written to a folder.
        File = "file",
        /// A command gets it on standard input.
        Exec = "exec",
        /// It is passed on to the relay of another domain.
        Relay = "relay",
        /// It is sent as a mail.
        Email = "email",
        /// It is sent as a text message.
        Sms = "sms",
        /// A tool of an MCP server is called with it.
        Mcp = "mcp",
    }
}

impl Handler {
    /// Whether the relay brings the message somewhere, instead of keeping it until somebody comes.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Inbox | Self::CopyPaste)
    }

    /// Whether the relay runs what answers: a program, or a tool. Neither can acknowledge a message, and the relay writes the
    /// answer into an envelope.
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Exec | Self::Mcp)
    }
}

/// A recipient of a message and the way of delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipient {
    /// The address.
    pub address: String,
    /// How it gets there.
    pub by: Handler,
}

/// How far a message is on its way to a recipient. It only goes forward, unless a dead letter is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeliveryState {
    /// It is on disk and waits.
    Queued,
    /// It was handed out, or the handler has it.
    Delivered,
    /// The recipient says that it was read.
    Read,
    /// The recipient acknowledged it.
    Acknowledged,
    /// It will not be tried any more.
    Failed,
    /// It waits for a person, and is on its way to nobody: no delivery is kept in this state.
    Held,
    /// The relay has it and could not index it, so that it is on its way to nobody: no delivery is kept in this state.
    Quarantined,
}

/// A message that a relay accepted and could not index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Its id.
    pub id: String,
    /// Its position in the accepted sequence.
    pub seq: u64,
    /// Why it could not be indexed.
    pub reason: String,
}

impl DeliveryState {
    /// All states that a delivery is kept in.
    pub const ALL: [Self; 5] = [
        Self::Queued,
        Self::Delivered,
        Self::Read,
        Self::Acknowledged,
        Self::Failed,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Quarantined => "quarantined",
        }
    }

    /// The state of a delivery that a word names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// The event to log when a delivery enters this state from another one: that it was delivered, or became a dead letter.
    pub fn event_after(self, before: Self) -> Option<EventKind> {
        match self {
            Self::Failed => Some(EventKind::Failed),
            _ if before == Self::Queued => Some(EventKind::Delivered),
            _ => None,
        }
    }

    /// Whether this state may follow another one.
    ///
    /// ```
    /// use crosstalk_protocol::relay::DeliveryState;
    /// assert!(DeliveryState::Read.follows(DeliveryState::Queued) && !DeliveryState::Delivered.follows(DeliveryState::Read));
    /// assert!(DeliveryState::Failed.follows(DeliveryState::Delivered) && !DeliveryState::Failed.follows(DeliveryState::Read));
    /// ```
    pub fn follows(self, now: Self) -> bool {
        match self {
            Self::Held | Self::Quarantined => false,
            Self::Failed => matches!(now, Self::Queued | Self::Delivered),
            _ => now < Self::Failed && now < self,
        }
    }
}

/// A delivery as its sender sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// To whom.
    pub to: String,
    /// How.
    pub by: Handler,
    /// How far it is.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was queued.
    pub queued_at: Timestamp,
    /// When it was handed out first.
    pub delivered_at: Option<Timestamp>,
    /// When it was read.
    pub read_at: Option<Timestamp>,
    /// When it was acknowledged.
    pub acknowledged_at: Option<Timestamp>,
    /// When it became a dead letter.
    pub failed_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub reason: Option<String>,
    /// When it is tried next, or, if it is leased, when the lease ends.
    pub next_at: Option<Timestamp>,
    /// Since when the relay has it in work, if it has.
    pub leased_at: Option<Timestamp>,
}

impl Delivery {
    /// A delivery to which nothing has happened yet.
    pub fn queued(to: impl Into<String>, by: Handler, at: Timestamp) -> Self {
        Self {
            to: to.into(),
            by,
            state: DeliveryState::Queued,
            attempts: 0,
            queued_at: at,
            delivered_at: None,
            read_at: None,
            acknowledged_at: None,
            failed_at: None,
            reason: None,
            next_at: by.is_active().then_some(at),
            leased_at: None,
        }
    }

    /// Writes a state, whatever the present one is.
    pub fn set_state(&mut self, state: DeliveryState, at: Timestamp, reason: Option<&str>) {
        match state {
            DeliveryState::Queued | DeliveryState::Held | DeliveryState::Quarantined => return,
            DeliveryState::Delivered => {}
            DeliveryState::Read => self.read_at = Some(at),
            DeliveryState::Acknowledged => self.acknowledged_at = Some(at),
            DeliveryState::Failed => self.failed_at = Some(at),
        }
        if state != DeliveryState::Failed {
            self.delivered_at.get_or_insert(at);
        }
        self.state = state;
        (self.next_at, self.leased_at) = (None, None);
        self.reason = reason.map(str::to_owned);
    }

    /// Brings it into a state, if that may follow the present one. Returns the event to log for its message.
    pub fn reach(
        &mut self,
        state: DeliveryState,
        at: Timestamp,
        reason: Option<&str>,
    ) -> Option<Event<'static>> {
        let before = self.state;
        if !state.follows(before) {
            return None;
        }
        self.set_state(state, at, reason);
        // Not why: the words of a NACK go when it is erased, and what is in the log stays.
        let detail = EventDetail::default()
            .with("to", &self.to)
            .with("by", self.by.as_str());
        Some(Event {
            detail: Some(detail),
            ..Event::new(state.event_after(before)?, at)
        })
    }

    /// Whether it can be leased: a handler carries it out, and its time has come.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.is_scheduled() && self.next_at.is_some_and(|next| next <= now)
    }

    /// Whether a handler carries it out, now or later.
    pub fn is_scheduled(&self) -> bool {
        self.state == DeliveryState::Queued && self.by.is_active()
    }

    /// Leases it. The name of the lease is a time that no earlier lease has, even if the clock was set back.
    pub fn lease(&mut self, now: Timestamp, until: Timestamp) -> Timestamp {
        let after = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(1));
        let leased_at = self.leased_at.map_or(now, |before| now.max(after(before)));
        (self.next_at, self.leased_at) = (Some(until), Some(leased_at));
        leased_at
    }

    /// Whether it is under the lease of this name.
    pub fn is_leased(&self, leased_at: Timestamp) -> bool {
        self.state == DeliveryState::Queued && self.leased_at == Some(leased_at)
    }

    /// Ends its lease, to be leased again at a time.
    pub fn release(&mut self, at: Timestamp) {
        (self.next_at, self.leased_at) = (Some(at), None);
    }

    /// Whether the result of an attempt counts that was made under this lease.
    pub fn counts_attempt(&self, leased_at: Option<Timestamp>) -> bool {
        self.state == DeliveryState::Queued && self.leased_at == leased_at
    }

    /// Records the result of an attempt that counts. Returns the event to log for its message.
    pub fn finish(&mut self, attempt: &Attempt, at: Timestamp) -> Option<Event<'static>> {
        self.attempts = self.attempts.saturating_add(1);
        match attempt {
            Attempt::Delivered => self.reach(DeliveryState::Delivered, at, None),
            Attempt::Failed { reason } => self.reach(DeliveryState::Failed, at, Some(reason)),
            Attempt::Later { at: next, reason } => {
                self.next_at = self.by.is_active().then_some(*next);
                self.leased_at = None;
                self.reason = Some(reason.clone());
                None
            }
        }
    }

    /// Records that the program of its recipient failed on it, if it [is in hand](Self::is_in_hand). Returns the
    /// event to log for its message.
    pub fn note_failure(&mut self, is_final: bool, at: Timestamp) -> Option<Event<'static>> {
        let reason = program_failure(is_final);
        let state = match is_final {
            true => DeliveryState::Failed,
            false => DeliveryState::Delivered,
        };
        self.attempts = self.attempts.saturating_add(1);
        self.reason = Some(reason.clone());
        self.reach(state, at, Some(&reason))
    }

    /// Queues it again, if it is a dead letter. False if it is none.
    pub fn requeue(&mut self, at: Timestamp) -> bool {
        if self.state != DeliveryState::Failed {
            return false;
        }
        *self = Self::queued(std::mem::take(&mut self.to), self.by, at);
        true
    }

    /// Whether its recipient gets it from the inbox. A program on a route can't acknowledge: what it has processed would come
    /// again to anyone who listens later.
    pub fn is_in_inbox(&self) -> bool {
        self.state < DeliveryState::Acknowledged
            && (!self.by.is_program() || self.state == DeliveryState::Queued)
    }

    /// Whether its recipient fetches it here and has neither read it nor given it up: then the recipient may say that it
    /// failed on it.
    pub const fn is_in_hand(&self) -> bool {
        !self.by.is_active()
            && matches!(self.state, DeliveryState::Queued | DeliveryState::Delivered)
    }

    /// Why the last attempt failed, for others than the operator: what a handler found out about programs, files and servers
    /// of this relay is not for them. What a recipient or a courier said is.
    ///
    /// ```
    /// # use crosstalk_protocol::relay::{Delivery, Handler};
    /// # use crosstalk_envelope::Timestamp;
    /// let mut delivery = Delivery::queued("bot://x", Handler::Exec, Timestamp::from_millis(0));
    /// delivery.reason = Some("E-ROUTE: the command ended with exit status: 3; it says: no such key".into());
    /// assert_eq!(delivery.public_reason().unwrap(), "E-ROUTE: the program that answers for this address failed");
    /// ```
    pub fn public_reason(&self) -> Option<String> {
        let reason = self.reason.as_deref()?;
        if matches!(self.by, Handler::Inbox | Handler::CopyPaste) || reason == INTERRUPTED {
            return Some(reason.to_owned());
        }
        let word = reason.split(':').next().unwrap_or_default();
        let code = ErrorCode::ALL.iter().find(|c| c.as_str() == word);
        Some(match (code, self.state) {
            (Some(code), _) => format!("{word}: {}", public_reason(self.by, *code)),
            (None, DeliveryState::Queued) if self.by.is_program() => PROGRAM_RETRIED.into(),
            (None, DeliveryState::Queued) => "the delivery failed and will be retried".into(),
            (None, _) => "it was not delivered".into(),
        })
    }
}

/// The reason of a delivery whose attempt ended with the relay.
pub const INTERRUPTED: &str =
    "interrupted: the relay ended before the attempt did; it will be tried again";

const PROGRAM_FAILED: &str = "the program that answers for this address failed";
const PROGRAM_RETRIED: &str =
    "the program that answers for this address failed and will be retried";

/// The reason of a delivery whose recipient is a program that failed: for good, or until it is retried. It says nothing about
/// the machine where the program runs.
///
/// ```
/// use crosstalk_protocol::relay::program_failure;
/// assert_eq!(program_failure(true), "E-ROUTE: the program that answers for this address failed");
/// ```
pub fn program_failure(is_final: bool) -> String {
    match is_final {
        true => format!("{}: {PROGRAM_FAILED}", ErrorCode::Route.as_str()),
        false => PROGRAM_RETRIED.to_owned(),
    }
}

/// Why a delivery failed, in words that say nothing about the machine of the relay.
pub const fn public_reason(by: Handler, code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Route if by.is_program() => PROGRAM_FAILED,
        ErrorCode::Route => "the recipient could not be reached",
        ErrorCode::Consent => "the consent does not cover it",
        ErrorCode::Format => "the answer of the recipient can't be read",
        ErrorCode::TooLarge => "the message, or the answer to it, is too large",
        ErrorCode::Perm => "the recipient, or the relay on the way, may not do this",
        ErrorCode::Unsupported => "the recipient does not support it",
        ErrorCode::Timeout => "the recipient did not answer in time",
        ErrorCode::Rate => "the recipient asks for too much at once, or is too busy",
    }
}

/// What a sender can do about a delivery that failed.
pub const fn undelivered_help(by: Handler, code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Route | ErrorCode::Timeout if by.is_program() => {
            "send it again later, or ask someone else. The operator of the program sees why it failed."
        }
        _ => "check the address, or send it again later.",
    }
}

/// What became of an attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The handler has it.
    Delivered,
    /// It did not work, and is tried again.
    Later {
        /// When.
        at: Timestamp,
        /// Why, in one line.
        reason: String,
    },
    /// It is not tried again.
    Failed {
        /// Why, in one line.
        reason: String,
    },
}

/// How long to wait between attempts: twice as long each time, with a random part, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts there are.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(2),
            longest: Duration::from_secs(3600),
            attempts: 16,
        }
    }
}

impl Backoff {
    /// The wait after so many attempts; nothing if there are no more. `random` is anything from 0 to `u32::MAX`: the wait
    /// lies between half of the full one and all of it.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Backoff;
    /// use std::time::Duration;
    /// let backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60), attempts: 8 };
    /// assert_eq!(backoff.after(1, u32::MAX), Some(Duration::from_secs(2)));
    /// assert_eq!(backoff.after(3, 0), Some(Duration::from_secs(4)));
    /// assert_eq!(backoff.after(7, u32::MAX), Some(Duration::from_secs(60)));
    /// assert_eq!(backoff.after(8, 0), None);
    /// ```
    pub fn after(&self, attempts: u32, random: u32) -> Option<Duration> {
        if attempts >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        let share = 0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX);
        Some(full.mul_f64(share))
    }
}
