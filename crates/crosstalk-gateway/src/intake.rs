//! The way of one mail into the relay: read it, look up what is known about it, decide, hand it to the intake that HTTP uses.
//!
//! When [`MailIntake::receive`] says that a mail is accepted, its messages are on disk.

use crate::authenticate::{MailPeer, SenderAuthenticator};
use crosstalk_email::limit::MAIL_BYTES;
use crosstalk_email::{
    AskedQuestion, GatewayAddress, MailDecision, MailFacts, MailId, MailKind, MailMessage,
    MailReading, MailSpeaker, TokenError, TokenEvidence, TokenScope, check_token, decide,
    is_same_mailbox, mailbox_of, read_mail, thread_place,
};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::reply::Rejection;
use crosstalk_protocol::dns::DnsAnswer;
use crosstalk_protocol::relay::report::{rejected_answer, undeliverable};
use crosstalk_protocol::relay::{Handler, Pattern, Peer};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use crosstalk_protocol::{VerdictWord, VerifyContext, domain_to_ask};
use crosstalk_relay::config::{Config, Email};
use crosstalk_relay::core::{Received, Relay};
use crosstalk_relay::metrics::IncomingOutcome;
use crosstalk_relay::rate::RateLimiter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How many mails are read at once: that is work for a processor.
const READERS: usize = 4;
/// How many damaged messages are restored at once: that is a search.
const RESTORERS: usize = 1;
/// How long a mail waits for the search.
const RESTORE_SECONDS: u64 = 20;
/// The longest chain of ids that is followed to the question.
const MAX_CANDIDATES: usize = 8;

/// The outcome for a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailOutcome {
    /// Its messages are on disk: their ids, and whether a person has to decide about one.
    Accepted(Vec<String>),
    /// Nothing was done, and nobody is told. The reason is for the log.
    Dropped(String),
    /// It can't be accepted now.
    Later(String),
    /// It was rejected.
    Rejected(Rejection),
}

impl MailOutcome {
    /// The answer of a mail server: code and text.
    pub fn to_reply(&self) -> (u16, String) {
        match self {
            Self::Accepted(ids) => (250, format!("2.0.0 accepted {}", ids.join(" "))),
            // A dropped mail is not sent again, and no report about it comes into being.
            Self::Dropped(_) => (250, "2.0.0 received".to_owned()),
            Self::Later(why) => (451, format!("4.3.0 {why}")),
            Self::Rejected(refusal) => {
                let (code, status) = match refusal.code {
                    ErrorCode::TooLarge => (552, "5.3.4"),
                    ErrorCode::Perm | ErrorCode::Consent => (550, "5.7.1"),
                    ErrorCode::Rate => (451, "4.7.0"),
                    ErrorCode::Route => (550, "5.1.6"),
                    _ => (554, "5.6.0"),
                };
                let code_word = refusal.code.as_str();
                let (what, help) = (&refusal.what, &refusal.help);
                (code, format!("{status} {code_word}: {what} To do: {help}"))
            }
        }
    }
}

/// The intake of mail of a relay.
#[derive(Clone)]
pub struct MailIntake {
    relay: Relay,
    authenticator: Arc<SenderAuthenticator>,
    readers: Arc<Semaphore>,
    restorers: Arc<Semaphore>,
    senders: Arc<RateLimiter>,
}

/// The message that a mail is about, and its recipient.
struct FoundQuestion {
    record: Record,
    recipient: String,
    speaker: String,
    mailbox: String,
    token: TokenEvidence,
}

impl MailIntake {
    /// The intake of a relay.
    pub fn new(relay: Relay, authenticator: SenderAuthenticator) -> Self {
        Self {
            relay,
            authenticator: Arc::new(authenticator),
            readers: Arc::new(Semaphore::new(READERS)),
            restorers: Arc::new(Semaphore::new(RESTORERS)),
            senders: Arc::new(RateLimiter::new()),
        }
    }

    /// The relay behind it.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Whether an address is one of the gateway.
    pub fn accepts(&self, address: &str) -> bool {
        let config = self.relay.config();
        config
            .email
            .as_ref()
            .is_some_and(|email| gateway_address(email, address).is_some())
    }

    /// Does what a mail is for. It may come again: then its messages are known.
    pub async fn receive(&self, mail: Arc<[u8]>, origin: &MailPeer) -> MailOutcome {
        let config = self.relay.config();
        let Some(email) = &config.email else {
            return MailOutcome::Later("this relay has no bridge to mail now".to_owned());
        };
        let outcome = match self.try_receive(&mail, origin, &config, email).await {
            Ok(outcome) => outcome,
            Err(error) => MailOutcome::Later(format!("the relay can't be written now: {error}")),
        };
        self.note(&outcome, origin);
        outcome
    }

