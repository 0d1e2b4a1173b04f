//! `crosstalk consent`: what was agreed to, by whom and for what, and what became of it.

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::Input;
use crate::paragraph::lines;
use crate::report::{CheckedConsentReport, ConsentCheckReport, ConsentsReport, RefusalReport};
use crate::schema::{CONSENT, CONSENT_CHECK, CONSENTS};
use crate::screen::{self, clip_cells};
use crate::service::compose::scope;
use crate::service::consent::{self, Renewal};
use crate::service::deliver::SendOptions;
use crate::service::dns::DnsOptions;
use crate::service::intake::Incoming;
use crate::service::lookup::{self, is_long_enough};
use crate::service::recipient::{resolve_typed, sender_or_own};
use crate::service::relay::data::DataFolder;
use crate::service::relay::remote::{
    DeliveryStatus, LOOKED_THROUGH, RelayArgument, Remote, find_by_prefix,
};
use crate::service::workspace::{NOTHING, Workspace};
use crate::{clock, view};
use anstyle::Style;
use clap::Args;
use crosstalk_envelope::reply::Rejection;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Address, Builder, CoreHeader, Document, Intent, Reading, Timestamp};
use crosstalk_protocol::compose::session_text;
use crosstalk_protocol::consent::{Grant, GrantFilter, Need, Terms};
use crosstalk_protocol::store::{Record, Way};
use crosstalk_relay::client::{ConsentRecord, ConsentView, UnderConsent};
use crosstalk_store::SqliteStore;
use std::path::PathBuf;

group! {
    /// Grant, list, check and revoke consents
    ///
    /// Crosstalk records every message that says `Consent: explicit_yes`, with its granter, scope, recipient and expiry, and how
    /// well that was verified. Revoking a consent erases every message that was kept under it.
    #[command(
        after_help = "Examples:\n  crosstalk consent grant claude://session/abc123 --scope medical --expires 2027-01-01T00:00:00Z\n  crosstalk consent list\n  crosstalk consent show 01K74V8Q\n  crosstalk consent revoke 01K74V8Q --reason 'not needed any more'\n  crosstalk consent check message.txt"
    )]
    ConsentCommand {
        List(ListConsents),
        Show(ShowConsent),
        Grant(Box<GrantConsent>),
        Revoke(Box<RevokeConsent>),
        Check(CheckConsent),
    }
}

/// Where consents are looked at: here, at a relay, or in the data folder of one.
#[derive(Args, Debug)]
struct ConsentSource {
    /// Ask a relay; without a URL, that of the settings
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    relay: Option<String>,
    /// The file with the token of the relay
    #[arg(long, value_name = "FILE", requires = "relay")]
    token_file: Option<PathBuf>,
    /// Read the data folder of a relay on this machine, without the network
    #[arg(long, value_name = "DIR", conflicts_with = "relay")]
    data: Option<PathBuf>,
}

impl ConsentSource {
    /// The relay, if one is to be asked.
    fn connect(&self, workspace: &Workspace) -> Result<Option<Remote>, Failure> {
        let Some(url) = &self.relay else {
            return Ok(None);
        };
        let through = RelayArgument::of(url, self.token_file.clone())?;
        through.connect(&workspace.config, None).map(Some)
    }

    /// The store on this machine; nothing if the person keeps none.
    fn open(
        &self,
        console: &mut Console,
        workspace: &Workspace,
    ) -> Result<Option<SqliteStore>, Failure> {
        let Some(folder) = &self.data else {
            return workspace.messages(console);
        };
        let data = DataFolder::at(folder.clone());
        data.require()?;
        data.open().map(Some)
    }
}

/// The consent that a name, or the beginning of one, means; nothing if there is none.
fn find(store: &SqliteStore, name: &str) -> Result<Option<Grant>, Failure> {
    if let Some(grant) = store.grant(name)? {
        return Ok(Some(grant));
    }
    if !is_long_enough(name) {
        return Ok(None);
    }
    let all = store.grants(&GrantFilter::default())?;
    let mut found = all.into_iter().filter(|g| g.id.starts_with(name));
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(several(name)),
        (found, _) => Ok(found),
    }
}

fn several(name: &str) -> Failure {
    Failure::usage(format!("`{name}` can mean several consents"))
        .help("write more of it (`crosstalk consent list --all`)")
}

