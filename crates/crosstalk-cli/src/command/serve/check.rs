//! `crosstalk serve --check`: whether a relay would start as it is configured. Nothing is started or changed.

use super::health::Place;
use super::{Overrides, bind, require_credentials, work_folder};
use crate::console::{Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::schema::SERVE_CHECK;
use crate::service::relay::data::Data;
use crate::service::relay::log;
use crate::service::relay::start::{active, resolver};
use crate::{clock, json};
use crosstalk_envelope::unicode::escape;
use crosstalk_relay::config::Config;
use crosstalk_relay::{delivery, server};
use crosstalk_store::SqliteStore;
use serde_json::{Value, json};
use std::path::Path;

/// One thing that was checked.
struct Check {
    what: &'static str,
    file: Option<String>,
    /// Whether the relay does not start without it.
    is_needed: bool,
    /// What is good about it, or what is wrong.
    result: Result<String, Failure>,
}

impl Check {
    /// Something without which a relay does not start.
    fn needed(what: &'static str, file: Option<&Path>, result: Result<String, Failure>) -> Self {
        Self {
            what,
            file: file.map(|f| f.to_string_lossy().into_owned()),
            is_needed: true,
            result,
        }
    }
}

/// The start that is checked.
pub(super) struct Given<'g> {
    pub(super) data: &'g Data,
    pub(super) overrides: &'g Overrides,
    /// How much would be logged.
    pub(super) level: &'g str,
    /// The command that makes a token.
    pub(super) create: &'g str,
}

/// Checks everything, tells it, and ends with the code that the start would end with.
pub(super) fn run(
    given: &Given<'_>,
    as_json: bool,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let checks = checks(given);
    let failed = |c: &Check| c.result.as_ref().err().map(Failure::exit);
    let needed = checks.iter().filter(|c| c.is_needed);
    let exit = needed.filter_map(failed).next().unwrap_or(Exit::SUCCESS);
    if as_json {
        let reports: Vec<Value> = checks.iter().map(report).collect();
        let is_ready = exit == Exit::SUCCESS;
        console.data(json::pretty(
            &json!({"schema": SERVE_CHECK, "ready": is_ready, "checks": reports}),
        )?)?;
        return Ok(exit);
    }
    for check in &checks {
        let file = check
            .file
            .as_deref()
            .map_or(String::new(), |f| format!(" {}", shown_path(f)));
        let (word, said) = match &check.result {
            Ok(said) => (styled(GREEN, "good"), said.clone()),
            Err(fault) if check.is_needed => {
                (format!("{} ", styled(RED, "bad")), fault.to_string())
            }
            Err(fault) => (styled(YELLOW, "warn"), fault.to_string()),
        };
        console.show(&format!("{word} {}{file}: {said}\n", check.what))?;
    }
    Ok(exit)
}

fn report(check: &Check) -> Value {
    json!({
        "what": check.what,
        "file": check.file,
        "good": check.result.is_ok(),
        "needed": check.is_needed,
        "message": match &check.result {
            Ok(said) => said.clone(),
            Err(fault) => fault.to_string(),
        },
    })
}

/// Everything that a start looks at, in its order, and then what routes need.
fn checks(given: &Given<'_>) -> Vec<Check> {
    let Given {
        data,
        overrides,
        level,
        create,
    } = given;
    let file = overrides.file.clone().unwrap_or_else(|| data.config());
    let (config, result) = match overrides.config(data) {
        Ok(config) if !file.exists() => {
            (Some(config), Ok("there is none; defaults apply".to_owned()))
        }
        Ok(config) => {
            let said = format!("the relay {} listens on {}", config.name, config.listen);
            (Some(config), Ok(said))
        }
        Err(fault) => (None, Err(fault)),
    };
    let store = data.store();
    let mut checks = vec![
        Check::needed("configuration", Some(&file), result),
        Check::needed("data folder", Some(data.folder()), folder(data)),
        Check::needed(
            "log level",
            None,
            log::check(level).map(|()| (*level).to_owned()),
        ),
        Check::needed("store", Some(&store), self::store(data)),
    ];
    // A configuration that can't be read says nothing about the rest.
    if let Some(config) = &config {
        let change = overrides.change(data, &config.name);
        checks.extend(change.map(|change| Check {
            what: "last start",
            file: None,
            is_needed: false,
            result: Err(Failure::Failed(change)),
        }));
        let listen = listen(data, config, create);
        checks.push(Check::needed("listen address", None, listen));
        if let Some(files) = &config.tls {
            let result = certificate(files);
            let file = Some(files.certificate.as_path());
            checks.push(Check::needed("certificate and key", file, result));
        }
        checks.push(Check::needed("key", None, key(data, config)));
        match resolver(config) {
            Ok(None) => {}
            Ok(Some(_)) => {
                let said = "other domains can be looked up".to_owned();
                checks.push(Check::needed("name servers", None, Ok(said)));
            }
            Err(fault) => checks.push(Check::needed("name servers", None, Err(fault))),
        }
    }
    checks.push(trust(data));
    if let Some(config) = &config {
        checks.extend(config.doubts().into_iter().map(|doubt| Check {
            what: "configuration",
            file: Some(file.to_string_lossy().into_owned()),
            is_needed: false,
            result: Err(Failure::Failed(escape(&doubt).into_owned())),
        }));
        checks.extend(routes(data, config));
    }
    checks
}

