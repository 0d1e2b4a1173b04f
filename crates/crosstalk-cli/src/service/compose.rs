//! The content of a message: text, subject, intent, attachments, consent, META.

mod attachment;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{is_piped, shown_path, typed_text};
use crate::report::HandedReport;
use crate::service::consent::Renewal;
use crate::service::deliver::SendOptions;
use crate::service::editor::{self, Composed, Draft};
use crate::service::recipient::{resolve_typed, sender_or_own};
use crate::service::relay::send::Attached;
use crate::service::settings::Settings;
use crate::service::workspace::Workspace;
use crate::{clock, view};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use crosstalk_envelope::meta::{ConsentKind, ConsentValue};
use crosstalk_envelope::{Builder, CoreHeader, ErrorCode, Intent, IntentField, Timestamp};
use crosstalk_protocol::compose::{NO_CONTEXT, context_of, infer_intent, is_thanks, session_text};
use crosstalk_protocol::consent::{Pii, scopes};
use crosstalk_protocol::poll::PollCall;
use crosstalk_protocol::redact::{self, RedactionRules};
use crosstalk_protocol::relay::Priority;
use crosstalk_protocol::store::{Record, ReferenceMatch, is_same_party};
use crosstalk_protocol::{agent_user, intent_hint};
use std::path::{Path, PathBuf};

/// The key by which an answer to a poll is corrected.
const CORRECTS: (&str, &str) = ("vote", "Corrects");

/// The content of a message.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What it says")]
pub(crate) struct Content {
    /// The text; `-` is stdin. Without one, your editor opens
    #[arg(value_name = "TEXT", conflicts_with = "body")]
    text: Option<String>,
    /// The text; `-` is stdin
    #[arg(long, value_name = "TEXT|-", allow_hyphen_values = true)]
    body: Option<String>,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// The speaker: the `user` header
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The subject (`context`); without it, that of the thread, or the first words of the text
    #[arg(long, short, value_name = "TEXT")]
    context: Option<String>,
    /// The intent: REQUEST, RESPOND, ESCALATE, HANDOFF, POLL, ACK, NACK, ERROR, BROADCAST, REVOKE, CLOSE; else it is
    /// inferred from the text
    #[arg(long, short, value_name = "INTENT", conflicts_with = "fyi")]
    intent: Option<String>,
    /// It is for information, and waits for no answer: a BROADCAST
    #[arg(long)]
    fyi: bool,
    /// Name a file with its digest; may be given again
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// Put the attached files into the message, if they are small
    #[arg(long, requires = "attach")]
    embed: bool,
    /// A key of a META block, as routing.X-Deadline=2025-10-10T12:00Z; may be given again
    #[arg(long, value_name = "NS.KEY=VALUE")]
    meta: Vec<String>,
    /// How urgent it is
    #[arg(long, value_parser = priorities(), value_name = "WORD", ignore_case = true)]
    priority: Option<Priority>,
    /// A further receiver of a POLL or a BROADCAST; may be given again
    #[arg(long, value_name = "ADDRESS")]
    target: Vec<String>,
    /// The consent for personal data: explicit_yes, explicit_no, implicit or transferred_with_approval, with _ and its
    /// time or without
    #[arg(long, value_name = "CONSENT", value_parser = consent)]
    consent: Option<String>,
    /// The scope of the consent: general, pii, medical, financial …
    #[arg(long, value_name = "SCOPE", value_parser = scope)]
    scope: Option<String>,
    /// When the consent expires: 30d, 12h, 8w, a date or a time
    #[arg(long, value_name = "TIME", value_parser = clock::end)]
    expires: Option<Timestamp>,
    /// The name of the consent
    #[arg(long, value_name = "ID")]
    consent_id: Option<String>,
    /// The law that applies: GDPR, CCPA, HIPAA …
    #[arg(long, value_name = "LAW")]
    jurisdiction: Option<String>,
    /// Whether it holds personal data
    #[arg(long, value_parser = pii(), value_name = "WORD")]
    pii: Option<Pii>,
    /// Replace mail addresses, phone numbers and the like before it is sent
    #[arg(long)]
    redact: bool,
    /// The text is meant as it is: a single `-` is no stdin
    #[arg(skip)]
    is_literal: bool,
}