fn unknown(name: &str) -> Failure {
    Failure::failed(format!("no consent `{name}` is on record"))
        .help("`crosstalk consent list --all` shows those that are")
}

/// The widest column, in cells.
const WIDEST: usize = 44;

/// List the consents on record, the latest first
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent list\n  crosstalk consent list --all --by ANN\n  crosstalk consent list --data relay                # what the relay in this folder has on record\n  crosstalk consent list --relay https://relay.example --json | jq -r '.consents[].id'"
)]
struct ListConsents {
    /// Also expired and revoked ones
    #[arg(long)]
    all: bool,
    /// Only those that this name or address granted
    #[arg(long, value_name = "ADDRESS")]
    by: Option<String>,
    /// How many at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    #[command(flatten)]
    source: ConsentSource,
    /// Print JSON of the form crosstalk.consents/1
    #[arg(long)]
    json: bool,
}

impl ListConsents {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = &Workspace::open(console)?;
        let by = self
            .by
            .as_ref()
            .map(|by| resolve_typed(&workspace.config, by));
        let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let consents = match self.source.connect(workspace)? {
            Some(remote) => remote.consents(by.as_deref(), !self.all, most)?,
            None => self.kept(console, workspace, by, most)?,
        };
        if self.json {
            return console.report(CONSENTS, &ConsentsReport { consents });
        }
        match consents.is_empty() {
            true => console.talk(match self.all {
                true => "no consents on record\n",
                false => "no valid consents; --all lists expired and revoked ones, too\n",
            })?,
            false => console.show(&table(&consents))?,
        }
        Ok(())
    }

    fn kept(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        granter: Option<String>,
        most: usize,
    ) -> Result<Vec<ConsentView>, Failure> {
        let Some(mut store) = self.source.open(console, workspace)? else {
            return Ok(Vec::new());
        };
        // Another program may have kept erased text from leaving the files; it can go now.
        if self.source.data.is_none() {
            consent::scrub(console, &mut store)?;
        }
        let now = clock::exact();
        let filter = GrantFilter {
            granter,
            holding_at: (!self.all).then_some(now),
            limit: most,
        };
        let grants = store.grants(&filter)?;
        Ok(grants.iter().map(|g| ConsentView::of(g, now)).collect())
    }
}

/// How a standing looks.
fn style(standing: &str) -> Style {
    match standing {
        "holds" => GREEN,
        "revoked" => RED,
        _ => YELLOW,
    }
}

/// A row for each: id, who gave it, scopes, to whom, until when, what holds of it, how that was verified.
fn table(consents: &[ConsentView]) -> String {
    let titles = ["id", "by", "scope", "to", "until", "standing", "verified"];
    let mut rows = vec![titles.map(|title| (title.to_owned(), DIM))];
    rows.extend(consents.iter().map(|c| {
        let until = c.expires.as_deref().unwrap_or("no end");
        [
            (c.id.as_str(), BOLD),
            (&c.granter, Style::new()),
            (&c.scopes.join(", "), Style::new()),
            (&c.to.join(", "), Style::new()),
            (until, Style::new()),
            (&c.standing, style(&c.standing)),
            (&c.assurance, Style::new()),
        ]
        .map(|(text, style)| (clip_cells(&view::line(text), WIDEST), style))
    }));
    screen::table(&rows, WIDEST)
}

/// Show a consent, the messages under it, and who was told of its revocation
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent show health-2026\n  crosstalk consent show health-2026 --relay https://relay.example\n\nExit codes: 0 shown, 1 not on record, 10 the relay does not know it or can't be reached."
)]
struct ShowConsent {
    /// Its name, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    source: ConsentSource,
    /// Print JSON of the form crosstalk.consent/1
    #[arg(long)]
    json: bool,
}

