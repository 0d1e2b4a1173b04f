//! `crosstalk trust`: manages the keys of others (TRU-003 to TRU-013, TRU-030).

use crate::caret::Carets;
use crate::clock;
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::{count, wrap};
use crate::report::{DomainReport, KnownKeyReport, Remark, TrustReport, standing_of};
use crate::schema::TRUST;
use crate::service::dns::{DnsLookup, DnsOptions};
use crate::service::home::{KeysAndTrust, public_key, require_allowed};
use clap::Args;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, ErrorCode, PublicKey, Reading, Timestamp, is_key_id};
use crosstalk_protocol::dns::{DnsAnswer, Dnssec, domain_of};
use crosstalk_protocol::{
    Domain, KeyStanding, KnownKey, Learned, Origin, PinError, Trust, Unlearned, Verdict,
    VerdictWord, VerifyContext, learn, pin_of, verify,
};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

group! {
    /// Manage trusted keys: pin, distrust, exchange and check keys of others
    ///
    /// The trust file is a text file in the folder of CROSSTALK_HOME, or in the usual place of your system.
    #[command(
        after_help = "Examples:\n  crosstalk trust pin signed.txt\n  crosstalk trust list\n  crosstalk trust import rotation.txt"
    )]
    TrustCommand {
        List(ListTrusted),
        Pin(PinKey),
        Remove(RemoveTrusted),
        Distrust(DistrustKey),
        Export(ExportTrust),
        Import(ImportTrust),
        Check(CheckTrust),
    }
}

/// Works on each message of a text, and tells what can't be read.
fn each_message(
    console: &mut Console,
    input: &Input,
    mut work: impl FnMut(&mut Console, &Document<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let (text, scan) = input.scan(Reading::Paste);
    let name = input.shown_name();
    Carets::new(&name, &text).tell(console, &scan.rejected)?;
    let mut exit = Exit::of(&scan.rejected);
    for document in &scan.documents {
        exit = exit.worst(work(console, document)?);
    }
    Ok(exit)
}

/// List the known keys of others, with their state
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust list\n  crosstalk trust list --json | jq -r '.keys[].id'"
)]
struct ListTrusted {
    /// Print JSON of the form crosstalk.trust-list/1
    #[arg(long)]
    json: bool,
}

impl ListTrusted {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let trust = rooms.trust()?;
        if self.json {
            let keys = trust.keys().iter();
            let report = TrustReport {
                keys: keys.map(|k| KnownKeyReport::new(k, Vec::new())).collect(),
                domains: trust.domains().iter().map(DomainReport::new).collect(),
                remarks: Vec::new(),
            };
            return console.report(TRUST, &report);
        }
        for known in trust.keys() {
            console.show(&describe_key(known, &[]))?;
        }
        for domain in trust.domains() {
            let keys = crate::paragraph::count(domain.keys.len(), "key");
            console.show(&format!(
                "{}  {keys} in DNS ({})\n  {}\n",
                styled(crate::console::BOLD, &escape(&domain.name)),
                domain.dnssec.as_str(),
                styled(
                    DIM,
                    &format!("asked {}, good until {}", domain.asked, domain.expires)
                )
            ))?;
        }
        if trust.keys().is_empty() && trust.domains().is_empty() {
            console
                .talk("No trusted keys yet. Pin one with `crosstalk trust pin signed.txt`.\n")?;
        }
        Ok(())
    }
}

/// Pin a key: from now on this id belongs to it
///
/// From a message that is signed `--with-key`: the id gets this key, and its sender this id. Or by hand: an id with
/// --key. Where the id has another key, or the sender another id, nothing is changed without --replace.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust pin signed.txt\n  crosstalk trust pin signed.txt --compared      # after reading the fingerprint to each other\n  crosstalk trust pin alice@example.com --key alice.pem --sender CLAUDE"
)]
struct PinKey {
    /// A file with signed messages (`-` is stdin), or with --key a key id
    #[arg(value_name = "FILE|ID")]
    what: String,
    /// Pin this key, by hand: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
    /// A sender that uses the key; may be given again
    #[arg(long, value_name = "SENDER", requires = "key")]
    sender: Vec<String>,
    /// You have compared the fingerprint with the sender: the pin is a manual one
    #[arg(long, conflicts_with = "key")]
    compared: bool,
    /// Replace another key of this id, or move the sender from another id
    #[arg(long)]
    replace: bool,
}

