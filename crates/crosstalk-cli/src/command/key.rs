//! `crosstalk key`: creates, exports, backs up, rotates and revokes own keys (SIG-020 to SIG-024, TRU-010, TRU-013).

use crate::clock::{self, days_after};
use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, shown_path};
use crate::paragraph::wrap;
use crate::render::field;
use crate::report::{KeysReport, state_of};
use crate::schema::KEYS;
use crate::service::home::{KeysAndTrust, block_of, require_active, require_allowed, rotation_of};
use crate::service::passphrase::{Passphrase, choose_new};
use crate::service::settings::Settings;
use crate::service::signing::{new_key, sign};
use clap::{Args, ValueEnum};
use crosstalk_envelope::signing::Signer;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{
    Algorithm, Builder, Document, PrivateKey, PublicKey, Reading, base64, id, is_key_id,
};
use crosstalk_protocol::dns::{domain_of, key_name};
use crosstalk_protocol::rotation::key_block;
use crosstalk_protocol::{Rotation, Trust, VerifyContext, learn};
use crosstalk_store::{Imported, KeyFacts, KeyFileError, KeyHandover, StoredKey, import};
use std::path::PathBuf;
use zeroize::Zeroizing;

group! {
    /// Create, show, back up, rotate and revoke your own keys
    ///
    /// Keys are files in the folder of CROSSTALK_HOME, or in the usual place of your system. The commands ask for passphrases on
    /// the terminal; scripts give them in CROSSTALK_PASSPHRASE or with --passphrase-file.
    #[command(
        after_help = "Examples:\n  crosstalk key new --id alice@example.com\n  crosstalk key show alice@example.com\n  crosstalk key backup alice@example.com --to alice.backup"
    )]
    Key {
        New(NewKey),
        List(ListKeys),
        Show(ShowKey),
        Export(ExportKey),
        Import(ImportKey),
        Backup(BackUpKey),
        Rotate(RotateKey),
        Revoke(RevokeKey),
        Passphrase(ChangePassphrase),
    }
}

/// Make a key
///
/// The id is the name of the key: others see it in each message, and it stays for years. With a mail address of
/// a domain of yours, the domain can vouch for the key.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key new --id alice@example.com\n  crosstalk key new --id bob@keys/2025 --passphrase"
)]
struct NewKey {
    /// The id: visible ASCII characters without ;[]()<>|; `did:key` makes the key its own id
    #[arg(long, value_name = "ID", value_parser = key_id)]
    id: String,
    /// How it signs: ed25519 or secp256r1
    #[arg(long, value_enum, value_name = "NAME", default_value_t = AlgorithmName::Ed25519, hide_possible_values = true)]
    algorithm: AlgorithmName,
    /// Encrypt the key file with a passphrase, which each use asks for
    #[arg(long)]
    passphrase: bool,
    #[command(flatten)]
    ask: Passphrase,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AlgorithmName {
    /// Ed25519
    Ed25519,
    /// ECDSA on P-256
    Secp256r1,
}

impl From<AlgorithmName> for Algorithm {
    fn from(kind: AlgorithmName) -> Self {
        match kind {
            AlgorithmName::Ed25519 => Self::Ed25519,
            AlgorithmName::Secp256r1 => Self::Secp256r1,
        }
    }
}

fn key_id(text: &str) -> Result<String, String> {
    if is_key_id(text) {
        Ok(text.to_owned())
    } else {
        Err("a key id has 1 to 255 visible ASCII characters without ;[]()<>|".to_owned())
    }
}

/// A did:key names exactly one key.
fn require_fitting(id: &str, key: &PublicKey) -> Result<(), Failure> {
    match PublicKey::from_did(id) {
        None => Ok(()),
        Some(Ok(named)) if named == *key => Ok(()),
        Some(_) => Err(Failure::malformed(format!(
            "{id} is not the did:key of this key, which is {}",
            key.to_did()
        ))),
    }
}

impl NewKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let key = new_key(self.algorithm.into())?;
        let id = match self.id.as_str() {
            "did:key" => key.public().to_did(),
            _ => self.id,
        };
        require_fitting(&id, &key.public())?;
        let encrypt = self.passphrase || self.ask.passphrase_file.is_some();
        let passphrase = match encrypt {
            true => Some(choose(&self.ask, &id)?),
            false => None,
        };
        let passphrase = passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms.keys.create(&id, &key, passphrase, clock::now())?;
        console.show(&describe_key(&rooms, &stored)?)?;
        console.talk(&format!(
            "Back it up before you use it: crosstalk key backup {id} --to FILE\n"
        ))
    }
}