/// How urgent a message is, as the command line takes it.
fn priorities() -> impl TypedValueParser<Value = Priority> {
    let words = PossibleValuesParser::new(Priority::ALL.map(Priority::as_str));
    words.map(|word| Priority::parse(Some(&word.to_ascii_lowercase())))
}

/// Whether there is personal data in a message, as the command line takes it.
fn pii() -> impl TypedValueParser<Value = Pii> {
    let words = PossibleValuesParser::new(Pii::ALL.map(Pii::as_str));
    words.try_map(|word| Pii::from_wire(&word.to_ascii_lowercase()).ok_or("unknown"))
}

/// Reads a consent of the command line; one that says nothing known would permit nothing.
fn consent(text: &str) -> Result<String, String> {
    match ConsentValue::parse(text).is_known() {
        true => Ok(text.to_owned()),
        false => Err(
            "write it as explicit_yes, explicit_no, implicit or transferred_with_approval".into(),
        ),
    }
}

/// A message that is written, and the draft of it if an editor made one.
#[derive(Debug)]
pub(crate) struct OutgoingMessage {
    /// One for each receiver.
    builders: Vec<Builder>,
    draft: Option<Draft>,
    /// The files that it names and does not hold.
    files: Vec<Attached>,
}

impl OutgoingMessage {
    /// Keeps it and hands it to its relay, without a word to a person.
    pub(crate) fn post(
        self,
        console: &mut Console,
        workspace: &Workspace,
        delivery: &SendOptions,
    ) -> Result<Vec<(Record, Option<HandedReport>)>, Failure> {
        delivery.post(console, workspace, &self.builders, &self.files)
    }

    /// Sends it. If that fails, the draft is kept, so that nothing is lost.
    pub(crate) fn dispatch(
        self,
        console: &mut Console,
        workspace: &Workspace,
        delivery: &SendOptions,
    ) -> Result<Exit, Failure> {
        let result = delivery.dispatch_all(console, workspace, &self.builders, &self.files);
        match (result, self.draft) {
            (Err(failure), Some(draft)) if !failure.is_closed_pipe() => {
                if let Ok(path) = draft.keep() {
                    let path = path.to_string_lossy();
                    console.talk(&format!("Your text is kept in {}\n", shown_path(&path)))?;
                }
                Err(failure)
            }
            (result, _) => result,
        }
    }
}

impl Content {
    /// What an agent writes. Nothing in it is a command to this program.
    pub(crate) fn of_agent(address: &str, text: &str) -> Self {
        Self {
            body: Some(text.to_owned()),
            from: Some(address.to_owned()),
            user: Some(agent_user(address)),
            is_literal: true,
            ..Self::default()
        }
    }

    /// The same with an intent.
    pub(crate) fn with_intent(mut self, intent: Option<&str>) -> Self {
        self.intent = intent.map(str::to_owned);
        self
    }

    /// The same with a subject.
    pub(crate) fn with_context(mut self, context: Option<&str>) -> Self {
        self.context = context.map(str::to_owned);
        self
    }

    /// The same as a poll of several.
    pub(crate) fn with_poll(mut self, meta: Vec<String>, further: Vec<String>) -> Self {
        (self.meta, self.target) = (meta, further);
        self
    }

    /// The sender.
    pub(crate) fn sender(&self, config: &Settings) -> Result<String, Failure> {
        sender_or_own(config, self.from.as_deref())
    }

    /// Whether its text is there already, and need not be written.
    pub(crate) const fn has_text(&self) -> bool {
        self.text.is_some() || self.body.is_some()
    }

    /// Gives it a text.
    pub(crate) fn set_text(&mut self, text: String) {
        self.text = Some(text);
    }