impl PinKey {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        match &self.key {
            Some(key) => {
                let pin = self.by_hand(public_key(key)?)?;
                self.pin(console, &rooms, pin)
            }
            None => self.messages(console, &rooms),
        }
    }

    fn by_hand(&self, key: PublicKey) -> Result<KnownKey, Failure> {
        let id = &self.what;
        if !is_key_id(id) {
            return Err(Failure::usage(format!(
                "`{id}` is no key id: 1 to 255 visible ASCII characters without ;[]()<>|"
            )));
        }
        if let Some(did) = PublicKey::from_did(id)
            && did.as_ref() != Ok(&key)
        {
            let message = format!("{id} is another key than the given one");
            return Err(Failure::malformed(message));
        }
        require_allowed(&key)?;
        Ok(KnownKey {
            id: id.clone(),
            key,
            since: clock::now(),
            how: Origin::Manual,
            by: None,
            senders: self.sender.clone(),
            standing: KeyStanding::Active,
            credential: None,
        })
    }

    fn messages(&self, console: &mut Console, rooms: &KeysAndTrust) -> Result<Exit, Failure> {
        let path = PathBuf::from(&self.what);
        if self.what != "-" && !Path::new(&self.what).exists() && is_key_id(&self.what) {
            return Err(
                Failure::usage(format!("there is no file `{}`", self.what)).help(format!(
                    "give the file with the message, or the key: crosstalk trust pin {} --key FILE",
                    self.what
                )),
            );
        }
        let input = Input::read(&path, console)?;
        each_message(console, &input, |console, document| {
            self.message(console, rooms, document)
        })
    }

    fn message(
        &self,
        console: &mut Console,
        rooms: &KeysAndTrust,
        document: &Document<'_>,
    ) -> Result<Exit, Failure> {
        let now = clock::now();
        let verdict = verify(document, &rooms.trust()?, &VerifyContext::at(now));
        let pin = pin_of(&verdict, now).filter(|_| is_for_a_person(&verdict));
        match pin {
            Some(mut pin) => {
                if self.compared {
                    pin.how = Origin::Manual;
                }
                self.pin(console, rooms, pin)
            }
            None => {
                let word = styled(RED, "not pinned");
                let text = format!("{} {}", verdict.sentence(), advice(&verdict));
                console.talk(&format!("{word}: {}\n", wrap(&escape(&text), 12, 0)))?;
                Ok(match verdict.word() {
                    word if word.is_signed() => Exit::FAILURE,
                    word => word.into(),
                })
            }
        }
    }

    fn pin(
        &self,
        console: &mut Console,
        rooms: &KeysAndTrust,
        pin: KnownKey,
    ) -> Result<Exit, Failure> {
        let pinned = rooms.change_trust(|trust| trust.pin_by_person(pin.clone(), self.replace))?;
        if let Err(fault) = pinned {
            return Err(Failure::denied(format!(
                "nothing is pinned: {}",
                explain_refusal(&pin, &fault, "run the same command with --replace")
            )));
        }
        console.show(&format!(
            "{}  {}\n  {}\n",
            styled(GREEN, "pinned"),
            styled(BOLD, &escape(&pin.id)),
            pin.key.fingerprint()
        ))?;
        if !pin.senders.is_empty() {
            let senders = pin.senders.join(", ");
            console.show(&format!("  used by {}\n", escape(&senders)))?;
        }
        if pin.how == Origin::FirstContact {
            let advice = "Compare the fingerprint with the sender by voice, all eight groups; then pin it again with \
                          --compared.";
            console.tell(advice)?;
        }
        Ok(Exit::SUCCESS)
    }
}