impl ShowConsent {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let workspace = &Workspace::open(console)?;
        let record = match self.source.connect(workspace)? {
            Some(remote) => at_relay(&remote, &self.id)?,
            None => self.kept(console, workspace)?,
        };
        if self.json {
            return console.report(CONSENT, &record);
        }
        console.show(&shown(&record))
    }

    fn kept(&self, console: &mut Console, workspace: &Workspace) -> Result<ConsentRecord, Failure> {
        let store = self.source.open(console, workspace)?;
        let store = store.ok_or_else(|| Failure::failed(NOTHING.to_owned()))?;
        let grant = find(&store, &self.id)?.ok_or_else(|| unknown(&self.id))?;
        let under = store.under(&grant.id)?.into_iter();
        Ok(ConsentRecord {
            consent: ConsentView::of(&grant, clock::exact()),
            messages: under
                .map(|(id, has_text)| UnderConsent { id, has_text })
                .collect(),
            // Only a relay tells others by itself.
            told: Vec::new(),
        })
    }
}

/// The consent that a name, or the beginning of one, means at a relay.
fn at_relay(remote: &Remote, name: &str) -> Result<ConsentRecord, Failure> {
    let all = || {
        let all = remote.consents(None, false, LOOKED_THROUGH.into())?;
        Ok(all.into_iter().map(|c| c.id).collect())
    };
    find_by_prefix(name, |name| remote.consent(name), all, || several(name))
}

fn shown(record: &ConsentRecord) -> String {
    let consent = &record.consent;
    let mut out = format!(
        "{}  {}\n",
        styled(BOLD, &view::line(&consent.id)),
        styled(style(&consent.standing), &view::line(&consent.standing))
    );
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            let name = styled(DIM, &format!("{name:<13}"));
            out.push_str(&format!("{name} {}\n", view::line(value)));
        }
    };
    field("by", &consent.granter);
    field("to", &consent.to.join(", "));
    field("scope", &consent.scopes.join(", "));
    field("says", consent.consent.as_deref().unwrap_or_default());
    field("since", &consent.since);
    field("until", consent.expires.as_deref().unwrap_or("no end"));
    field("jurisdiction", &consent.jurisdictions.join(", "));
    field("verified", &consent.assurance);
    field("key", consent.pkid.as_deref().unwrap_or_default());
    field("message", &consent.message);
    field("digest", &consent.digest);
    field("goes back to", &consent.originals.join(", "));
    if let Some(end) = &consent.revoked {
        field("revoked", &format!("{} by {}", end.at, end.by));
        field("revoke", &end.message);
        field("reason", end.reason.as_deref().unwrap_or_default());
    }
    for message in &record.messages {
        let state = match message.has_text {
            true => "text is here",
            false => "text is erased",
        };
        field("under it", &format!("{}, {state}", message.id));
    }
    for delivery in &record.told {
        field("told", &told(delivery));
    }
    out
}

/// How far the word that it was revoked is.
fn told(delivery: &DeliveryStatus) -> String {
    let how = match delivery.state.as_str() {
        "acknowledged" => "confirmed",
        state => state,
    };
    let at = delivery.acknowledged_at.as_ref();
    let at = at.or(delivery.delivered_at.as_ref());
    let at = at.or(delivery.failed_at.as_ref());
    let at = at.map_or(String::new(), |at| format!(" {at}"));
    format!("{} by {}: {how}{at}", delivery.to, delivery.by)
}

/// Write, sign and keep a message that grants a consent
///
/// It says what the consent covers, for whom, since when and until when, and has a name by which it can be revoked. It is
/// signed if you have a key. It is kept, printed and put on the clipboard, or handed to a relay.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent grant claude://session/abc123 --scope medical --expires 2027-01-01T00:00:00Z\n  crosstalk consent grant chatgpt --scope pii --scope location --id trip-2026 --reply-to last\n\nExit codes: as of crosstalk send; 11 if the consent is not enough for the law that it names."
)]
struct GrantConsent {
    /// The receiver: a name or an address
    #[arg(value_name = "TO")]
    to: String,
    /// The scopes that it covers: pii, medical, financial, biometric, location, a word of your own; may be given again
    #[arg(long, value_name = "SCOPE", required = true, value_parser = scope)]
    scope: Vec<String>,
    /// When it expires: 30d, 12h, 8w, a date or a time
    #[arg(long, value_name = "TIME", value_parser = clock::end)]
    expires: Option<Timestamp>,
    /// The law that applies: GDPR, CCPA, HIPAA …; may be given again
    #[arg(long, value_name = "LAW")]
    jurisdiction: Vec<String>,
    /// Its name; else one is generated
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The message that asked for it: its id or the beginning of it, or `last`
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// Words of your own
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    #[command(flatten)]
    delivery: SendOptions,
}