    /// Rejects a mail of a mailbox of which only the head was read, because the rest is too large.
    pub async fn reject_too_large(&self, head: Arc<[u8]>, origin: &MailPeer) -> MailOutcome {
        let config = self.relay.config();
        let refusal = Rejection::new(
            ErrorCode::TooLarge,
            format!("Your mail was not read: it has more than {MAIL_BYTES} bytes."),
            "send less text, or smaller files.",
        );
        if let Some(email) = &config.email
            && let Ok(reading) = self.read(&head, None, false).await
        {
            if let Err(later) = self.check_rate(&reading, origin, &config) {
                self.note(&later, origin);
                return later;
            }
            // Nobody reads what is said about these (MAI-012).
            let is_silent = origin.return_path.as_deref() == Some("") || is_own(&reading, email);
            if !is_silent
                && let Ok(Some(question)) = self.question(&reading, origin, &config, email).await
            {
                self.tell(&question, &reading, &refusal).await;
            }
        }
        let outcome = MailOutcome::Rejected(refusal);
        self.note(&outcome, origin);
        outcome
    }

    /// Tells the person who was asked that the answer was rejected (MAI-067). Nobody told the sender of a mail in a mailbox. Others
    /// are not told: their address may be forged.
    async fn tell(&self, question: &FoundQuestion, reading: &MailReading, refusal: &Rejection) {
        let from = reading.from.as_ref();
        let is_asked = from.is_some_and(|from| is_same_mailbox(&from.address, &question.mailbox));
        let is_person = !matches!(reading.kind, MailKind::Auto | MailKind::Bounce);
        let is_proven = question.token == TokenEvidence::Valid && is_asked && is_person;
        let Some(id) = reading.message_id.as_deref().filter(|_| is_proven) else {
            return;
        };
        let (record, recipient) = (&question.record, &question.recipient);
        if let Some(text) = rejected_answer(record, recipient, id, refusal) {
            let said = self.relay.say(&text).await;
            tracing::debug!(?said, "told a person that the answer was rejected");
        }
    }

    /// Counts and logs what became of a mail.
    fn note(&self, outcome: &MailOutcome, origin: &MailPeer) {
        let counted = match outcome {
            MailOutcome::Accepted(_) => IncomingOutcome::Accepted,
            MailOutcome::Dropped(_) => IncomingOutcome::Dropped,
            MailOutcome::Later(_) => IncomingOutcome::Later,
            MailOutcome::Rejected(_) => IncomingOutcome::Rejected,
        };
        self.relay.metrics().count_incoming(origin.way, counted);
        log(outcome, origin);
    }

    async fn try_receive(
        &self,
        mail: &Arc<[u8]>,
        origin: &MailPeer,
        config: &Config,
        email: &Email,
    ) -> Result<MailOutcome, StoreError> {
        let mut reading = match self.read(mail, None, false).await {
            Ok(reading) => reading,
            Err(outcome) => return Ok(outcome),
        };
        if let Err(outcome) = self.check_rate(&reading, origin, config) {
            return Ok(outcome);
        }
        let question = self.question(&reading, origin, config, email).await?;
        let is_proven = question
            .as_ref()
            .is_some_and(|question| question.token == TokenEvidence::Valid);
        // An automatic mail is dropped whatever its domain says.
        if !matches!(reading.kind, MailKind::Auto | MailKind::Rejected) {
            let authenticator = &self.authenticator;
            reading.authentication = authenticator.check(mail, origin, email).await;
        }
        if reading.kind == MailKind::Envelope {
            let is_admitted = is_proven || is_routed(&reading, config);
            reading = match self.verify_further(mail, reading, is_admitted).await {
                Ok(reading) => reading,
                Err(outcome) => return Ok(outcome),
            };
        }
        let facts = MailFacts {
            question: question.as_ref().map(FoundQuestion::asked),
            names: self.names_of(&reading),
            has_null_path: origin.return_path.as_deref() == Some(""),
            is_own: is_own(&reading, email),
            digest: Digest::of(mail),
        };
        let outcome = match decide(&reading, &facts) {
            MailDecision::Drop(why) => MailOutcome::Dropped(why),
            MailDecision::Later(why) => MailOutcome::Later(why),
            MailDecision::Reject(refusal) => MailOutcome::Rejected(refusal),
            MailDecision::Bounced(reason) => match &question {
                Some(question) => self.report(question, &reason).await,
                None => MailOutcome::Dropped("it reports about no message".to_owned()),
            },
            MailDecision::Accept(messages) => self.accept(messages, &reading).await,
        };
        // On the other ways, the sending server tells.
        if let (MailOutcome::Rejected(refusal), "imap", Some(question)) =
            (&outcome, origin.way, &question)
        {
            self.tell(question, &reading, refusal).await;
        }
        Ok(outcome)
    }