/// Whether a person may pin the key of such a message: it is whole, and nothing speaks against the key itself.
fn is_for_a_person(verdict: &Verdict) -> bool {
    match verdict.word() {
        VerdictWord::NotVerified => {
            let rules = [
                &rule::KEY_CHANGED,
                &rule::SENDER_CHANGED,
                &rule::SENDER_LOOKS_LIKE,
            ];
            verdict.rule().is_some_and(|r| rules.contains(&r))
        }
        word => word.is_signed(),
    }
}

fn advice(verdict: &Verdict) -> String {
    match verdict.word() {
        word if word.is_signed() => {
            "The message does not contain its key: pin it with --key.".to_owned()
        }
        _ => verdict.next(),
    }
}

/// Forget the keys of an id, or the answer of a domain
///
/// The next message of this id is first contact again. A key that was distrusted is forgotten as well; one that was
/// revoked is not. A domain that dropped DNSSEC has to be forgotten before it is trusted again.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  crosstalk trust remove bob@keys/2025")]
struct RemoveTrusted {
    /// The id, or the domain
    #[arg(value_name = "ID|DOMAIN")]
    id: String,
    /// Only this key: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
}

impl RemoveTrusted {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        let key = self.key.as_deref().map(public_key).transpose()?;
        let id = escape(&self.id);
        let (forgotten, (removed, revoked)) = rooms.change_trust(|trust| {
            let forgotten = key.is_none() && trust.forget_domain(&self.id);
            let removed = remove(trust, &self.id, key.as_ref());
            (forgotten, removed)
        })?;
        if forgotten {
            console.talk(&format!("The answer of {id} is forgotten.\n"))?;
        }
        if revoked > 0 {
            console.talk(&format!(
                "{} of {id} stays: a revocation is final.\n",
                count(revoked, "key")
            ))?;
        }
        if removed == 0 {
            if forgotten {
                return Ok(Exit::SUCCESS);
            }
            if revoked == 0 {
                console.talk(&format!("No key of {id} is known.\n"))?;
            }
            return Ok(Exit::FAILURE);
        }
        console.talk(&format!("{} of {id} forgotten\n", count(removed, "key")))?;
        Ok(Exit::SUCCESS)
    }
}

/// How many were removed, and how many stay because they were revoked.
fn remove(trust: &mut Trust, id: &str, only: Option<&PublicKey>) -> (usize, usize) {
    let known = trust.of_id(id).into_iter();
    let meant = known.filter(|k| only.is_none_or(|only| k.key == *only));
    let (revoked, others): (Vec<_>, Vec<_>) =
        meant.partition(|k| matches!(k.standing, KeyStanding::Revoked { .. }));
    let (revoked, keys) = (
        revoked.len(),
        others
            .into_iter()
            .map(|k| k.key)
            .collect::<Vec<PublicKey>>(),
    );
    let removed = keys.iter().map(|key| trust.remove(id, Some(key))).sum();
    (removed, revoked)
}

/// Distrust a key, even if its domain or other keys vouch for it
///
/// Without --key, every key that is known for the id. `crosstalk trust remove` undoes it.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk trust distrust bob@keys/2025 --reason 'Bob does not know this key'"
)]
struct DistrustKey {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// This key: its record, or a file with it
    #[arg(long, value_name = "PEM|RECORD")]
    key: Option<String>,
    /// Why, for yourself
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl DistrustKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        if !is_key_id(&self.id) {
            return Err(Failure::usage(format!("`{}` is no key id", self.id)));
        }
        let rooms = KeysAndTrust::open()?;
        let key = self.key.as_deref().map(public_key).transpose()?;
        let at = clock::now();
        let marked = rooms.change_trust(|trust| {
            let known = trust.of_id(&self.id).into_iter();
            let known = known.filter(|k| !matches!(k.standing, KeyStanding::Revoked { .. }));
            let keys: Vec<PublicKey> = match key {
                Some(key) => vec![key],
                None => known.map(|k| k.key).collect(),
            };
            for key in &keys {
                let standing = KeyStanding::Distrusted {
                    at,
                    reason: self.reason.clone(),
                };
                trust.mark(&self.id, key, at, standing);
            }
            keys
        })?;
        if marked.is_empty() {
            return Err(Failure::failed(format!(
                "no key of {} is known that could be distrusted",
                self.id
            ))
            .help("name one with --key"));
        }
        for key in marked {
            let word = styled(RED, "distrusted");
            let id = escape(&self.id);
            console.show(&format!("{word}  {id}\n  {}\n", key.fingerprint()))?;
        }
        Ok(())
    }
}