    /// Whether the person says that it waits for no answer, or the text is nothing but thanks.
    pub(crate) fn asks_nothing(&self) -> bool {
        let text = self.text.as_deref().or(self.body.as_deref());
        self.fyi || text.is_some_and(is_thanks)
    }

    /// Whether it says who sends it.
    pub(crate) const fn names_sender(&self) -> bool {
        self.from.is_some()
    }

    /// The answer to a poll that it corrects.
    fn correction(&self) -> Option<&str> {
        let meta = self.meta.iter().filter_map(|m| split_meta(m).ok());
        let mut named = meta.filter(|(block, key, _)| (*block, *key) == CORRECTS);
        named.next().map(|(.., value)| value)
    }

    /// Whether it says how the answer of somebody else to a poll is to be read.
    pub(crate) fn corrects(&self) -> bool {
        self.correction().is_some()
    }

    /// Whether it is an answer to a poll: of anybody but who asked, unless that one is asked as well or corrects an answer.
    fn is_ballot(&self, answered: &Record, sender: &str) -> bool {
        let document = answered.document();
        answered.meaning == Some(Intent::Poll)
            && (self.corrects()
                || !is_same_party(&answered.sender, sender)
                || PollCall::read(&document, &answered.id, None).asks(sender))
    }

    /// How others know the answer that is corrected: by the id that it carries, else by its digest. Here it may have another
    /// id.
    fn corrected(
        &self,
        console: &mut Console,
        workspace: &Workspace,
    ) -> Result<Option<String>, Failure> {
        let (Some(named), Some(store)) = (self.correction(), workspace.messages(console)?) else {
            return Ok(None);
        };
        let Ok(ReferenceMatch::Message(id)) = store.find(named) else {
            return Ok(None);
        };
        let found = store.message(&id)?;
        Ok(found.map(|record| match record.carries_id {
            true => record.id,
            false => record.digest.to_string(),
        }))
    }

    /// Writes the message from one side to each of the others, as an answer if there is something to answer.
    pub(crate) fn write(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        (sender, receivers): (&str, &[String]),
        answered: Option<&Record>,
    ) -> Result<OutgoingMessage, Failure> {
        let config = &workspace.config;
        // Whatever speaks against it is said before anybody writes a text.
        self.require_sense(answered, receivers)?;
        let expires = self.tell_consent(console, workspace, (sender, receivers))?;
        let attachments = self.attachments()?;
        let corrected = self.corrected(console, workspace)?;
        let meta = self.meta.iter().map(|m| {
            let (block, key, value) = split_meta(m)?;
            let is_corrected = (block, key) == CORRECTS;
            let named = corrected.as_deref().filter(|_| is_corrected);
            Ok((block, key, named.unwrap_or(value)))
        });
        let meta: Vec<(&str, &str, &str)> = meta.collect::<Result<_, Failure>>()?;
        let (text, draft) = self.body(console, config, answered)?;
        let (text, redacted, is_personal) = self.checked(console, config, text)?;
        let intent = match &self.intent {
            Some(intent) => {
                let intent = intent.to_uppercase();
                if let Some(hint) = intent_hint(&intent) {
                    console.warning(&hint)?;
                }
                intent
            }
            None if self.fyi => Intent::Broadcast.as_str().to_owned(),
            None => {
                // A second message after one's own is no answer to it.
                let asked = answered
                    .filter(|r| is_same_party(&r.receiver, sender) || self.is_ballot(r, sender));
                let asked = asked.and_then(|r| r.meaning);
                infer_intent(&text, asked).as_str().to_owned()
            }
        };
        let thread = answered.map_or_else(|| workspace.new_id(), |r| r.thread.clone());
        // Chats make up sessions and contexts: a thread goes on with its own.
        let known = match answered {
            Some(answered) => workspace.kept(console)?.thread(&answered.thread)?,
            None => None,
        };
        let known_session = known.as_ref().and_then(|t| t.session.clone());
        let session = match known_session.or_else(|| answered?.session.clone()) {
            Some(session) => session,
            None => session_text(clock::now(), &word_of(&thread)),
        };
        let context = self.context.clone().or_else(|| known?.context);
        let context = context.or_else(|| answered?.context.clone());
        let context = context.or_else(|| config.context());
        let context = context.unwrap_or_else(|| match self.is_private() || is_personal {
            // A context outlives the text: every answer repeats it.
            true => NO_CONTEXT.to_owned(),
            false => context_of(&text),
        });
        let user = match &self.user {
            Some(user) => user.clone(),
            None => config.user()?,
        };
        let (attachments, files): (Vec<_>, Vec<_>) = attachments.into_iter().unzip();
        let builders = receivers.iter().map(|receiver| {
            let mut builder = Builder::new(sender, receiver.as_str())
                .user(&user)
                .session(&session)
                .thread(&thread)
                .core_if(CoreHeader::Parent, answered.map(|r| r.id.as_str()))
                .message(workspace.new_id())
                .context(&context)
                .intent(&intent)
                .body(&text);
            builder = self.routing(builder, config, &intent, receiver);
            builder = self.privacy(builder, &redacted, expires);
            for (number, value) in (1..).zip(&attachments) {
                builder = builder.meta("attachments", format!("A{number}"), value);
            }
            for (namespace, key, value) in &meta {
                builder = builder.meta(namespace, *key, *value);
            }
            // Context and session may be those of others.
            builder.visible()
        });
        Ok(OutgoingMessage {
            builders: builders.collect(),
            draft,
            files: match self.embed {
                true => Vec::new(),
                false => files,
            },
        })
    }