impl GrantConsent {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = &Workspace::open(console)?;
        let receiver = resolve_typed(&workspace.config, &self.to);
        let sender = sender_or_own(&workspace.config, self.from.as_deref())?;
        let asked = match &self.reply_to {
            Some(reference) => {
                let store = workspace.kept(console)?;
                let asked = lookup::message(&store, reference)?;
                self.delivery.require_open(&store, &asked.thread)?;
                Some(asked)
            }
            None => None,
        };
        let delivery = self
            .delivery
            .clone()
            .signed_if(workspace, false)?
            .carrying_key(workspace);
        delivery.require_key(workspace)?;
        let at = clock::now();
        let id = self.id.clone().unwrap_or_else(|| workspace.new_id());
        let expires = self.end(console, workspace, (&id, &sender, &receiver))?;
        let intent = match asked {
            Some(_) => Intent::Respond,
            None => Intent::Broadcast,
        };
        let asked = asked.as_ref();
        let thread = asked.map_or_else(|| workspace.new_id(), |r| r.thread.clone());
        let mut builder = Builder::new(sender, receiver)
            .user(workspace.config.user()?)
            .session(session_text(at, "consent"))
            .thread(thread)
            .core_if(CoreHeader::Parent, asked.map(|r| r.id.as_str()))
            .message(workspace.new_id())
            .context(
                asked
                    .and_then(|r| r.context.as_deref())
                    .unwrap_or("consent"),
            )
            .intent(intent.as_str())
            .meta("privacy", "Consent", format!("explicit_yes_{at}"))
            .meta("privacy", "Scope", self.scope.join(", "));
        if let Some(end) = expires {
            builder = builder.meta("privacy", "Expires", end.to_string());
        }
        if !self.jurisdiction.is_empty() {
            builder = builder.meta("privacy", "Jurisdiction", self.jurisdiction.join(", "));
        }
        let builder = builder
            .meta("privacy", "Consent-ID", &id)
            .body(self.words(&id, expires, delivery.signs(workspace)))
            .visible();
        let is_signed = delivery.signs(workspace);
        let exit = delivery.dispatch(console, workspace, &builder, &[])?;
        if !is_signed {
            console.note(
                "it is not signed, so nothing can revoke it until you have a key: `crosstalk key new --id you@example.com` makes one",
            )?;
        }
        Ok(exit)
    }

    /// When it ends: one that is on record keeps its end, unless another is named. Says what changes.
    fn end(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        (id, sender, receiver): (&str, &str, &str),
    ) -> Result<Option<Timestamp>, Failure> {
        let store = workspace.messages(console)?;
        let known = store.map(|s| s.grant(id)).transpose()?.flatten();
        let Some(known) = known else {
            return Ok(self.expires);
        };
        let renewal = Renewal {
            sender,
            to: &[receiver.to_owned()],
            scopes: &self.scope,
            expires: self.expires,
        };
        renewal.tell(console, &known, clock::now())
    }

    /// The body of the message.
    fn words(&self, id: &str, expires: Option<Timestamp>, is_signed: bool) -> String {
        if let Some(note) = &self.note {
            return note.clone();
        }
        let end = match expires {
            Some(end) => format!(" until {end}"),
            None => String::new(),
        };
        // Only who has a key can revoke it.
        let ends = match is_signed {
            true => "; I can revoke it at any time.",
            false => ".",
        };
        format!(
            "I agree to the use of what falls under {}{end}. The name of this consent is {id}{ends}",
            self.scope.join(", ")
        )
    }
}

/// Revoke a consent: erase the messages under it, and write the signed REVOKE
///
/// Takes effect at once: erases the text of every message here under the consent, or under one that derives from it, also from the
/// files of the store; the digests stay. The REVOKE goes to the receiver of the consent, or by a relay, which does the same and
/// passes it on. It can't be undone: a new consent needs a new name.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent revoke health-2026\n  crosstalk consent revoke health-2026 --reason 'the study is over' --relay https://relay.example\n\nExit codes: as of crosstalk send; 1 no key to sign with, 14 the consent was given by somebody else."
)]
struct RevokeConsent {
    /// Its name, or the beginning of it
    #[arg(value_name = "ID")]
    id: String,
    /// Why, in a line
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The receiver of the REVOKE; without it, the one who got the consent
    #[arg(long, value_name = "TO")]
    to: Option<String>,
    /// The sender, in the direction line
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    #[command(flatten)]
    delivery: SendOptions,
}