/// Write the known keys, for another machine or another person
///
/// Answers of DNS are not among them. Everyone who imports the file trusts the keys that you trust.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust export > trust.toml\n  crosstalk trust export /media/stick/trust.toml"
)]
struct ExportTrust {
    /// The file to write, which must not be there yet; `-` or none is stdout
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    file: PathBuf,
}

impl ExportTrust {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let trust = KeysAndTrust::open()?.trust()?;
        let text = trust.to_export();
        if self.file.as_os_str() == "-" {
            return console.text(&text);
        }
        let name = self.file.to_string_lossy();
        File::create_new(&self.file)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .map_err(|e| Failure::at(&self.file, e))?;
        let keys = count(trust.keys().len(), "key");
        console.talk(&format!("{}: {keys} written\n", shown_path(&name)))
    }
}

/// Import a trust file, or the new keys and revocations that messages announce
///
/// Leaves out entries of a trust file that contradict your own, and names them. Accepts a message that announces a new key if the
/// old one is pinned, and a revocation if the key itself or its successor signed it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust import rotation.txt\n  crosstalk trust import /media/stick/trust.toml"
)]
struct ImportTrust {
    /// A trust file, or a file with messages; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl ImportTrust {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        let input = Input::read(&self.file, console)?;
        match input.text() {
            Ok(text) if is_trust_file(text) => merge(console, &rooms, text, &input.shown_name()),
            _ => each_message(console, &input, |console, document| {
                message(console, &rooms, document)
            }),
        }
    }
}

/// A trust file says so in a line of its own; no envelope is in it.
fn is_trust_file(text: &str) -> bool {
    let is_schema = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or_default();
        name.trim() == "schema" && value.trim_start().starts_with(['"', '\''])
    };
    text.lines()
        .take_while(|line| !line.trim_start().starts_with('['))
        .any(is_schema)
}

fn merge(
    console: &mut Console,
    rooms: &KeysAndTrust,
    text: &str,
    name: &str,
) -> Result<Exit, Failure> {
    let other = Trust::parse(text).map_err(|fault| {
        let fault = fault.to_string();
        Failure::malformed(format!("{name}: {} (TRU-030)", fault.trim_end()))
    })?;
    let (new, refused) = rooms.change_trust(|trust| {
        let before = trust.clone();
        let refused = trust.merge(&other);
        let is_new = |k: &&KnownKey| before.entry(&k.id, &k.key) != Some(*k);
        let new: Vec<KnownKey> = trust.keys().iter().filter(is_new).cloned().collect();
        (new, refused)
    })?;
    for known in &new {
        console.show(&describe_key(known, &[]))?;
    }
    for (id, fault) in &refused {
        let offered = other.active(id);
        let text = match offered {
            Some(pin) => explain_refusal(
                pin,
                fault,
                "`crosstalk trust pin ID --key FILE --replace` pins it",
            ),
            None => format!("{id} is left out"),
        };
        let word = styled(YELLOW, "left out");
        console.talk(&format!("{word}: {}\n", escape(&text)))?;
    }
    let (taken, left) = (count(new.len(), "key"), count(refused.len(), "key"));
    console.talk(&format!("{name}: {taken} imported, {left} left out\n"))?;
    Ok(match refused.is_empty() {
        true => Exit::SUCCESS,
        false => ErrorCode::Perm.into(),
    })
}

