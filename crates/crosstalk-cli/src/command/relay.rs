//! `crosstalk relay`: by which relays messages go, and sending one again.

mod deliver;
mod fetch;

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::schema::RELAYS;
use crate::service::settings::{self, Config, RelaySetting, base_url, is_open};
use crate::{json, shell, view};
use clap::{Args, Subcommand};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::Pattern;
use crosstalk_store::{ConfigFile, Home};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Say by which relays your messages go
///
/// They are [[relay]] tables of the settings. A message goes to the relay whose pattern fits its receiver best: an address
/// before a beginning, a longer beginning before a shorter one, in whatever order they were added. Relays of the profile come
/// before the others. Without a relay, nothing leaves this machine unless --relay says so.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay add http://127.0.0.1:8799\n  crosstalk relay add https://relay.example --for 'claude://*' --token-file relay.token\n  crosstalk relay list"
)]
pub(crate) struct Relay {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Add(Add),
    List(List),
    Remove(Remove),
    Deliver(deliver::Deliver),
    Fetch(fetch::Fetch),
}

/// Send messages by a relay from now on
///
/// A relay of the same URL is changed. With --profile, it counts for that profile.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay add http://127.0.0.1:8799\n  crosstalk relay add https://relay.example --for 'claude://*' CHATGPT --token-file ~/relay.token"
)]
struct Add {
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

/// List the relays of the settings, and for which addresses each of them is
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk relay list\n  crosstalk relay list --json | jq -r '.relays[].url'"
)]
struct List {
    /// Print JSON of the form crosstalk.relays/1
    #[arg(long)]
    json: bool,
}

/// Take a relay out of the settings
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk relay remove http://127.0.0.1:8799\n\nExit codes: 0 taken out, 1 it is not in the settings."
)]
struct Remove {
    /// Where it is
    #[arg(value_name = "URL", value_parser = base_url)]
    url: String,
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::parse(text).map_err(|e| e.to_string())
}

impl Relay {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self.action {
            Action::Add(action) => action.run(console),
            Action::List(action) => action.run(console),
            Action::Remove(action) => action.run(console),
            Action::Deliver(action) => action.run(console),
            Action::Fetch(action) => action.run(console),
        }
    }
}

impl Add {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
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
        let config = Config::open(console)?;
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
            console.warning("what goes to this relay, the token included, can be read on its way: use https if you can")?;
        }
        let config = Config::open(console)?;
        console.talk(&format!("{}\n", wrap(&after_add(&relay, &config), 0, 0)))?;
        if let Some(replaced) = replaced {
            console.note(&format!("before, it was for {replaced}"))?;
        }
        Ok(Exit::SUCCESS)
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
fn after_add(added: &RelaySetting, config: &Config) -> String {
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
fn after_remove(url: &str, config: &Config) -> String {
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

impl List {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let config = Config::open(console)?;
        if self.json {
            let relays: Vec<Value> = config.relays().iter().map(report).collect();
            console.data(json::pretty(&json!({"schema": RELAYS, "relays": relays}))?)?;
            return Ok(Exit::SUCCESS);
        }
        if config.relays().is_empty() {
            console.talk("no relay is configured: nothing leaves this machine; `crosstalk relay add URL` changes that\n")?;
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
        Ok(Exit::SUCCESS)
    }
}

fn report(relay: &RelaySetting) -> Value {
    json!({
        "url": relay.url,
        "for": relay.patterns(),
        "token_file": relay.token_file.as_ref().map(|f| f.to_string_lossy()),
        "profile": relay.profile,
        "line": relay.line,
    })
}

impl Remove {
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
                let config = Config::open(console)?;
                let sentence = after_remove(&self.url, &config);
                console.talk(&format!("{}\n", wrap(&sentence, 0, 0)))?;
                Ok(Exit::SUCCESS)
            }
            false => Err(Failure::Failed(format!(
                "{} is not in the settings: `crosstalk relay list` shows what is",
                self.url
            ))),
        }
    }
}