fn choose(ask: &Passphrase, what: &str) -> Result<zeroize::Zeroizing<String>, Failure> {
    ask.choose(what)
        .map_err(|e| Failure::io("the passphrase", e))
}

/// List your keys
///
/// Names files that can't be read as keys, and ends with exit code 1 then.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key list\n  crosstalk key list --json | jq -r '.keys[].id'"
)]
struct ListKeys {
    /// Print JSON of the form crosstalk.key-list/1
    #[arg(long)]
    json: bool,
}

impl ListKeys {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        let listing = rooms.keys.list()?;
        if self.json {
            let report = KeysReport::new(&rooms, &listing.keys, &listing.problems)?;
            console.report(KEYS, &report)?;
        } else {
            for key in &listing.keys {
                let facts = &key.facts;
                console.show(&format!(
                    "{}  {}  {}\n  {}\n",
                    styled(BOLD, &escape(&facts.id)),
                    describe_state(key),
                    facts.public.algorithm(),
                    styled(DIM, &facts.public.fingerprint().to_string())
                ))?;
            }
            if listing.keys.is_empty() && listing.problems.is_empty() {
                console.talk(
                    "No keys yet. Create one with `crosstalk key new --id you@example.com`.\n",
                )?;
            }
        }
        for problem in &listing.problems {
            let word = styled(YELLOW, "warning");
            let problem = problem.to_string();
            console.talk(&format!("{word}: {}\n", escape(&problem)))?;
        }
        Ok(Exit::of_check(listing.problems.is_empty()))
    }
}

/// Show the public data of a key, its fingerprint first
///
/// The keys that the id had before are shown below it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key show alice@example.com\n  crosstalk key show alice@example.com --json | jq -r '.keys[0].fingerprint'"
)]
struct ShowKey {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON of the form crosstalk.key-list/1
    #[arg(long)]
    json: bool,
}

impl ShowKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let current = rooms.keys.find(&self.id)?;
        let listing = rooms.keys.list()?;
        let earlier = listing.of_id(&self.id).filter(|k| **k != current);
        let keys: Vec<&StoredKey> = std::iter::once(&current).chain(earlier).collect();
        if self.json {
            return console.report(KEYS, &KeysReport::new(&rooms, keys, &[])?);
        }
        for (number, key) in keys.into_iter().enumerate() {
            console.show(if number == 0 { "" } else { "\n" })?;
            console.show(&describe_key(&rooms, key)?)?;
        }
        Ok(())
    }
}

/// Print the public key for other programs, for DNS or for a message
///
/// Only `--format pem --private` prints the private key, without a passphrase.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key export alice@example.com --format pem > alice.pem\n  crosstalk key export alice@example.com --format dns"
)]
struct ExportKey {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// pem: a file for other programs; dns: a line for a zone file; meta: the block for a message
    #[arg(long, value_enum, value_name = "FORM", default_value_t = KeyFormat::Pem, hide_possible_values = true)]
    format: KeyFormat,
    /// With pem: the private key; anyone who has it can sign as you
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    ask: Passphrase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeyFormat {
    Pem,
    Dns,
    Meta,
}

impl ExportKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let key = rooms.keys.find(&self.id)?;
        if self.private && self.format != KeyFormat::Pem {
            let message = "--private needs --format pem: no other form has the private key";
            return Err(Failure::usage(message));
        }
        match self.format {
            KeyFormat::Pem if self.private => {
                let opened = rooms.unlock(&key, &self.ask)?;
                let pem = opened.key.to_pem().map(Zeroizing::new);
                let pem = pem.map_err(|e| Failure::of_key("the key", &e))?;
                console.talk(&format!(
                    "{}: this is the private key, not encrypted: anyone who has it can sign as {}\n",
                    styled(RED, "careful"),
                    escape(&key.facts.id)
                ))?;
                console.data(pem.as_bytes())?;
            }
            KeyFormat::Pem => console.data(key.facts.public.to_pem())?,
            KeyFormat::Dns => dns(console, &key)?,
            KeyFormat::Meta => {
                let mut block = String::from("meta: key\n");
                for (name, value) in block_of(&key) {
                    block.push_str(&format!("{name}: {value}\n"));
                }
                console.data(block)?;
            }
        }
        Ok(())
    }
}