fn message(
    console: &mut Console,
    rooms: &KeysAndTrust,
    document: &Document<'_>,
) -> Result<Exit, Failure> {
    let question = VerifyContext::at(clock::now());
    let (learned, changed) = rooms.change_trust(|trust| {
        let before = trust.clone();
        let learned = learn(document, trust, &question);
        (learned, *trust != before)
    })?;
    match learned {
        Ok(Learned::Rotated(_)) if !changed => {
            console.talk("the new key is known already: nothing changed\n")?;
            Ok(Exit::SUCCESS)
        }
        Ok(Learned::Rotated(rotation)) => {
            console.show(&format!(
                "{}  {} is replaced by {}\n  old key  {}\n  new key  {}\n  signatures of the old key after {} are not valid\n",
                styled(GREEN, "new key"),
                escape(&rotation.old_id),
                escape(&rotation.new_id),
                rotation.old.fingerprint(),
                rotation.new.fingerprint(),
                rotation.grace
            ))?;
            Ok(Exit::SUCCESS)
        }
        Ok(Learned::Revoked { id, key, at }) => {
            console.show(&format!(
                "{}  {}, from {at} on\n  {}\n",
                styled(RED, "revoked"),
                escape(&id),
                key.fingerprint()
            ))?;
            Ok(Exit::SUCCESS)
        }
        Err(Unlearned::Nothing) => {
            let text = "the message announces no new key and revokes none; to pin the key that it was signed with: \
                        crosstalk trust pin FILE";
            refuse(console, text)?;
            Ok(Exit::FAILURE)
        }
        Err(Unlearned::Unproven(rule, verdict)) => {
            let text = format!(
                "{} {} ({})",
                verdict.sentence(),
                unproven(&verdict),
                rule.id
            );
            refuse(console, &text)?;
            Ok(ErrorCode::Perm.into())
        }
    }
}

fn unproven(verdict: &Verdict) -> String {
    match verdict.word() {
        word if word.is_signed() => {
            "It does not prove its statement about the key: it is not signed by the old key, the key itself or its \
             successor, as far as they are known here."
                .to_owned()
        }
        _ => verdict.next(),
    }
}

fn refuse(console: &mut Console, text: &str) -> Result<(), Failure> {
    let word = styled(RED, "nothing changed");
    console.talk(&format!("{word}: {}\n", wrap(&escape(text), 17, 0)))
}

/// A grace period that ends sooner is worth a word.
const SOON: u32 = 7;

/// Check the trusted keys, and report problems
///
/// Without ids, checks everything. With --dns, asks the domains of the keys. The exit code is 1 if something is wrong: a key that
/// its domain does not list, a key on the deny list, an unknown id.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust check\n  crosstalk trust check --dns alice@example.com"
)]
struct CheckTrust {
    /// Only these ids
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print JSON of the form crosstalk.trust-list/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: DnsOptions,
}