    /// Whether it says that there is personal data in it, or that its text has to go some day.
    const fn is_private(&self) -> bool {
        self.consent.is_some()
            || self.consent_id.is_some()
            || self.scope.is_some()
            || self.expires.is_some()
            || matches!(self.pii, Some(Pii::Present))
    }

    fn attachments(&self) -> Result<Vec<(String, Attached)>, Failure> {
        let files = self.attach.iter();
        files
            .map(|path| attachment::describe(path, self.embed))
            .collect()
    }

    fn routing(
        &self,
        mut builder: Builder,
        config: &Settings,
        intent: &str,
        receiver: &str,
    ) -> Builder {
        if let Some(priority) = &self.priority {
            builder = builder.meta("routing", "X-Priority", priority.as_str());
        }
        let is_poll = IntentField::parse(intent).meaning == Some(Intent::Poll);
        if is_poll || !self.target.is_empty() {
            let first = is_poll.then(|| receiver.to_owned());
            let further = self.target.iter().map(|t| resolve_typed(config, t));
            let all: Vec<String> = first.into_iter().chain(further).collect();
            let list = serde_json::to_string(&all).unwrap_or_default();
            builder = builder.meta("routing", "Targets", list);
        }
        builder
    }

    fn privacy(
        &self,
        mut builder: Builder,
        redacted: &[&str],
        expires: Option<Timestamp>,
    ) -> Builder {
        let consent = self.consent.as_deref().map(|c| match c {
            "explicit_yes" | "transferred_with_approval" => format!("{c}_{}", clock::now()),
            _ => c.to_owned(),
        });
        let is_redacted = !redacted.is_empty();
        let pii = self
            .pii
            .map(Pii::as_str)
            .or(is_redacted.then_some(Pii::Redacted.as_str()));
        let fields = is_redacted.then(|| redacted.join(", "));
        let fields = [
            ("PII", pii.map(str::to_owned)),
            ("Consent", consent),
            ("Scope", self.scope.clone()),
            ("Expires", expires.map(|t| t.to_string())),
            ("Jurisdiction", self.jurisdiction.clone()),
            ("Consent-ID", self.consent_id.clone()),
            ("Redacted-Fields", fields),
        ];
        for (key, value) in fields {
            if let Some(value) = value {
                builder = builder.meta("privacy", key, value);
            }
        }
        builder
    }