/// Prints a line for the zone file of the domain; without a domain, with a relative name.
fn dns(console: &mut Console, key: &StoredKey) -> Result<(), Failure> {
    let name = match domain_of(&key.facts.id) {
        Some(domain) => format!("{}.", key_name(&domain.to_ascii_lowercase())),
        None => {
            console.talk(&format!(
                "{} names no domain, so no domain can vouch for it: `verify --dns` will not ask for this key\n",
                escape(&key.facts.id)
            ))?;
            "_crosstalk-key".to_owned()
        }
    };
    console.data(format!(
        "{name} 3600 IN TXT \"{}\"\n",
        key.facts.public.record()
    ))
}

/// Import a key from a backup, or from a PEM file of another program
///
/// A backup contains the id and the history of the key; a PEM file (PKCS#8) needs --id. A key that was
/// encrypted stays so, with the same passphrase, unless --passphrase asks for another one.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key import alice.backup\n  crosstalk key import openssl.pem --id bob@keys/2025"
)]
struct ImportKey {
    /// The file; `-` is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The id, if the file does not say it
    #[arg(long, value_name = "ID", value_parser = key_id)]
    id: Option<String>,
    /// Encrypt the key file with a new passphrase
    #[arg(long)]
    passphrase: bool,
    #[command(flatten)]
    ask: Passphrase,
}

impl ImportKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let input = Input::read(&self.file, console)?;
        let name = input.shown_name().into_owned();
        let text = input.text().map_err(|(_, fault)| {
            Failure::of_rule(fault.rule, &format!("{name}: {}", fault.message))
        })?;
        let mut passphrase = None;
        let Imported { facts, key } = import(text, || {
            let answer = self.ask.ask(&name)?;
            passphrase = Some(answer.clone());
            Ok(answer)
        })
        .map_err(|e| Failure::from(e).about(&name))?;
        require_allowed(&key.public())?;
        let facts = match (facts, self.id) {
            (Some(facts), Some(id)) if facts.id != id => {
                return Err(Failure::usage(format!(
                    "{name} is a backup of {}, and keeps that id",
                    facts.id
                ))
                .help("leave --id out"));
            }
            (Some(facts), _) => facts,
            (None, Some(id)) => KeyFacts::new(id, key.public(), clock::now()),
            (None, None) => {
                return Err(
                    Failure::usage(format!("{name} does not name the id of its key"))
                        .help("pass it with --id"),
                );
            }
        };
        require_fitting(&facts.id, &key.public())?;
        if self.passphrase {
            passphrase = Some(choose(&self.ask, &facts.id)?);
        }
        let passphrase = passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms.keys.add(facts, &key, passphrase)?;
        console.show(&describe_key(&rooms, &stored)?)
    }
}

/// Write a key and all that belongs to it into one encrypted file
///
/// A key that has a passphrase keeps it in the backup; otherwise the command asks for a passphrase for the backup. It never
/// overwrites a file.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key backup alice@example.com --to /media/stick/alice.backup\n  crosstalk key import /media/stick/alice.backup     # on another machine: try it once"
)]
struct BackUpKey {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    #[command(flatten)]
    ask: Passphrase,
}

impl BackUpKey {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        if self.to.as_os_str() == "-" {
            let message = "a backup is a file of its own: give its name with --to".to_owned();
            return Err(Failure::usage(message));
        }
        let rooms = KeysAndTrust::open()?;
        let key = rooms.keys.find(&self.id)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        let passphrase = match opened.passphrase {
            Some(passphrase) => passphrase,
            None => choose(&self.ask, "the backup")?,
        };
        rooms
            .keys
            .backup(&key, &opened.key, &self.to, &passphrase)?;
        let to = self.to.to_string_lossy();
        let id = escape(&self.id);
        let advice = format!(
            "Store {} away from this computer, and keep its passphrase. If the key is lost without them, it can't be \
             used, replaced or revoked any more: no one can sign as {id} again.",
            shown_path(&to)
        );
        let done = styled(crate::console::GREEN, "written");
        console.talk(&format!(
            "{}: {done}\n{}\n",
            shown_path(&to),
            wrap(&advice, 0, 0)
        ))
    }
}

/// The sender and receiver of the message.
#[derive(Args, Debug)]
struct Parties {
    /// The receiver of the message
    #[arg(long, value_name = "ADDRESS", default_value = "EVERYONE")]
    to: String,
    /// The sender of the message, as you call yourself in others; else the configured sender, or the id of the key
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
}