impl CheckTrust {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        let known = rooms.trust()?;
        let mut trust = known.clone();
        let mut lookup = DnsLookup::new(&self.look, &rooms)?;
        let now = clock::now();
        let is_meant = |id: &str| self.ids.is_empty() || self.ids.iter().any(|i| i == id);
        let mut keys: Vec<(&KnownKey, Vec<Remark>)> = Vec::new();
        for key in known.keys().iter().filter(|k| is_meant(&k.id)) {
            let mut remarks = standing(&known, key, now);
            if key.standing == KeyStanding::Active
                && let Some(domain) = domain_of(&key.id)
            {
                let answer = match lookup.holds(domain, &trust, now) {
                    true => None,
                    false => lookup.ask(console, domain, &mut trust)?,
                };
                remarks.extend(self.domain(key, domain, answer.as_ref(), &trust, now));
            }
            keys.push((key, remarks));
        }
        let missing = self.ids.iter().filter(|id| known.of_id(id).is_empty());
        let missing: Vec<Remark> = missing
            .map(|id| Remark::wrong(format!("no key of {id} is known")))
            .collect();
        let mut all = keys.iter().flat_map(|(_, remarks)| remarks).chain(&missing);
        let exit = Exit::of_check(!all.any(|r| r.wrong));
        if self.json {
            let names = keys.iter().filter_map(|(k, _)| domain_of(&k.id));
            let names: Vec<&str> = names.collect();
            let is_named = |d: &&Domain| names.iter().any(|n| n.eq_ignore_ascii_case(&d.name));
            let domains = trust.domains().iter().filter(is_named);
            let report = TrustReport {
                domains: domains.map(DomainReport::new).collect(),
                keys: keys
                    .into_iter()
                    .map(|(k, r)| KnownKeyReport::new(k, r))
                    .collect(),
                remarks: missing,
            };
            console.report(TRUST, &report)?;
        } else {
            for (key, remarks) in &keys {
                console.show(&describe_key(key, remarks))?;
            }
            for remark in &missing {
                console.show(&format!(
                    "{}: {}\n",
                    styled(RED, "wrong"),
                    styled(BOLD, &escape(&remark.text))
                ))?;
            }
            if keys.is_empty() && missing.is_empty() {
                console.talk("No trusted keys to check.\n")?;
            }
        }
        Ok(exit)
    }

    /// What the domain says about a key.
    fn domain(
        &self,
        key: &KnownKey,
        domain: &str,
        answer: Option<&DnsAnswer>,
        trust: &Trust,
        now: Timestamp,
    ) -> Option<Remark> {
        let (keys, dnssec) = match answer {
            Some(DnsAnswer::Keys { keys, dnssec, .. }) => (keys.as_slice(), *dnssec),
            Some(DnsAnswer::Absent { .. }) => {
                return Some(Remark::wrong(format!("{domain} lists no key")));
            }
            Some(DnsAnswer::Wrong { reason }) => {
                let text = format!("{domain} lists no key that can be read: {reason}");
                return Some(Remark::wrong(text));
            }
            Some(DnsAnswer::Unavailable { reason }) => {
                let text = format!("{domain} could not be asked: {reason}");
                return Some(Remark::wrong(text));
            }
            None => match trust.domain(domain, now) {
                Some(kept) => (kept.keys.as_slice(), kept.dnssec),
                None if key.how == Origin::Dns || knows(trust, domain) => {
                    let text =
                        format!("the answer of {domain} is out of date: ask again with --dns");
                    return Some(Remark::note(text));
                }
                None => return None,
            },
        };
        Some(if !keys.contains(&key.key) {
            Remark::wrong(format!("{domain} lists other keys, and not this one"))
        } else if self.look.require_dnssec && dnssec != Dnssec::Secure {
            let text = format!("{domain} lists this key, and DNSSEC does not protect that");
            Remark::wrong(text)
        } else {
            let text = format!("{domain} lists this key (DNSSEC: {})", dnssec.as_str());
            Remark::note(text)
        })
    }
}

/// Whether a domain has answered before.
fn knows(trust: &Trust, domain: &str) -> bool {
    let domains = trust.domains();
    domains.iter().any(|d| d.name.eq_ignore_ascii_case(domain))
}

/// Remarks on a key that need no DNS.
fn standing(trust: &Trust, known: &KnownKey, now: Timestamp) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(reason) = known.key.denied() {
        let text = format!("the key is on the deny list: it was {reason}");
        remarks.push(Remark::wrong(text));
    }
    let revoked = |k: &&KnownKey| {
        k.key == known.key && k.id != known.id && matches!(k.standing, KeyStanding::Revoked { .. })
    };
    if let Some(other) = trust.keys().iter().find(revoked) {
        let text = format!("the same key was revoked under the id {}", other.id);
        remarks.push(Remark::wrong(text));
    }
    match &known.standing {
        KeyStanding::Active if known.how == Origin::FirstContact => {
            let text = "its fingerprint was not compared: compare it with the sender, and pin it again with --compared";
            remarks.push(Remark::note(text));
        }
        KeyStanding::Replaced { by, key, grace, .. } => {
            if trust.entry(by, key).is_none() {
                let text = format!("the key of {by} that took its place is not known");
                remarks.push(Remark::wrong(text));
            }
            if *grace < now {
                remarks.push(Remark::note("its grace period has ended"));
            } else if *grace < clock::days_after(now, SOON) {
                remarks.push(Remark::note(format!("its grace period ends on {grace}")));
            }
        }
        _ => {}
    }
    remarks
}