    /// Whether the consent says this.
    fn has_consent(&self, kind: ConsentKind) -> bool {
        let consent = self.consent.as_deref();
        consent.is_some_and(|c| ConsentValue::parse(c).kind == kind)
    }

    /// Tells what the message does to the consent that it names, and gives the end that it writes. A consent that nobody
    /// knows yet is granted by the message itself: a typing error does the same.
    fn tell_consent(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        (sender, receivers): (&str, &[String]),
    ) -> Result<Option<Timestamp>, Failure> {
        let Some(id) = &self.consent_id else {
            return Ok(self.expires);
        };
        if !self.has_consent(ConsentKind::ExplicitYes) {
            return Ok(self.expires);
        }
        let store = workspace.messages(console)?;
        let known = store.map(|s| s.grant(id)).transpose()?.flatten();
        let Some(known) = known else {
            console.note(&format!(
                "the consent {} is new: this message grants it",
                view::line(id)
            ))?;
            return Ok(self.expires);
        };
        if self.writes_end() {
            return Ok(self.expires);
        }
        let further = self
            .target
            .iter()
            .map(|t| resolve_typed(&workspace.config, t));
        let to: Vec<String> = receivers.iter().cloned().chain(further).collect();
        // Personal data counts as a scope of its own.
        let pii = matches!(self.pii, Some(Pii::Present)).then_some("pii");
        let named = self.scope.as_deref().into_iter().chain(pii);
        let scopes: Vec<String> = named.flat_map(words).collect();
        let renewal = Renewal {
            sender,
            to: &to,
            scopes: &scopes,
            expires: self.expires,
        };
        renewal.tell(console, &known, clock::now())
    }

    /// Whether the end of the consent is written as META.
    fn writes_end(&self) -> bool {
        let mut meta = self.meta.iter().filter_map(|m| split_meta(m).ok());
        meta.any(|(block, key, _)| block == "privacy" && key.eq_ignore_ascii_case("Expires"))
    }

    /// Nothing is sent against a person's word, with a consent that is over, or as the answer to nothing.
    fn require_sense(
        &self,
        answered: Option<&Record>,
        receivers: &[String],
    ) -> Result<(), Failure> {
        if self.expires.is_some_and(|t| t <= clock::now()) {
            return Err(Failure::refused(
                ErrorCode::Consent,
                "nothing was sent: the consent has expired (--expires)",
            ));
        }
        let intent = self.intent.as_ref().map(|i| i.to_uppercase());
        let meaning = intent
            .as_deref()
            .and_then(|i| IntentField::parse(i).meaning);
        if meaning == Some(Intent::Poll) && receivers.len() > 1 {
            return Err(Failure::usage("a POLL is one message that asks several")
                .help("`crosstalk poll new \"…\" --target A --target B`"));
        }
        if meaning.is_some_and(Intent::needs_parent) && answered.is_none() {
            let intent = intent.unwrap_or_default();
            return Err(Failure::usage(format!("{intent} answers a message"))
                .help("name it with --reply-to ID, or use `crosstalk reply`"));
        }
        match self.has_consent(ConsentKind::ExplicitNo) {
            true => Err(Failure::refused(
                ErrorCode::Consent,
                "nothing was sent: the consent is denied (explicit_no)",
            )),
            false => Ok(()),
        }
    }

    fn body(
        &self,
        console: &mut Console,
        config: &Settings,
        answered: Option<&Record>,
    ) -> Result<(String, Option<Draft>), Failure> {
        match self.text.as_deref().or(self.body.as_deref()) {
            Some(text) if self.is_literal => Ok((require_text(text.to_owned())?, None)),
            Some(text) => Ok((require_text(typed_text(console, text)?)?, None)),
            None => {
                // The pipe holds the text; an empty pipe holds none.
                let piped = match is_piped() {
                    true => typed_text(console, "-")?,
                    false => String::new(),
                };
                if !piped.trim().is_empty() {
                    return Ok((require_text(piped)?, None));
                }
                let reference = answered.map(reference).unwrap_or_default();
                console.flush()?;
                match editor::compose("", &reference, config.editor().as_deref())? {
                    Composed::Text(draft) => Ok((draft.text().to_owned(), Some(draft))),
                    Composed::Empty => {
                        Err(Failure::failed("nothing was written, so nothing was sent"))
                    }
                }
            }
        }
    }