impl RevokeConsent {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = &Workspace::open(console)?;
        let delivery = self
            .delivery
            .clone()
            .signed_if(workspace, true)?
            .carrying_key(workspace);
        delivery.require_key(workspace)?;
        let store = workspace.messages(console)?;
        let grant = match &store {
            Some(store) => find(store, &self.id)?,
            None => None,
        };
        let given = match (&store, &grant) {
            (Some(store), Some(grant)) => store.message(&grant.message)?,
            _ => None,
        };
        drop(store);
        if let Some(end) = grant.as_ref().and_then(|g| g.revoked.as_ref()) {
            console.note(&format!(
                "it was already revoked at {} ({}): this REVOKE repeats it",
                end.at, end.message
            ))?;
        }
        let receiver = self.receiver(console, workspace, grant.as_ref())?;
        let at = clock::now();
        let id = grant.as_ref().map_or(&self.id, |g| &g.id);
        let thread = given.as_ref().map(|r| r.thread.clone());
        let mut builder = Builder::new(
            self.sender(workspace, grant.as_ref(), given.as_ref())?,
            receiver,
        )
        .user(workspace.config.user()?)
        .session(session_text(at, "consent"))
        .thread(thread.unwrap_or_else(|| workspace.new_id()))
        .core_if(CoreHeader::Parent, given.as_ref().map(|r| r.id.as_str()))
        .message(workspace.new_id())
        .context("consent")
        .intent(Intent::Revoke.as_str())
        .meta("revocation", "Consent-ID", id);
        if let Some(reason) = &self.reason {
            builder = builder.meta("revocation", "Reason", reason);
        }
        let builder = builder
            .meta("revocation", "Effective", at.to_string())
            .body(format!(
                "I revoke the consent {id}. Please erase what you have under it, let those know whom you passed it on to, \
                 and confirm."
            ))
            .visible();
        delivery.dispatch(console, workspace, &builder, &[])
    }

    /// The name under which it was given, if that is one's own, or if it was given here.
    fn sender(
        &self,
        workspace: &Workspace,
        grant: Option<&Grant>,
        given: Option<&Record>,
    ) -> Result<String, Failure> {
        let mine = workspace.mine()?;
        let was_given_here = given.is_some_and(|r| r.way == Way::Sent);
        let own = grant.filter(|g| mine.has(&g.granter) || was_given_here);
        match (&self.from, own) {
            (Some(from), _) => Ok(resolve_typed(&workspace.config, from)),
            (None, Some(grant)) => Ok(grant.granter.clone()),
            (None, None) => workspace.config.sender(),
        }
    }

    fn receiver(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        grant: Option<&Grant>,
    ) -> Result<String, Failure> {
        let given = grant.map_or(&[][..], |g| &g.to);
        let receiver = match (&self.to, given) {
            (Some(to), _) => resolve_typed(&workspace.config, to),
            (None, [first, others @ ..]) => {
                for other in others {
                    console.note(&format!(
                        "{other} also got the consent: `crosstalk consent revoke {} --to {other}` tells them",
                        self.id
                    ))?;
                }
                first.clone()
            }
            (None, []) => {
                return Err(Failure::usage(format!(
                    "no consent `{}` is on record, so its recipients are not known",
                    self.id
                ))
                .help(
                    "name them with --to, or see `crosstalk \
                     consent list --all`",
                ));
            }
        };
        if Address::split(&receiver).is_name() {
            console.note(&format!(
                "{receiver} is a name and no address: a program can't be sure that this REVOKE is \
                 for it, and a relay rejects it; use --to ADDRESS"
            ))?;
        }
        Ok(receiver)
    }
}