    /// Reads a mail on a thread that may work.
    async fn read(
        &self,
        mail: &Arc<[u8]>,
        dns: Option<DnsAnswer>,
        restore: bool,
    ) -> Result<MailReading, MailOutcome> {
        let turns = match restore {
            true => &self.restorers,
            false => &self.readers,
        };
        let stopped = || MailOutcome::Later("the relay is shutting down".to_owned());
        let turn = Arc::clone(turns).acquire_owned().await;
        let turn = turn.map_err(|_| stopped())?;
        let (mail, trust, at) = (Arc::clone(mail), self.relay.trust(), self.relay.now());
        let work = move || {
            let question = VerifyContext {
                dns: dns.as_ref(),
                restore,
                ..VerifyContext::of_relay(at)
            };
            let reading = read_mail(&mail, &trust, &question);
            // Not before: the work goes on when nobody waits for it any more.
            drop(turn);
            reading
        };
        let reading = tokio::task::spawn_blocking(work).await;
        let reading = reading.map_err(|_| stopped())?;
        reading.map_err(|fault| {
            let code = match fault {
                crosstalk_email::MailError::TooLarge => ErrorCode::TooLarge,
                _ => ErrorCode::Format,
            };
            let what = format!("This can't be read as a mail: {fault}.");
            MailOutcome::Rejected(Rejection::new(code, what, "send a plain mail."))
        })
    }

    /// Reads a mail again with what the domain of a key says, and searches for the signed form of a damaged message, if the sender
    /// is one for whom that is done.
    async fn verify_further(
        &self,
        mail: &Arc<[u8]>,
        reading: MailReading,
        is_admitted: bool,
    ) -> Result<MailReading, MailOutcome> {
        let open = reading.envelopes.iter().find_map(|admitted| {
            let is_open = admitted.verdict().word() != VerdictWord::Verified;
            let domain = domain_to_ask(admitted.document()).filter(|_| is_open);
            domain.map(str::to_owned)
        });
        let asks = self.relay.config().federation.enabled;
        let dns = match (self.relay.resolver(), open) {
            (Some(resolver), Some(domain)) if asks => Some(resolver.keys(&domain).await),
            _ => None,
        };
        let authentication = reading.authentication;
        let mut reading = match &dns {
            Some(DnsAnswer::Keys { .. }) => self.read(mail, dns.clone(), false).await?,
            _ => reading,
        };
        let is_damaged = |reading: &MailReading| {
            let mut words = reading.envelopes.iter().map(|e| e.verdict().word());
            words.any(|word| word == VerdictWord::Damaged)
        };
        if is_admitted && is_damaged(&reading) {
            let search = self.read(mail, dns, true);
            match tokio::time::timeout(Duration::from_secs(RESTORE_SECONDS), search).await {
                Ok(restored) => reading = restored?,
                Err(_) => tracing::info!(
                    "the signed form of a damaged message was not searched to the end"
                ),
            }
        }
        reading.authentication = authentication;
        Ok(reading)
    }

    fn check_rate(
        &self,
        reading: &MailReading,
        origin: &MailPeer,
        config: &Config,
    ) -> Result<(), MailOutcome> {
        let a_minute = config.limits.requests_per_minute;
        let from = reading
            .from
            .as_ref()
            .map(|from| from.address.to_lowercase());
        let now = Instant::now();
        let checked = match origin.peer {
            Some(ip) => self
                .senders
                .acquire(&crosstalk_relay::rate::network(ip), a_minute, now),
            None => self.senders.acquire(&from, a_minute, now),
        };
        checked.map_err(|seconds| {
            MailOutcome::Later(format!(
                "E-RATE: too many mails from this sender; try again after {seconds} seconds"
            ))
        })
    }

    /// The names that stand for the address of From at this relay.
    fn names_of(&self, reading: &MailReading) -> Vec<String> {
        let Some(from) = &reading.from else {
            return Vec::new();
        };
        let address = format!("email:{}", from.address);
        let rules = self.relay.rules();
        let names = rules.routes.names.iter();
        let is_it = |(_, stands): &(&String, &String)| {
            mailbox_of(stands).is_some_and(|mailbox| is_same_mailbox(mailbox, &from.address))
                || is_same_party(stands, &address)
        };
        names.filter(is_it).map(|(name, _)| name.clone()).collect()
    }

