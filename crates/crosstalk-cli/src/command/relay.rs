//! `crosstalk relay`: the relays of the settings, and handing messages and files to them.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::count;
use crate::report::{RelaySettingReport, RelaysReport};
use crate::schema::RELAYS;
use crate::service::compose::attached;
use crate::service::lookup;
use crate::service::relay::outbox::{DueMessage, Outbox};
use crate::service::relay::remote::{RelayArgument, Remote};
use crate::service::relay::send::{Attached, Submission};
use crate::service::settings::{self, RelaySetting, Settings, base_url, is_open};
use crate::service::workspace::Workspace;
use crate::{shell, view};
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::relay::Pattern;
use crosstalk_store::{ConfigFile, Home};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

group! {
    /// Choose the relays for your messages
    ///
    /// The relays are [[relay]] tables of the settings. A message goes to the relay with the most specific pattern for its
    /// receiver: an address before a beginning, a longer beginning before a shorter one, whatever the order of the relays. Relays
    /// of the profile come before the others. Without a relay, no message leaves this machine unless --relay names one.
    #[command(
        after_help = "Examples:\n  crosstalk relay add http://127.0.0.1:8799\n  crosstalk relay add https://relay.example --for 'claude://*' --token-file relay.token\n  crosstalk relay list"
    )]
    Relay {
        Add(AddRelay),
        List(ListRelays),
        Remove(RemoveRelay),
        Deliver(DeliverMessage),
        Fetch(FetchFile),
    }
}

/// Send messages by a relay from now on
///
/// Changes a relay with the same URL. With --profile, adds it to that profile.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay add http://127.0.0.1:8799\n  crosstalk relay add https://relay.example --for 'claude://*' CHATGPT --token-file ~/relay.token"
)]
struct AddRelay {
    /// Where it is, such as https://relay.example
    #[arg(value_name = "URL", value_parser = base_url)]
    url: String,
    /// For which addresses: one, or the beginning of some and `*`; may be given again. Without it, for all
    #[arg(long = "for", value_name = "PATTERN", num_args = 1.., value_parser = pattern)]
    addresses: Vec<Pattern>,
    /// The file with the token, as `crosstalk token create` prints it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// List the relays of the settings, with their addresses
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay list\n  crosstalk relay list --json | jq -r '.relays[].url'"
)]
struct ListRelays {
    /// Print JSON of the form crosstalk.relays/1
    #[arg(long)]
    json: bool,
}

/// Remove a relay from the settings
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk relay remove http://127.0.0.1:8799\n\nExit codes: 0 removed, 1 it is not in the settings."
)]
struct RemoveRelay {
    /// Where it is
    #[arg(value_name = "URL", value_parser = base_url)]
    url: String,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text).map_err(|e| e.to_string())
}

impl AddRelay {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let token_file = match &self.token_file {
            None => None,
            Some(file) => {
                // A token that can't be read now won't be read later.
                crate::service::relay::remote::read_token(file)?;
                let whole = std::path::absolute(file);
                Some(whole.map_err(|e| Failure::at(file, e))?)
            }
        };
        let profile = console.profile().map(str::to_owned);
        let config = Settings::open(console)?;
        let is_it = |r: &&RelaySetting| r.url == self.url && r.profile == profile;
        let before = config.relays().iter().rfind(is_it);
        let addresses = match self.addresses.is_empty() {
            true => vec![Pattern::all()],
            false => with_earlier(self.addresses, before),
        };
        let relay = RelaySetting {
            profile,
            url: self.url,
            token_file: token_file.or_else(|| before?.token_file.clone()),
            addresses,
            line: 0,
        };
        let replaced = before.filter(|before| {
            let stays = |p: &String| relay.patterns().contains(p);
            !relay.is_for_all() && !before.patterns().iter().all(stays)
        });
        let replaced = replaced.map(|before| view::names(&before.patterns()));
        let file = ConfigFile::new(&Home::from_env()?);
        file.update(|text| {
            let after = settings::put_relay(text, &relay)?;
            settings::check(&after, file.path())?;
            Ok::<_, Failure>(Some(after))
        })?;
        if is_open(&relay.url) {
            console.warning("others can read the messages to this relay, and the token, on their way: use https if you can")?;
        }
        let config = Settings::open(console)?;
        console.tell(&after_add(&relay, &config))?;
        if let Some(replaced) = replaced {
            console.note(&format!("it was for {replaced} before"))?;
        }
        Ok(())
    }
}