/// A key for people: its id and standing, the fingerprint, where it comes from, and what is to say about it.
fn describe_key(known: &KnownKey, remarks: &[Remark]) -> String {
    let style = match known.standing {
        KeyStanding::Active => GREEN,
        KeyStanding::Replaced { .. } => YELLOW,
        KeyStanding::Revoked { .. } | KeyStanding::Distrusted { .. } => RED,
    };
    let mut out = format!(
        "{}  {}\n  {}\n",
        styled(BOLD, &escape(&known.id)),
        styled(style, standing_of(&known.standing)),
        known.key.fingerprint()
    );
    let mut line = |text: &str| {
        out.push_str(&format!("  {}\n", styled(DIM, &wrap(&escape(text), 2, 2))));
    };
    line(&format!("since {}, {}", known.since, origin(known.how)));
    if !known.senders.is_empty() {
        line(&format!("used by {}", known.senders.join(", ")));
    }
    match &known.standing {
        KeyStanding::Active => {}
        KeyStanding::Replaced { by, at, grace, .. } => {
            line(&format!(
                "replaced by {by} on {at}; signatures after {grace} are not valid"
            ));
        }
        KeyStanding::Revoked { at, reason, .. } | KeyStanding::Distrusted { at, reason } => {
            let reason = reason.as_ref().map_or(String::new(), |r| format!(": {r}"));
            line(&format!("{} on {at}{reason}", standing_of(&known.standing)));
        }
    }
    out.push_str(&list_remarks(remarks));
    out
}

/// Remarks, one a line.
fn list_remarks(remarks: &[Remark]) -> String {
    let mut out = String::new();
    for remark in remarks {
        let (style, word) = match remark.wrong {
            true => (RED, "wrong"),
            false => (DIM, "note"),
        };
        let text = wrap(&escape(&remark.text), word.len() + 4, word.len() + 4);
        out.push_str(&format!("  {}: {text}\n", styled(style, word)));
    }
    out
}

/// How a key came here, in words.
const fn origin(how: Origin) -> &'static str {
    match how {
        Origin::FirstContact => "from a message",
        Origin::Manual => "by hand",
        Origin::Dns => "by its domain",
        Origin::Revocation => "by its revocation",
    }
}

/// Why a key is not pinned, with both fingerprints if there are two.
/// `replace` is how to pin it nevertheless.
fn explain_refusal(pin: &KnownKey, fault: &PinError, replace: &str) -> String {
    let id = &pin.id;
    match fault {
        PinError::NoRoom => format!("there is no room for another first contact like {id}"),
        PinError::Unseen(senders) => {
            format!("{} used the key of {id} as well", senders.join(", "))
        }
        PinError::Denied(reason) => format!("the key of {id} is on the deny list: it was {reason}"),
        PinError::Changed(known) => format!(
            "{id} has another key already\n  known key  {}\n  other key  {}\n\
             compare both with the sender by voice; if the other one is theirs, {replace}",
            known.fingerprint(),
            pin.key.fingerprint()
        ),
        PinError::SenderChanged(ids) => format!(
            "{} has signed as {} so far, and not as {id}\n  other key  {}\n\
             ask the sender over another channel; if {id} is theirs, {replace}",
            pin.senders.join(", "),
            ids.join(" or "),
            pin.key.fingerprint()
        ),
        PinError::LooksLike(name, like) => format!(
            "{name} looks like {like}, who signs with another key\n  other key  {}\n\
             compare the names letter by letter; if {name} is another party, {replace}",
            pin.key.fingerprint()
        ),
        PinError::Refused(standing) => format!(
            "this key of {id} is {}{}",
            standing_of(standing),
            match **standing {
                KeyStanding::Distrusted { .. } =>
                    ": undo that with `crosstalk trust remove ID` first",
                KeyStanding::Replaced { .. } => " by another one: --replace pins it again",
                _ => ", which is final",
            }
        ),
    }
}

#[cfg(test)]
mod import_tests {
    use super::*;

    #[test]
    fn a_trust_file_is_told_from_a_message() {
        assert!(is_trust_file(
            "# hi\n\nschema = \"crosstalk.trust/1\"\n[[key]]\n"
        ));
        assert!(is_trust_file("schema='crosstalk.trust/2'\n"));
        assert!(!is_trust_file("[[A→B v1]]\nbody: |\n  schema = \"x\"\n"));
        assert!(!is_trust_file(""));
    }
}