impl Parties {
    /// The same, from the configured sender if none is named: a relay accepts a message only from an address that its
    /// credential speaks for.
    fn or_configured(mut self, config: &Settings) -> Self {
        self.from = self.from.or_else(|| config.named_sender());
        self
    }

    /// An envelope that is to be signed with the key of this id.
    fn envelope(&self, signer: &Signer<'_>, context: &str) -> Builder {
        let sender = self.from.as_deref().unwrap_or(signer.pkid);
        // To the hour, as sessions are named, and something that no other session has.
        let hour: String = signer.at.to_string().chars().take(13).collect();
        let name: String = id::new_ulid().chars().rev().take(6).collect();
        Builder::new(sender, self.to.as_str())
            .user(signer.pkid)
            .session(format!("{hour}Z {}", name.to_ascii_lowercase()))
            .message(id::new_ulid())
            .context(context)
    }
}

/// Replace a key with a new one, and print the message that says so
///
/// Both keys sign the message. Everyone who imports it with `crosstalk trust import` trusts the new key in place of the old one.
/// This computer no longer signs with the old key. Signatures that it makes until the end of the grace period stay valid. A
/// passphrase of the old key is that of the new one. Every message that you sign with --with-key has the same proof, for people who
/// missed the announcement.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key rotate alice@example.com > rotation.txt\n  crosstalk key rotate alice@example.com --new-id alice@example.com/2 --grace 90 > rotation.txt\n  crosstalk key rotate alice@example.com/2 --again"
)]
struct RotateKey {
    /// The id of the old key
    #[arg(value_name = "ID")]
    id: String,
    /// The id of the new key; else the same
    #[arg(long, value_name = "ID", value_parser = key_id)]
    new_id: Option<String>,
    /// How the new key signs: ed25519 or secp256r1; else as the old one
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    algorithm: Option<AlgorithmName>,
    /// For how many days signatures of the old key stay valid
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(..=3650))]
    grace: u32,
    /// Change nothing: print the message about the key that ID has now once more
    #[arg(long, conflicts_with_all = ["new_id", "algorithm", "grace"])]
    again: bool,
    #[command(flatten)]
    parties: Parties,
    #[command(flatten)]
    ask: Passphrase,
}

impl RotateKey {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = KeysAndTrust::open()?;
        let old = rooms.keys.find(&self.id)?;
        require_active(&old)?;
        let opened = rooms.unlock(&old, &self.ask)?;
        if self.again {
            return self.print_again(console, &old, &opened.key);
        }
        let algorithm = self.algorithm.map(Into::into);
        let new = new_key(algorithm.unwrap_or(old.facts.public.algorithm()))?;
        let new_id = self.new_id.as_deref().unwrap_or(&self.id);
        require_fitting(new_id, &new.public())?;
        let at = clock::now();
        let rotation = Rotation {
            old_id: self.id.clone(),
            old: old.facts.public,
            new_id: new_id.to_owned(),
            new: new.public(),
            grace: days_after(at, self.grace),
        };
        let proof = rotation.prove(&opened.key);
        let signer = Signer {
            key: &new,
            pkid: new_id,
            at,
            key_block: &key_block(new_id, &new.public(), Some((&rotation, &proof))),
        };
        let text = sign(&signer, &announcement(&self.parties, &signer, &rotation))?;
        let handover = KeyHandover {
            at,
            grace_until: rotation.grace,
            proof: base64::encode(&proof),
        };
        let passphrase = opened.passphrase.as_ref().map(|p| p.as_str());
        let stored = rooms
            .keys
            .rotate(&old, new_id, &new, passphrase, handover)?;
        take_over(&rooms, &text, at)?;
        console.data(&text)?;
        advise(console, &stored, &rotation)?;
        Ok(Exit::SUCCESS)
    }
}

impl RotateKey {
    fn print_again(
        &self,
        console: &mut Console,
        stored: &StoredKey,
        key: &PrivateKey,
    ) -> Result<Exit, Failure> {
        let Some((rotation, _)) = rotation_of(stored) else {
            let message = format!("the key {} replaced no other key", self.id);
            return Err(Failure::denied(message));
        };
        let signer = Signer {
            key,
            pkid: &self.id,
            at: clock::now(),
            key_block: &block_of(stored),
        };
        let text = sign(&signer, &announcement(&self.parties, &signer, &rotation))?;
        console.data(&text)?;
        advise(console, stored, &rotation)?;
        Ok(Exit::SUCCESS)
    }
}