/// The addresses that a relay is for when more are added. One that was for all is for the named ones alone.
fn with_earlier(added: Vec<Pattern>, before: Option<&RelaySetting>) -> Vec<Pattern> {
    let earlier = before.filter(|r| !r.is_for_all());
    let mut all = earlier.map_or_else(Vec::new, |r| r.addresses.clone());
    for pattern in added {
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

/// Where messages go now that a relay was added.
fn after_add(added: &RelaySetting, config: &Settings) -> String {
    let url = escape(&added.url).into_owned();
    let others = || config.relays().iter().filter(|r| r.url != added.url);
    let is_first = |r: &&RelaySetting| r.is_for_all() && r.profile == added.profile;
    let first = config.relays().iter().find(is_first);
    if let Some(first) = first.filter(|r| added.is_for_all() && r.url != added.url) {
        return format!(
            "All messages still go to {first}, which was added before {new}: `crosstalk relay remove {url}` lets them go to the new one.",
            first = escape(&first.url),
            new = url,
            url = shell::word(&first.url)
        );
    }
    if added.is_for_all() {
        let apart: Vec<String> = others()
            .filter(|r| !r.is_for_all())
            .flat_map(RelaySetting::patterns)
            .collect();
        return match apart.is_empty() {
            true => format!("All messages go to {url}."),
            false => format!(
                "All messages go to {url}, except those to {}, which have a relay of their own: `crosstalk relay list` shows it.",
                view::names(&apart)
            ),
        };
    }
    let rest = match (others().find(|r| r.is_for_all()), others().next()) {
        (Some(all), _) if others().count() == 1 => {
            format!("all others go to {}", escape(&all.url))
        }
        (Some(_), _) => "`crosstalk relay list` shows where others go".to_owned(),
        (None, Some(_)) => "`crosstalk relay list` shows where others go".to_owned(),
        (None, None) => "all others stay on this machine".to_owned(),
    };
    let whom = view::names(&added.patterns());
    format!("Messages to {whom} go to {url}; {rest}.")
}

/// Where messages go now that a relay was removed.
fn after_remove(url: &str, config: &Settings) -> String {
    let left = config.relays();
    let rest = match (left.iter().find(|r| r.is_for_all()), left.first()) {
        (Some(all), _) => format!(
            "messages without a relay of their own go to {}",
            escape(&all.url)
        ),
        (None, Some(_)) => {
            "`crosstalk relay list` shows which messages still go to a relay".to_owned()
        }
        (None, None) => "nothing leaves this machine".to_owned(),
    };
    format!("No message goes to {} any more; {rest}.", escape(url))
}

impl ListRelays {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let config = Settings::open(console)?;
        if self.json {
            let relays = config.relays().iter().map(report).collect();
            return console.report(RELAYS, &RelaysReport { relays });
        }
        if config.relays().is_empty() {
            console.talk("no relay is configured, so no message leaves this machine; `crosstalk relay add URL` adds one\n")?;
        }
        for relay in config.relays() {
            let mut more = relay.patterns().join(", ");
            if let Some(file) = &relay.token_file {
                more.push_str(&format!("  token in {}", file.display()));
            }
            if let Some(profile) = &relay.profile {
                more.push_str(&format!("  profile {profile}"));
            }
            let url = styled(BOLD, &escape(&relay.url));
            console.show(&format!("{url}  {}\n", styled(DIM, &escape(&more))))?;
        }
        Ok(())
    }
}

fn report(relay: &RelaySetting) -> RelaySettingReport {
    let token_file = relay.token_file.as_ref();
    RelaySettingReport {
        url: relay.url.clone(),
        addresses: relay.patterns(),
        token_file: token_file.map(|f| f.to_string_lossy().into_owned()),
        profile: relay.profile.clone(),
        line: relay.line,
    }
}

impl RemoveRelay {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let file = ConfigFile::new(&Home::from_env()?);
        let profile = console.profile();
        let was_there = file.update(|text| {
            let after = settings::take_relay(text, &self.url, profile)?;
            if let Some(after) = &after {
                settings::check(after, file.path())?;
            }
            Ok::<_, Failure>(after)
        })?;
        match was_there {
            true => {
                let config = Settings::open(console)?;
                let sentence = after_remove(&self.url, &config);
                console.tell(&sentence)?;
                Ok(Exit::SUCCESS)
            }
            false => Err(
                Failure::failed(format!("{} is not in the settings", self.url))
                    .help("`crosstalk relay list` lists the relays"),
            ),
        }
    }
}

/// Fetch a file that a message names from a relay
///
/// `meta: attachments` of the message has its digest; the command checks the file against it. It does not use the name in the
/// message: --out says where the file goes.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk show 01K74V8Q --envelope | grep digest=\n  crosstalk relay fetch sha256:2cf24dba… --out plan.md\n  crosstalk relay fetch sha256:2cf24dba… | less\n\nExit codes: 0 fetched, 1 the file of --out is there already, 10 to 17 the relay\nrejects a request."
)]
struct FetchFile {
    /// The digest: sha256: and 64 hex digits
    #[arg(value_name = "DIGEST", value_parser = digest)]
    digest: Digest,
    /// Write it to this new file; else to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    through: RelayArgument,
}

fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| "write it as sha256: and 64 hex digits".to_owned())
}

impl FetchFile {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let config = Settings::open(console)?;
        let remote = self.through.connect(&config, None)?;
        let bytes = remote.blob(self.digest)?;
        match &self.out {
            Some(path) => {
                File::create_new(path)
                    .and_then(|mut file| file.write_all(&bytes))
                    .map_err(|e| Failure::at(path, e))?;
                console.talk(&format!(
                    "{}: {}, as the digest says\n",
                    shown_path(&path.to_string_lossy()),
                    count(bytes.len(), "byte")
                ))?;
            }
            None if console.is_terminal() => console.text(&String::from_utf8_lossy(&bytes))?,
            None => console.data(&bytes)?,
        }
        Ok(())
    }
}

/// Hand messages that are kept here to a relay, for the first time or again
///
/// Without --relay, a message goes to the relay for which it was sent, else to that of the settings. A relay accepts a message
/// once, however often it comes: a known message gets the same answer.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay deliver last\n  crosstalk relay deliver --all\n  crosstalk relay deliver 01K74V8Q --wait 60\n  crosstalk relay deliver 01K74V8Q --relay https://relay.example --attach plan.md\n\nExit codes: 0 handed over, 10 to 17 the relay rejects a request; 16 no answer in\ntime. Of several, the largest one."
)]
struct DeliverMessage {
    /// The messages: ids or the beginnings of them, or `last`
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Every message that was sent for a relay and is not there yet
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Wait up to this many seconds for the answer, show it and keep it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait: Option<u64>,
    /// Upload a file that the message names; may be given again
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    #[command(flatten)]
    through: RelayArgument,
}

impl DeliverMessage {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let files: Vec<Attached> = self
            .attach
            .iter()
            .map(|path| attached(path))
            .collect::<Result<_, _>>()?;
        let outbox = Outbox::of(&workspace);
        let mut exit = Exit::SUCCESS;
        let store = workspace.kept(console)?;
        let mut records = Vec::new();
        for reference in &self.ids {
            records.push(lookup::message(&store, reference)?);
        }
        for id in outbox.all().iter().filter(|_| self.all) {
            match store.message(id)? {
                Some(record) => records.push(record),
                // It was forgotten here.
                None => outbox.remove(id)?,
            }
        }
        if records.is_empty() {
            console.talk("everything was handed over\n")?;
        }
        for record in records.into_iter().map(lookup::veiled) {
            let short = view::short(&store, &record.id)?;
            if let Err(fault) = lookup::require_text(&record) {
                // It never will be.
                outbox.remove(&record.id)?;
                console.failure(&fault)?;
                exit = exit.worst(fault.exit());
                continue;
            }
            let due = outbox.find(&record.id);
            let through = match &due {
                Some(due) => self.through.or(&due.relay, due.token_file.as_deref()),
                None => self.through.clone(),
            };
            let remote = through.connect(&workspace.config, Some(&record.receiver))?;
            let mut files = files.clone();
            files.extend(due.iter().flat_map(DueMessage::files));
            tell_missing(console, &remote, &record.text, &files)?;
            let parcel = Submission {
                text: &record.text,
                files: &files,
                wait: self.wait,
            };
            exit = exit.worst(parcel.hand(console, &workspace, &remote, &short)?);
        }
        Ok(exit)
    }
}

/// Warns about attachments that are missing at the relay.
fn tell_missing(
    console: &mut Console,
    remote: &Remote,
    text: &str,
    files: &[Attached],
) -> Result<(), Failure> {
    let document = Document::parse(text, Reading::Strict);
    for (_, attachment) in document.envelope().attachments() {
        let Ok(attachment) = attachment else { continue };
        let digest = attachment.digest.and_then(Digest::parse);
        let Some(digest) = digest.filter(|_| attachment.data.is_none()) else {
            continue;
        };
        let is_given = files.iter().any(|file| file.digest == digest);
        // A relay that can't be reached is told about when the message is handed over.
        if is_given || remote.has_blob(digest).unwrap_or(true) {
            continue;
        }
        console.warning(&format!(
            "the file {} ({digest}) is not at the relay, and the recipient can't fetch it: hand it over with \
             --attach FILE",
            attachment.name.unwrap_or("of the message")
        ))?;
    }
    Ok(())
}