    /// The text after redaction, with the kinds of what was taken out; or as it is, with a warning about what looks
    /// personal. And whether anything personal is left in it.
    fn checked(
        &self,
        console: &mut Console,
        config: &Settings,
        text: String,
    ) -> Result<(String, Vec<&'static str>, bool), Failure> {
        let rules = RedactionRules::default().with_names(config.redact_names());
        if self.redact {
            let redaction = redact::redact(&text, &rules);
            let kinds = counts(&redaction.found).into_iter().map(|(k, _)| k);
            return Ok((redaction.text, kinds.collect(), false));
        }
        let has_consent = self.has_consent(ConsentKind::ExplicitYes);
        let found = redact::find(&text, &rules);
        if !found.is_empty() && !has_consent {
            let what = counts(&found).into_iter();
            let what: Vec<String> = what.map(|(kind, n)| format!("{n} {kind}")).collect();
            let what = what.join(", ");
            let advice = format!(
                "the text seems to have personal data ({what}) and no consent is given: --redact \
                 replaces it, --consent explicit_yes --scope pii says that you may send it"
            );
            console.warning(&advice)?;
        }
        Ok((text, Vec::new(), !found.is_empty()))
    }
}

/// The words of a list.
fn words(list: &str) -> impl Iterator<Item = String> {
    let words = list.split(',').map(str::trim);
    words.filter(|w| !w.is_empty()).map(str::to_owned)
}

/// Reads a scope, which has at least a word.
pub(crate) fn scope(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err(format!(
            "name what it is for, such as {}",
            scopes().join(", ")
        )),
        scope => Ok(scope.to_owned()),
    }
}

/// A file that a message names.
pub(crate) fn attached(path: &Path) -> Result<Attached, Failure> {
    attachment::describe(path, false).map(|(_, attached)| attached)
}

/// A text that is all white space says nothing.
fn require_text(text: String) -> Result<String, Failure> {
    let trimmed = text.trim_end().trim_start_matches('\n');
    match trimmed.is_empty() {
        true => Err(Failure::failed("there is no text, so nothing was sent")),
        false => Ok(trimmed.to_owned()),
    }
}

/// The message that is answered, as an editor shows it below the text.
fn reference(answered: &Record) -> String {
    let document = answered.document();
    format!(
        "{} → {}, {}\n\n{}",
        answered.sender,
        answered.receiver,
        answered.context.as_deref().unwrap_or(""),
        document.body_text()
    )
}

/// A word for the session: the random end of the thread's id.
pub(crate) fn word_of(thread: &str) -> String {
    let end: Vec<char> = thread.chars().rev().take(6).collect();
    let end: String = end.into_iter().rev().collect();
    end.to_lowercase()
}

/// `routing.X-Deadline=2025-10-10T12:00Z`.
fn split_meta(entry: &str) -> Result<(&str, &str, &str), Failure> {
    let parts = entry.split_once('=').and_then(|(path, value)| {
        let (namespace, key) = path.split_once('.')?;
        Some((namespace.trim(), key.trim(), value.trim()))
    });
    if let Some((namespace @ ("integrity" | "key" | "audit" | "email"), ..)) = parts {
        return Err(Failure::usage(format!(
            "you can't set `meta: {namespace}`: signing and the relays write it"
        )));
    }
    parts.ok_or_else(|| {
        Failure::usage(format!("`{entry}` is no key of a META block"))
            .help("write it as routing.X-Deadline=2025-10-10T12:00Z")
    })
}

/// How many of each kind were found, in the order of the text.
fn counts(found: &[redact::FoundPii]) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for one in found {
        let kind = one.kind.as_str();
        match counts.iter_mut().find(|(k, _)| *k == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    counts
}