fn announcement(parties: &Parties, signer: &Signer<'_>, rotation: &Rotation) -> Builder {
    let body = format!(
        "The key of {} is replaced by another one, under the id {}.\nIts fingerprint is {}.\n\
         Signatures of the old key after {} are not valid.\n\n\
         To trust the new key: crosstalk trust import FILE, with this message in the file.",
        rotation.old_id,
        rotation.new_id,
        rotation.new.fingerprint(),
        rotation.grace
    );
    parties
        .envelope(signer, "new key")
        .intent("BROADCAST")
        .body(body)
}

/// If the old key is pinned here, pins the new one.
fn take_over(
    rooms: &KeysAndTrust,
    text: &str,
    at: crosstalk_envelope::Timestamp,
) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    let mut known = rooms.trust()?;
    if learn(&document, &mut known, &VerifyContext::at(at)).is_err() {
        return Ok(());
    }
    rooms.change_trust(|trust| drop(learn(&document, trust, &VerifyContext::at(at))))
}

fn advise(console: &mut Console, new: &StoredKey, rotation: &Rotation) -> Result<(), Failure> {
    let advice = format!(
        "Send this message to everyone who has pinned {}. Signatures of the old key after {} are not valid. Back up the new \
         key: crosstalk key backup {} --to FILE. If somebody else may have the old key, revoke it as well.",
        rotation.old_id, rotation.grace, new.facts.id
    );
    console.talk(&format!(
        "{}  {}\n{}\n",
        styled(BOLD, &escape(&new.facts.id)),
        new.facts.public.fingerprint(),
        wrap(&escape(&advice), 0, 0)
    ))
}

/// Revoke a key, and print the message that says so
///
/// Everyone who imports the message with `crosstalk trust import` sees `revoked` on everything that the key ever signed. A
/// revocation is final.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key revoke alice@example.com --reason 'the laptop was stolen' > revocation.txt\n  crosstalk key revoke alice@example.com --old > revocation.txt"
)]
struct RevokeKey {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for those who read the message
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The key that was replaced, where it has the id of the new one
    #[arg(long)]
    old: bool,
    #[command(flatten)]
    parties: Parties,
    #[command(flatten)]
    ask: Passphrase,
}

impl RevokeKey {
    fn run(mut self, console: &mut Console) -> Result<(), Failure> {
        self.parties = self.parties.or_configured(&Settings::open(console)?);
        let rooms = KeysAndTrust::open()?;
        let key = self.key(&rooms)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        // Who revokes again says what was said the first time.
        let (at, reason) = match &key.facts.revoked {
            Some(revoked) => (revoked.at, revoked.reason.clone()),
            None => (clock::now(), self.reason.clone()),
        };
        let signer = Signer {
            key: &opened.key,
            pkid: &self.id,
            at: clock::now(),
            key_block: &block_of(&key),
        };
        let text = sign(&signer, &self.message(&signer, &key, at, reason.as_deref()))?;
        let document = Document::parse(&text, Reading::Strict);
        let question = VerifyContext::at(signer.at);
        if learn(&document, &mut Trust::default(), &question).is_err() {
            return Err(Failure::failed(
                "the revocation does not verify, so it is not printed: this is a fault of the program",
            ));
        }
        rooms.keys.revoke(&key, at, reason.as_deref())?;
        rooms.change_trust(|trust| drop(learn(&document, trust, &question)))?;
        console.data(&text)?;
        let advice = format!(
            "Send this message to everybody, over every channel that you have, and remove the key \
             from DNS. Then create a new one, under a new id, and let people compare its \
             fingerprint. A relay accepts this message from {}: --from names another sender that \
             your credential there speaks for. The revocation of {} is final.",
            document.sender(),
            self.id
        );
        let word = styled(RED, "revoked");
        console.talk(&format!(
            "{word}  {}  {}\n{}\n",
            escape(&self.id),
            key.facts.public.fingerprint(),
            wrap(&escape(&advice), 0, 0)
        ))
    }