/// Whether the relay could write to its folder.
fn folder(data: &Data) -> Result<String, Failure> {
    let folder = data.folder();
    let there = folder.ancestors().find(|f| f.exists()).unwrap_or(folder);
    // The file has no name, and is gone with its end.
    tempfile::tempfile_in(there).map_err(|e| Failure::at(there, e))?;
    Ok(match (there == folder, data.is_running()) {
        (true, Ok(true)) => {
            "a relay runs on it now: stop that one before you start another".to_owned()
        }
        (true, _) => "it can be written".to_owned(),
        (false, _) => "it is made at the start".to_owned(),
    })
}

/// Whether the store is one that this program opens.
fn store(data: &Data) -> Result<String, Failure> {
    let store = data.store();
    // Opening an older store would bring it to this version.
    if SqliteStore::is_older(&store)? {
        return Ok("it is of an older version, and is brought to this one at the start".to_owned());
    }
    Ok(match SqliteStore::open_existing(&store)? {
        Some(_) => "it can be opened".to_owned(),
        None => "it is made at the start".to_owned(),
    })
}

/// Certificate and key.
fn certificate(files: &crosstalk_relay::config::Tls) -> Result<String, Failure> {
    let tls = server::tls(files).map_err(|e| Failure::Failed(format!("TLS: {e}")))?;
    match tls.expires_at() {
        Some(end) if end <= clock::now() => Err(Failure::Failed(format!(
            "the certificate expired on {end}, and no client accepts it: replace it"
        ))),
        Some(end) => Ok(format!(
            "they fit each other; the certificate expires on {end}"
        )),
        None => Ok("they fit each other".to_owned()),
    }
}

/// Whether the relay can listen, and whether others who reach it have to say who they are.
fn listen(data: &Data, config: &Config, create: &str) -> Result<String, Failure> {
    let who = credentials(data, config, create)?;
    let listen = config.listen;
    let Err(fault) = bind(listen) else {
        return Ok(who);
    };
    let said = data.last_said().ok().flatten().unwrap_or_default();
    let is_held = Place::parse(&said).is_some_and(|place| place.holds(listen));
    match is_held && data.is_running().unwrap_or(false) {
        true => Ok(format!(
            "{who}; the relay that runs on this data folder listens there now"
        )),
        false => Err(fault),
    }
}

fn credentials(data: &Data, config: &Config, create: &str) -> Result<String, Failure> {
    let listen = config.listen;
    if listen.ip().is_loopback() {
        return Ok(format!("{listen} is reached from this machine alone"));
    }
    let store = data.store();
    if SqliteStore::is_older(&store)? {
        return Ok(format!(
            "{listen}; the store is of an older version, and its tokens are looked at when the relay starts"
        ));
    }
    let tokens = match SqliteStore::open_existing(&store)? {
        Some(store) => active(&store)?,
        None => 0,
    };
    require_credentials(config, tokens, create)?;
    Ok(format!(
        "{listen}, for those who have one of {tokens} active tokens"
    ))
}

/// Whether the relay has a key that it can use.
fn key(data: &Data, config: &Config) -> Result<String, Failure> {
    let name = escape(&config.name);
    Ok(match data.find_key(&config.name)? {
        Some(_) => format!("the relay signs as {name}"),
        None => {
            let store = data.store();
            // A store that can't be opened is named elsewhere.
            if !SqliteStore::is_older(&store).unwrap_or(true)
                && let Ok(Some(store)) = SqliteStore::open_existing(&store)
            {
                data.require_log_key(&config.name, &store)?;
            }
            format!("there is none for {name}; one is made at the start")
        }
    })
}

fn trust(data: &Data) -> Check {
    let file = data.trust();
    let result = match file.read() {
        Ok(trust) => Ok(format!("{} keys", trust.keys().len())),
        Err(fault) => Err(fault.into()),
    };
    Check::needed("trust file", Some(file.path()), result)
}

/// Programs, folders and tokens of routes. The relay starts without them, and messages wait.
fn routes(data: &Data, config: &Config) -> Vec<Check> {
    let missing = delivery::missing(config, &work_folder(data));
    if missing.is_empty() {
        let count = config.routes.len() + config.watches.len();
        let said = format!("what {count} of them need is there");
        let check = Check::needed("routes", None, Ok(said));
        return (count > 0).then_some(check).into_iter().collect();
    }
    let check = |m: delivery::Missing| Check {
        what: "routes",
        file: None,
        is_needed: false,
        result: Err(Failure::Failed(format!(
            "{} {}: {}",
            m.what,
            escape(&m.name),
            escape(&m.reason)
        ))),
    };
    missing.into_iter().map(check).collect()
}
