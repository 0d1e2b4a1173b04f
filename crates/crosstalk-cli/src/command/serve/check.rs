//! `crosstalk serve --check`: whether a relay would start as it is configured. Nothing is started or changed.

use super::{Overrides, require_credentials};
use crate::clock;
use crate::console::{Console, GREEN, RED, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::json;
use crate::relay::data::{Data, DataArgument};
use crate::schema::SERVE_CHECK;
use crosstalk_relay::config::Config;
use crosstalk_relay::server;
use crosstalk_store::SqliteStore;
use serde_json::{Value, json};
use std::path::Path;

/// One thing that was checked.
struct Check {
    what: &'static str,
    file: Option<String>,
    /// What is good about it, or why the relay would not start.
    result: Result<String, Failure>,
}

/// Checks everything, tells it, and ends with the code that the start would end with.
pub(super) fn run(
    argument: &DataArgument,
    data: &Data,
    overrides: &Overrides,
    as_json: bool,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let checks = checks(argument, data, overrides);
    let failed = |c: &Check| c.result.as_ref().err().map(Failure::exit);
    let exit = checks.iter().find_map(failed).unwrap_or(Exit::SUCCESS);
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
        match &check.result {
            Ok(said) => console.show(&format!(
                "{} {}{file}: {said}\n",
                styled(GREEN, "good"),
                check.what
            ))?,
            Err(fault) => console.show(&format!(
                "{}  {}{file}: {fault}\n",
                styled(RED, "bad"),
                check.what
            ))?,
        }
    }
    Ok(exit)
}

fn report(check: &Check) -> Value {
    json!({
        "what": check.what,
        "file": check.file,
        "good": check.result.is_ok(),
        "message": match &check.result {
            Ok(said) => said.clone(),
            Err(fault) => fault.to_string(),
        },
    })
}

fn checks(argument: &DataArgument, data: &Data, overrides: &Overrides) -> Vec<Check> {
    let file = overrides.file.clone().unwrap_or_else(|| data.config());
    let mut checks = Vec::new();
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
    checks.push(Check {
        what: "configuration",
        file: shown(&file),
        result,
    });
    // A configuration that can't be read says nothing about certificate and address.
    if let Some(config) = &config {
        checks.extend(certificate(config));
        checks.push(Check {
            what: "listen address",
            file: None,
            result: credentials(argument, data, config),
        });
    }
    checks.push(trust(data));
    checks
}

fn shown(path: &Path) -> Option<String> {
    Some(path.to_string_lossy().into_owned())
}

/// Certificate and key, if there are any.
fn certificate(config: &Config) -> Option<Check> {
    let files = config.tls.as_ref()?;
    let result = server::tls(files).map_err(|e| Failure::Failed(format!("TLS: {e}")));
    let result = result.and_then(|tls| match tls.expires_at() {
        Some(end) if end <= clock::now() => Err(Failure::Failed(format!(
            "the certificate expired on {end}, and no client accepts it: replace it"
        ))),
        Some(end) => Ok(format!(
            "they fit each other; the certificate expires on {end}"
        )),
        None => Ok("they fit each other".to_owned()),
    });
    Some(Check {
        what: "certificate and key",
        file: shown(&files.certificate),
        result,
    })
}

/// Whether others can reach the relay, and have to say who they are.
fn credentials(argument: &DataArgument, data: &Data, config: &Config) -> Result<String, Failure> {
    let listen = config.listen;
    if listen.ip().is_loopback() {
        return Ok(format!("{listen} is reached from this machine alone"));
    }
    let store = data.store();
    // Opening an older store would bring it to this version.
    if SqliteStore::is_older(&store)? {
        return Ok(format!(
            "{listen}; the store is of an older version, and its tokens are looked at when the relay starts"
        ));
    }
    let tokens = match SqliteStore::open_existing(&store)? {
        Some(store) => super::active(&store)?,
        None => 0,
    };
    require_credentials(config, tokens, &argument.as_flag())?;
    Ok(format!(
        "{listen}, for those who have one of {tokens} active tokens"
    ))
}

fn trust(data: &Data) -> Check {
    let file = data.trust();
    let result = match file.read() {
        Ok(trust) => Ok(format!("{} keys", trust.keys().len())),
        Err(fault) => Err(fault.into()),
    };
    Check {
        what: "trust file",
        file: shown(file.path()),
        result,
    }
}