    fn key(&self, rooms: &KeysAndTrust) -> Result<StoredKey, Failure> {
        let current = rooms.keys.find(&self.id)?;
        if !self.old || current.facts.retired.is_some() {
            return Ok(current);
        }
        let listing = rooms.keys.list()?;
        let mut replaced = listing
            .of_id(&self.id)
            .filter(|k| k.facts.retired.is_some());
        // The last one that was replaced, if there are several.
        let first = replaced.next();
        let last = replaced.fold(first, |last, key| match last {
            Some(last) if last.facts.created > key.facts.created => Some(last),
            _ => Some(key),
        });
        last.cloned().ok_or_else(|| {
            Failure::failed(format!("no key of {} was replaced by another one", self.id))
        })
    }

    fn message(
        &self,
        signer: &Signer<'_>,
        key: &StoredKey,
        at: crosstalk_envelope::Timestamp,
        reason: Option<&str>,
    ) -> Builder {
        let builder = self
            .parties
            .envelope(signer, "revoked key")
            .intent("REVOKE")
            .meta("revocation", "Key-ID", &self.id)
            .meta("revocation", "Public-Key", key.facts.public.record());
        let builder = match reason {
            Some(reason) => builder.meta("revocation", "Reason", reason),
            None => builder,
        };
        builder
            .meta("revocation", "Effective", at.to_string())
            .body(format!(
                "Do not trust this key any more: {}\n\n\
                 To distrust it: crosstalk trust import FILE, with this message in the file.",
                key.facts.public.fingerprint()
            ))
    }
}

/// Set, change or remove the passphrase of a key
///
/// Backups keep the passphrase that they were made with. Scripts give the new one in CROSSTALK_NEW_PASSPHRASE or
/// with --new-passphrase-file.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk key passphrase alice@example.com\n  crosstalk key passphrase alice@example.com --remove"
)]
struct ChangePassphrase {
    /// The id
    #[arg(value_name = "ID")]
    id: String,
    /// Keep the key without a passphrase: anyone who can read the file can sign
    #[arg(long)]
    remove: bool,
    #[command(flatten)]
    ask: Passphrase,
    /// Read the new passphrase from the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    new_passphrase_file: Option<PathBuf>,
}

impl ChangePassphrase {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let rooms = KeysAndTrust::open()?;
        let key = rooms.keys.find(&self.id)?;
        let opened = rooms.unlock(&key, &self.ask)?;
        let new = match self.remove {
            true => None,
            false => Some(
                choose_new(self.new_passphrase_file.as_deref(), &self.id)
                    .map_err(|e| Failure::io("the passphrase", e))?,
            ),
        };
        let text = new.as_ref().map(|p| p.as_str());
        rooms.keys.set_passphrase(&key, &opened.key, text)?;
        let id = escape(&self.id);
        console.talk(&match new {
            Some(_) => format!("{id} is encrypted with the new passphrase\n"),
            None => format!("{id} has no passphrase: anyone who can read the file can sign\n"),
        })
    }
}

const NAMES: usize = 13;

/// The public facts of a key, one per line.
fn describe_key(rooms: &KeysAndTrust, key: &StoredKey) -> Result<String, KeyFileError> {
    let facts = &key.facts;
    let mut out = String::new();
    let mut line = |name: &str, value: &str| out.push_str(&field(name, NAMES, value));
    line("id", &facts.id);
    line("fingerprint", &facts.public.fingerprint().to_string());
    line("algorithm", facts.public.algorithm().as_str());
    line("record", &facts.public.record());
    line("did:key", &facts.public.to_did());
    line("created", &facts.created.to_string());
    if let Some(rotation) = &facts.rotation {
        let old = rotation.replaces_key.fingerprint();
        line("replaces", &format!("{} ({old})", rotation.replaces));
    }
    if let Some(retired) = &facts.retired {
        let text = format!(
            "on {} by {}; signatures after {} are not valid",
            retired.at, retired.by, retired.grace
        );
        line("replaced", &text);
    }
    if let Some(revoked) = &facts.revoked {
        let reason = revoked.reason.as_ref();
        let reason = reason.map_or(String::new(), |r| format!(": {r}"));
        line("revoked", &format!("on {}{reason}", revoked.at));
    }
    let passphrase = match rooms.keys.is_encrypted(key)? {
        true => "yes",
        false => "no: anyone who can read the file can sign",
    };
    line("passphrase", passphrase);
    line("file", &key.path().display().to_string());
    Ok(out)
}

/// The state of a key in a word, with its style.
fn describe_state(key: &StoredKey) -> String {
    let word = state_of(key);
    let style = match word {
        "revoked" => RED,
        "replaced" => YELLOW,
        _ => GREEN,
    };
    styled(style, word)
}