    /// The message that a mail answers or reports about, if it went out by mail.
    async fn question(
        &self,
        reading: &MailReading,
        origin: &MailPeer,
        config: &Config,
        email: &Email,
    ) -> Result<Option<FoundQuestion>, StoreError> {
        let (ids, tokens) = candidates(reading, origin, email);
        let (store, now) = (self.relay.store(), self.relay.now());
        if !ids.is_empty() {
            // What it answers may have come a moment ago.
            store.caught_up().await?;
        }
        let mut best: Option<FoundQuestion> = None;
        for id in ids {
            let Some(record) = store.record(&id).await? else {
                continue;
            };
            let ways = store.deliveries_of(&id).await?;
            for way in ways.into_iter().filter(|way| way.by == Handler::Email) {
                let Some(mailbox) = mail_address(config, &way.to) else {
                    continue;
                };
                let scope = TokenScope {
                    message: &record.id,
                    thread: &record.thread,
                    recipient: &way.to,
                };
                let check = |token: &String| match self.relay.reply_key() {
                    Some(key) => check_token(key, token, scope, now),
                    None => Err(TokenError::Mismatch),
                };
                let checked: Vec<_> = tokens.iter().map(check).collect();
                let is_expired =
                    |c: &Result<(), TokenError>| matches!(c, Err(TokenError::Expired(_)));
                let token = match () {
                    () if checked.contains(&Ok(())) => TokenEvidence::Valid,
                    () if checked.iter().any(is_expired) => TokenEvidence::Expired,
                    () => TokenEvidence::None,
                };
                let found = FoundQuestion {
                    speaker: self.relay.name_of_recipient(&record, &way.to),
                    record: record.clone(),
                    recipient: way.to,
                    mailbox,
                    token,
                };
                if best
                    .as_ref()
                    .is_none_or(|best| found.rank(reading) > best.rank(reading))
                {
                    best = Some(found);
                }
            }
        }
        Ok(best)
    }

    /// Tells the sender of a message that a mail server could not deliver it. It is said once, however often it is reported.
    async fn report(&self, question: &FoundQuestion, reason: &str) -> MailOutcome {
        let record = &question.record;
        let reason = match reason.trim_end_matches('.') {
            "" => "a mail server could not deliver it",
            reason => reason,
        };
        let help = "check the address, or reach the recipient in another way.";
        let told = (ErrorCode::Route, reason, help);
        let Some(text) = undeliverable(record, &question.recipient, told, record.at) else {
            return MailOutcome::Dropped(
                "nothing is said about a message that takes no answer".into(),
            );
        };
        outcome_of(self.relay.say(&text).await)
    }

    /// Hands messages to the relay. Those that it has are known, so that a mail that comes again changes nothing.
    async fn accept(&self, messages: Vec<MailMessage>, reading: &MailReading) -> MailOutcome {
        let from = reading.from.as_ref().map(|from| from.address.as_str());
        let (mut ids, mut refusal) = (Vec::new(), None);
        for message in messages {
            let peer = peer_of(&message.speaker, from.unwrap_or_default());
            let received = match &message.hold {
                Some(why) => self.relay.take_in_held(&message.text, &peer, why).await,
                None => self.relay.take_in(&message.text, &peer).await,
            };
            match outcome_of(received) {
                MailOutcome::Accepted(more) => ids.extend(more),
                // The others of this mail are tried now: each is known when the mail comes again.
                MailOutcome::Rejected(why) => refusal = refusal.or(Some(why)),
                other => return other,
            }
        }
        match refusal {
            Some(refusal) => MailOutcome::Rejected(refusal),
            None => MailOutcome::Accepted(ids),
        }
    }
}

impl FoundQuestion {
    fn asked(&self) -> AskedQuestion<'_> {
        AskedQuestion {
            record: &self.record,
            recipient: &self.recipient,
            speaker: &self.speaker,
            mailbox: &self.mailbox,
            token: self.token,
        }
    }

    /// How well it fits a mail: its token first, then its sender.
    fn rank(&self, reading: &MailReading) -> (u8, bool) {
        let token = match self.token {
            TokenEvidence::Valid => 2,
            TokenEvidence::Expired => 1,
            TokenEvidence::None => 0,
        };
        let from = reading.from.as_ref();
        let is_from = from.is_some_and(|from| is_same_mailbox(&from.address, &self.mailbox));
        (token, is_from)
    }
}

