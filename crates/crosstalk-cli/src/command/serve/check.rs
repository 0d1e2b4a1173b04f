//! `crosstalk serve --check` and `--health`: whether a relay would start, and whether it is ready. Nothing is changed.

use super::{StartOptions, bind, require_credentials};
use crate::clock;
use crate::console::{Console, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::report::{ServeCheckReport, StartCheckReport};
use crate::schema::SERVE_CHECK;
use crate::service::relay::data::DataFolder;
use crate::service::relay::log;
use crate::service::relay::start::{count_active_tokens, resolver, work_folder};
use crosstalk_envelope::unicode::escape;
use crosstalk_relay::config::Config;
use crosstalk_relay::{delivery, server};
use crosstalk_store::SqliteStore;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// One check.
struct StartCheck {
    what: &'static str,
    file: Option<String>,
    /// Whether the relay needs it to start.
    is_needed: bool,
    /// The result in words.
    result: Result<String, Failure>,
}

impl StartCheck {
    /// A check of something that the relay needs to start.
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
pub(super) struct PlannedStart<'g> {
    pub(super) data: &'g DataFolder,
    pub(super) overrides: &'g StartOptions,
    /// The log level.
    pub(super) level: &'g str,
    /// The command that makes a token.
    pub(super) create: &'g str,
}

/// Runs all checks and returns the exit code that a start would have.
pub(super) fn run(
    given: &PlannedStart<'_>,
    as_json: bool,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let checks = checks(given);
    let failed = |c: &StartCheck| c.result.as_ref().err().map(Failure::exit);
    let needed = checks.iter().filter(|c| c.is_needed);
    let exit = needed.filter_map(failed).next().unwrap_or(Exit::SUCCESS);
    if as_json {
        let report = ServeCheckReport {
            ready: exit == Exit::SUCCESS,
            checks: checks.into_iter().map(report).collect(),
        };
        console.report(SERVE_CHECK, &report)?;
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

fn report(check: StartCheck) -> StartCheckReport {
    StartCheckReport {
        what: check.what,
        file: check.file,
        good: check.result.is_ok(),
        needed: check.is_needed,
        message: check.result.unwrap_or_else(|fault| fault.to_string()),
    }
}

/// The checks in the order of a start, then those of routes.
fn checks(given: &PlannedStart<'_>) -> Vec<StartCheck> {
    let PlannedStart {
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
        StartCheck::needed("configuration", Some(&file), result),
        StartCheck::needed("data folder", Some(data.folder()), folder(data)),
        StartCheck::needed(
            "log level",
            None,
            log::check(level).map(|()| (*level).to_owned()),
        ),
        StartCheck::needed("store", Some(&store), self::store(data)),
    ];
    // A configuration that can't be read says nothing about the rest.
    if let Some(config) = &config {
        let change = overrides.change(data, &config.name);
        checks.extend(change.map(|change| StartCheck {
            what: "last start",
            file: None,
            is_needed: false,
            result: Err(Failure::failed(change)),
        }));
        let listen = listen(data, config, create);
        checks.push(StartCheck::needed("listen address", None, listen));
        if let Some(files) = &config.tls {
            let result = certificate(files);
            let file = Some(files.certificate.as_path());
            checks.push(StartCheck::needed("certificate and key", file, result));
        }
        checks.push(StartCheck::needed("key", None, key(data, config)));
        match resolver(config) {
            Ok(None) => {}
            Ok(Some(_)) => {
                let said = "other domains can be looked up".to_owned();
                checks.push(StartCheck::needed("name servers", None, Ok(said)));
            }
            Err(fault) => checks.push(StartCheck::needed("name servers", None, Err(fault))),
        }
    }
    checks.push(trust(data));
    if let Some(config) = &config {
        checks.extend(config.doubts().into_iter().map(|doubt| StartCheck {
            what: "configuration",
            file: Some(file.to_string_lossy().into_owned()),
            is_needed: false,
            result: Err(Failure::failed(escape(&doubt).into_owned())),
        }));
        checks.extend(routes(data, config));
    }
    checks
}

/// Whether the relay could write to its folder.
fn folder(data: &DataFolder) -> Result<String, Failure> {
    let folder = data.folder();
    let there = folder.ancestors().find(|f| f.exists()).unwrap_or(folder);
    // The file has no name, and is gone with its end.
    tempfile::tempfile_in(there).map_err(|e| Failure::at(there, e))?;
    Ok(match (there == folder, data.is_running()) {
        (true, Ok(true)) => {
            "a relay runs on it now: stop that one before you start another".to_owned()
        }
        (true, _) => "it can be written".to_owned(),
        (false, _) => "it is created at the start".to_owned(),
    })
}

/// Whether the store is one that this program opens.
fn store(data: &DataFolder) -> Result<String, Failure> {
    let store = data.store();
    // Opening an older store would bring it to this version.
    if SqliteStore::is_older(&store)? {
        return Ok("it is of an older version, and is upgraded at the start".to_owned());
    }
    Ok(match SqliteStore::open_existing(&store)? {
        Some(_) => "it can be opened".to_owned(),
        None => "it is created at the start".to_owned(),
    })
}

fn certificate(files: &crosstalk_relay::config::Tls) -> Result<String, Failure> {
    let tls = server::tls(files).map_err(|e| Failure::failed(format!("TLS: {e}")))?;
    match tls.expires_at() {
        Some(end) if end <= clock::now() => Err(Failure::failed(format!(
            "the certificate expired on {end}, and no client accepts it"
        ))
        .help("replace it")),
        Some(end) => Ok(format!(
            "they fit each other; the certificate expires on {end}"
        )),
        None => Ok("they fit each other".to_owned()),
    }
}

/// Whether the relay can listen, and whether others who reach it have to say who they are.
fn listen(data: &DataFolder, config: &Config, create: &str) -> Result<String, Failure> {
    let who = credentials(data, config, create)?;
    let listen = config.listen;
    let Err(fault) = bind(listen) else {
        return Ok(who);
    };
    let said = data.last_said().ok().flatten().unwrap_or_default();
    let is_held = RelayAddress::parse(&said).is_some_and(|place| place.holds(listen));
    match is_held && data.is_running().unwrap_or(false) {
        true => Ok(format!(
            "{who}; the relay that runs on this data folder listens there now"
        )),
        false => Err(fault),
    }
}

fn credentials(data: &DataFolder, config: &Config, create: &str) -> Result<String, Failure> {
    let listen = config.listen;
    if listen.ip().is_loopback() {
        return Ok(format!("only this machine can reach {listen}"));
    }
    let store = data.store();
    if SqliteStore::is_older(&store)? {
        return Ok(format!(
            "{listen}; the store is of an older version, and the relay checks its tokens at the start"
        ));
    }
    let tokens = match SqliteStore::open_existing(&store)? {
        Some(store) => count_active_tokens(&store)?,
        None => 0,
    };
    require_credentials(config, tokens, create)?;
    Ok(format!(
        "{listen}, for the owners of {tokens} active tokens"
    ))
}

/// Whether the relay has a key that it can use.
fn key(data: &DataFolder, config: &Config) -> Result<String, Failure> {
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
            format!("there is none for {name}; one is created at the start")
        }
    })
}