/// Check whether the consent of a message is enough, without keeping it
///
/// Checks it against the rules, the settings and the consents on record here, and names the broken rule and what to do.
/// The command asks no relay and writes nothing.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk consent check message.txt\n  crosstalk consent check --at 2027-01-01T00:00:00Z --json message.txt | jq .envelopes[0].refusal\n\nExit codes: 0 enough, or none is needed; 11 not enough; 12 no message that can be read; 14 a REVOKE that its\nsender may not make, or that is not surely theirs."
)]
struct CheckConsent {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// At this time, instead of now
    #[arg(long, value_name = "TIME", value_parser = clock::time)]
    at: Option<Timestamp>,
    /// Print JSON of the form crosstalk.consent-check/1
    #[arg(long)]
    json: bool,
}

impl CheckConsent {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = &Workspace::open(console)?;
        let input = Input::read(&self.file, console)?;
        let (text, scan) = input.scan(Reading::Paste);
        let mut exit = Exit::of(&scan.rejected);
        if let Some(fault) = scan.rejected.iter().find(|d| d.is_error()) {
            let line = fault.position(&text).line;
            console.talk(&format!(
                "{}: line {line}: {} ({})\n",
                styled(RED, "error"),
                escape(&fault.message),
                fault.rule.id
            ))?;
        }
        let look = DnsOptions::default();
        let mut incoming = Incoming::new(workspace, &look)?;
        incoming.at = self.at;
        let store = workspace.messages(console)?;
        let mut envelopes = Vec::new();
        for document in &scan.documents {
            let taken = incoming.take(console, document, Way::Pasted)?;
            let judged = match &store {
                Some(store) => taken.said.judge(store, &taken.arrival, &incoming.policy)?,
                None => taken.said.judge_alone(&taken.arrival, &incoming.policy),
            };
            if let Err(refusal) = &judged {
                exit = exit.worst(refusal.code.into());
            }
            let one = CheckedConsent {
                document,
                said: &taken.said,
                judged: &judged,
            };
            match self.json {
                true => envelopes.push(one.report()),
                false => one.show(console)?,
            }
        }
        if self.json {
            console.report(CONSENT_CHECK, &ConsentCheckReport { envelopes })?;
        }
        Ok(exit)
    }
}

/// A message, and what was found out about its consent.
struct CheckedConsent<'c> {
    document: &'c Document<'c>,
    said: &'c consent::ConsentStatement,
    judged: &'c Result<Terms, Rejection>,
}

impl CheckedConsent<'_> {
    /// The reasons that need an explicit consent, in words.
    fn needs(&self) -> Vec<String> {
        let needs = self.said.claim().into_iter().flat_map(|c| c.needs());
        needs
            .map(|need| match need {
                Need::Pii => "PII: present".to_owned(),
                Need::Scope(scope) => format!("Scope: {scope}"),
            })
            .collect()
    }

    fn show(&self, console: &mut Console) -> Result<(), Failure> {
        let who = format!(
            "{} → {}",
            view::line(self.document.sender()),
            view::line(self.document.receiver())
        );
        let (word, why) = match self.judged {
            Ok(_) if self.needs().is_empty() => (styled(GREEN, "enough"), "needs none".to_owned()),
            Ok(_) => {
                let needs = view::line(&self.needs().join(", "));
                (styled(GREEN, "enough"), format!("for {needs}"))
            }
            Err(refusal) => {
                let why = escape(&consent::sentence(refusal)).into_owned();
                (styled(RED, "not enough"), lines(&why, 0))
            }
        };
        let how = self.said.assurance().as_str();
        console.show(&format!("{word}  {who}  {}\n{why}\n", styled(DIM, how)))
    }

    fn report(&self) -> CheckedConsentReport {
        let claim = self.said.claim();
        let terms = self.judged.as_ref().ok();
        CheckedConsentReport {
            from: self.document.sender().to_owned(),
            to: self.document.receiver().to_owned(),
            enough: terms.is_some(),
            needs: self.needs(),
            consent: claim.and_then(|c| c.text.clone()),
            scopes: claim.map_or_else(Vec::new, |c| c.scopes.clone()),
            assurance: self.said.assurance().as_str(),
            expires: terms.and_then(|t| t.expires).map(|t| t.to_string()),
            under: terms.map_or_else(Vec::new, |t| t.under.clone()),
            refusal: self.judged.as_ref().err().map(RefusalReport::new),
        }
    }
}