/// An address of the gateway.
fn gateway_address(email: &Email, address: &str) -> Option<GatewayAddress> {
    GatewayAddress::parse(address, &email.mailbox, &email.domain)
}

/// Whether the gateway wrote a mail itself.
fn is_own(reading: &MailReading, email: &Email) -> bool {
    let id = reading.message_id.as_deref();
    id.is_some_and(|id| MailId::parse(id, &email.domain).is_some())
}

/// The messages that a mail may be about, and the tokens in it.
fn candidates(
    reading: &MailReading,
    origin: &MailPeer,
    email: &Email,
) -> (Vec<String>, Vec<String>) {
    let (mut ids, mut tokens) = (Vec::new(), Vec::new());
    let mut add = |id: Option<String>, token: Option<String>| {
        for (list, value) in [(&mut ids, id), (&mut tokens, token)] {
            if let Some(value) = value
                && list.len() < MAX_CANDIDATES
                && !list.contains(&value)
            {
                list.push(value);
            }
        }
    };
    let references: Vec<&str> = reading.references.iter().map(String::as_str).collect();
    let place = thread_place(reading.in_reply_to.as_deref(), &references, &email.domain);
    add(place.parent, place.token);
    let addresses = origin.recipients.iter().chain(&reading.recipients);
    for address in addresses.filter_map(|address| gateway_address(email, address)) {
        add(address.message, address.token);
    }
    let returned = reading.bounce.as_ref().and_then(|b| b.returned.as_deref());
    if let Some(MailId::Message { id, token }) =
        returned.and_then(|id| MailId::parse(id, &email.domain))
    {
        add(Some(id), token);
    }
    (ids, tokens)
}

/// The mail address of a recipient: that of its route, or its own.
fn mail_address(config: &Config, recipient: &str) -> Option<String> {
    let mut routes = config.routes.iter().filter(|route| {
        let pattern = Pattern::parse(&route.to);
        route.by == Handler::Email.as_str() && pattern.is_ok_and(|p| p.matches(recipient))
    });
    let named = routes.next().and_then(|route| route.mail.clone());
    named.or_else(|| mailbox_of(recipient).map(str::to_owned))
}

/// Whether a route leads to the sender of a mail whose domain vouches for it.
fn is_routed(reading: &MailReading, config: &Config) -> bool {
    let Some(from) = reading
        .from
        .as_ref()
        .filter(|_| reading.authentication.is_aligned)
    else {
        return false;
    };
    let address = format!("email:{}", from.address);
    config.routes.iter().any(|route| {
        let is_of_pattern =
            || Pattern::parse(&route.to).is_ok_and(|pattern| pattern.matches(&address));
        let is_named = |mail: &String| is_same_mailbox(mail, &from.address);
        route.by == Handler::Email.as_str()
            && (route.mail.as_ref().is_some_and(is_named) || is_of_pattern())
    })
}

/// The caller that a message is handed in by.
fn peer_of(speaker: &MailSpeaker, from: &str) -> Peer {
    // No name of a token has a colon in it.
    let name = format!("mail:{from}");
    match speaker {
        MailSpeaker::Signature => Peer::stranger(),
        MailSpeaker::From(names) => Peer {
            name,
            addresses: names.iter().map(|name| Pattern::exact(name)).collect(),
            ..Peer::stranger()
        },
        MailSpeaker::Asked(names) => Peer::answering(name, names),
    }
}

fn outcome_of(received: Received) -> MailOutcome {
    match received {
        Received::Accepted { id, .. } => MailOutcome::Accepted(vec![id]),
        Received::Rejected {
            refusal,
            status: 503,
            ..
        } => MailOutcome::Later(refusal.reason),
        Received::Rejected { refusal, .. } if refusal.code == ErrorCode::Rate => {
            MailOutcome::Later(refusal.reason)
        }
        Received::Rejected { refusal, .. } => MailOutcome::Rejected(refusal),
    }
}

fn log(outcome: &MailOutcome, origin: &MailPeer) {
    let way = origin.way;
    match outcome {
        MailOutcome::Accepted(ids) => tracing::debug!(way, ids = ids.join(" "), "accepted a mail"),
        MailOutcome::Dropped(why) => tracing::info!(way, why, "dropped a mail"),
        MailOutcome::Later(why) => tracing::warn!(way, why, "a mail has to come again"),
        MailOutcome::Rejected(refusal) => {
            tracing::info!(
                way,
                code = refusal.code.as_str(),
                why = refusal.what,
                "rejected a mail"
            );
        }
    }
}