fn trust(data: &DataFolder) -> StartCheck {
    let file = data.trust();
    let result = match file.read() {
        Ok(trust) => Ok(format!("{} keys", trust.keys().len())),
        Err(fault) => Err(fault.into()),
    };
    StartCheck::needed("trust file", Some(file.path()), result)
}

/// Programs, folders and tokens of routes. The relay starts without them, and messages wait.
fn routes(data: &DataFolder, config: &Config) -> Vec<StartCheck> {
    let missing = delivery::missing(config, &work_folder(data));
    if missing.is_empty() {
        let count = config.routes.len() + config.watches.len();
        let said = format!("what {count} of them need is there");
        let check = StartCheck::needed("routes", None, Ok(said));
        return (count > 0).then_some(check).into_iter().collect();
    }
    let check = |m: delivery::Missing| StartCheck {
        what: "routes",
        file: None,
        is_needed: false,
        result: Err(Failure::failed(format!(
            "{} {}: {}",
            m.what,
            escape(&m.name),
            escape(&m.reason)
        ))),
    };
    missing.into_iter().map(check).collect()
}

const LIMIT: Duration = Duration::from_secs(4);

/// Asks the relay that runs on a data folder whether it is ready.
pub(super) fn report_health(data: &DataFolder, console: &mut Console) -> Result<Exit, Failure> {
    let at = data.folder().display();
    let said = data.last_said();
    let said = said.map_err(|e| Failure::at(data.folder(), e))?;
    // Where the lock can't be asked, the relay itself is.
    if !data.is_running().unwrap_or(true) {
        return Err(Failure::failed(not_running(data)));
    }
    let said = said.unwrap_or_default();
    let place = RelayAddress::parse(&said).ok_or_else(|| {
        Failure::failed(format!(
            "the relay on {at} is starting, and does not listen yet"
        ))
        .help("ask again in a moment")
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::io("a connection", e))?;
    match runtime.block_on(server::probe(place.address, place.is_tls, LIMIT)) {
        Ok(()) => {
            console.talk("ready\n")?;
            Ok(Exit::SUCCESS)
        }
        Err(fault) => Err(Failure::failed(format!(
            "the relay on {at} ({said}): {fault}. Its log says more"
        ))),
    }
}

/// Explains why no relay is running on the folder.
fn not_running(data: &DataFolder) -> String {
    let last = data.last_start();
    let mut text = format!("no relay is running on {}.", data.folder().display());
    let overrides = match &last.failure {
        Some(failed) => StartOptions {
            file: failed.config.clone(),
            listen: failed.listen,
            name: failed.name.clone(),
        },
        None => StartOptions {
            file: last.config,
            ..StartOptions::default()
        },
    };
    match (last.failure, last.started_at) {
        (Some(failure), _) => text.push_str(&format!(
            " The last start failed on {}: {}. `{}` says whether it would work now",
            escape(&failure.at),
            escape(failure.reason.trim_end_matches('.')),
            overrides.command("--check", data),
        )),
        (None, Some(at)) => text.push_str(&format!(
            " The last one was started on {} and has stopped. Start it with `{}`",
            escape(&at),
            overrides.command("", data),
        )),
        (None, None) => text.push_str(&format!(
            " Start one with `{}`, or name another folder with --data",
            overrides.command("", data),
        )),
    }
    text
}

/// Where a relay listens, as it is reached from its own machine.
#[derive(Debug, PartialEq, Eq)]
struct RelayAddress {
    bound: SocketAddr,
    address: SocketAddr,
    is_tls: bool,
}

impl RelayAddress {
    /// Parses the lock file of a relay: a process, a URL, and its address.
    fn parse(said: &str) -> Option<Self> {
        let mut parts = said.split(", ");
        let (_process, url, address) = (parts.next()?, parts.next()?, parts.next()?);
        let bound: SocketAddr = address.parse().ok()?;
        let ip = match bound.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Some(Self {
            bound,
            address: SocketAddr::new(ip, bound.port()),
            is_tls: url.starts_with("https://"),
        })
    }

    /// Whether a relay at this address blocks another one.
    fn holds(&self, address: SocketAddr) -> bool {
        let (own, other) = (self.bound.ip(), address.ip());
        let is_same = own == other || own.is_unspecified() || other.is_unspecified();
        self.bound.port() == address.port() && is_same
    }
}

#[cfg(test)]
mod health_tests {
    use super::*;

    #[test]
    fn a_relay_is_asked_where_it_listens() {
        for (said, wanted) in [
            (
                "process 7, http://127.0.0.1:80, 127.0.0.1:80",
                Some(("127.0.0.1:80", false)),
            ),
            (
                "process 7, https://relay.example:443, 0.0.0.0:443",
                Some(("127.0.0.1:443", true)),
            ),
            (
                "process 7, https://relay.example:443, [::]:443",
                Some(("[::1]:443", true)),
            ),
            (
                "process 7, https://10.0.0.1:443, 10.0.0.1:443",
                Some(("10.0.0.1:443", true)),
            ),
            ("", None),
            ("process 7, http://127.0.0.1:80", None),
        ] {
            let place = RelayAddress::parse(said).map(|p| (p.address.to_string(), p.is_tls));
            let wanted = wanted.map(|(address, is_tls)| (address.to_owned(), is_tls));
            assert_eq!(place, wanted, "{said}");
        }
    }

    #[test]
    fn a_relay_holds_its_own_address() {
        let holds = |bound: &str, address: &str| {
            let place = RelayAddress::parse(&format!("process 7, http://x, {bound}")).unwrap();
            place.holds(address.parse().unwrap())
        };
        assert!(holds("127.0.0.1:80", "127.0.0.1:80"));
        assert!(holds("127.0.0.1:80", "0.0.0.0:80") && holds("0.0.0.0:80", "10.0.0.1:80"));
        assert!(!holds("127.0.0.1:80", "10.0.0.1:80") && !holds("127.0.0.1:80", "127.0.0.1:81"));
    }
}
