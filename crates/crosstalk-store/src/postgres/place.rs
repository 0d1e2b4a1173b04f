//! Where a database is: the URL of the operator, what it leaves to defaults, and the way in.

use crosstalk_protocol::store::{StoreError, StoreFault};
use percent_encoding::percent_decode_str;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::disk::{self, ReadFault};
use crate::permission::Guard;

/// How large a password file is at most.
const PASSWORDS_BYTES: u64 = 1 << 20;
/// How long it takes at most until a server lets us in, or does not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that says nothing for so long is asked whether it is there, and is gone after the second time.
const KEEPALIVE: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(15);

/// A PostgreSQL database as the store of relays, from a URL.
///
/// ```
/// use crosstalk_store::PostgresPlace;
/// let place = PostgresPlace::parse("postgres://relay:secret@db1,db2:5433/crosstalk?sslrootcert=/etc/ca.pem").unwrap();
/// assert_eq!(place.to_string(), "the database `crosstalk` at db1:5432, db2:5433");
/// assert!(PostgresPlace::parse("mysql://db1/crosstalk").is_err());
/// ```
#[derive(Clone)]
pub struct PostgresPlace {
    pub(super) config: Config,
    /// The certificates of the authorities that vouch for the servers; those of the system, if nothing is said.
    pub(super) roots: Option<PathBuf>,
    label: String,
}

impl fmt::Display for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Without the password.
impl fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresPlace").field(&self.label).finish()
    }
}

fn wrong(what: impl Into<String>, help: &str) -> StoreError {
    StoreError::new(StoreFault::Unavailable, what, help)
}

const FORM: &str =
    "write it as postgres://ROLE@HOST:PORT,HOST:PORT/DATABASE?passfile=FILE&sslrootcert=FILE";

impl PostgresPlace {
    /// Whether a text is the URL of a PostgreSQL database.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads a URL, as `libpq` does: several hosts, and these parameters beside those of `tokio-postgres`:
    /// `passfile=FILE` (lines of `host:port:database:role:password`), `sslrootcert=FILE`, and `sslmode=verify-full`.
    ///
    /// # Errors
    /// If it is none, or its password file can't be read.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        if !Self::is_url(url) {
            return Err(wrong("the store is no URL of PostgreSQL", FORM));
        }
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut roots, mut passfile, mut mode) = (Vec::new(), None, None, None);
        let mut has_target = false;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslrootcert" => roots = Some(PathBuf::from(value)),
                "passfile" => passfile = Some(PathBuf::from(value)),
                "sslmode" => mode = Some(ssl_mode(&value)?),
                _ => {
                    has_target |= name == "target_session_attrs";
                    rest.push(pair);
                }
            }
        }
        let url = format!("{base}?{}", rest.join("&"));
        let mut config = Config::from_str(&url).map_err(|e| {
            let reason = std::error::Error::source(&e).map(ToString::to_string);
            let reason = reason.unwrap_or_else(|| e.to_string());
            wrong(
                format!("the URL of the store can't be read: {reason}"),
                FORM,
            )
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("the URL of the store names no host", FORM));
        }
        if !has_target {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let is_near = config.get_hosts().iter().all(is_near);
        config.ssl_mode(match mode {
            Some(mode) => mode,
            None if is_near => SslMode::Disable,
            None => SslMode::Require,
        });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.keepalives_idle(KEEPALIVE);
        config.keepalives_interval(KEEPALIVE);
        config.keepalives_retries(2);
        config.tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name("crosstalk");
        }
        if config.get_password().is_none()
            && let Some(file) = passfile.or_else(|| std::env::var_os("PGPASSFILE").map(Into::into))
            && let Some(password) = password_in(&file, &config)?
        {
            config.password(password);
        }
        let label = label(&config);
        Ok(Self {
            config,
            roots,
            label,
        })
    }
}

/// How much of TLS is wanted. A server that is spoken to by TLS always has to prove its name.
fn ssl_mode(value: &str) -> Result<SslMode, StoreError> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "require" | "verify-ca" | "verify-full" => Ok(SslMode::Require),
        _ => Err(wrong(
            format!("sslmode={} is not known", value.escape_debug()),
            "write verify-full, or disable for a server on this machine",
        )),
    }
}

/// Whether a host is this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// The hosts with their ports.
fn hosts(config: &Config) -> Vec<(String, u16)> {
    let ports = config.get_ports();
    let port = |place: usize| {
        let port = ports.get(place).or(match ports {
            [one] => Some(one),
            _ => None,
        });
        port.copied().unwrap_or(5432)
    };
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    };
    let hosts = config.get_hosts().iter().enumerate();
    hosts
        .map(|(place, host)| (name(host), port(place)))
        .collect()
}

fn label(config: &Config) -> String {
    let hosts: Vec<String> = hosts(config)
        .into_iter()
        .map(|(host, port)| format!("{host}:{port}"))
        .collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or("?");
    let shown = crosstalk_envelope::unicode::escape(database);
    format!("the database `{shown}` at {}", hosts.join(", "))
}

/// The password for a database, in a file of `libpq`.
fn password_in(file: &Path, config: &Config) -> Result<Option<String>, StoreError> {
    let shown = file.display();
    let unreadable = |why: String| {
        wrong(
            format!("the password file `{shown}` can't be used: {why}"),
            "it has lines of host:port:database:role:password, and belongs to the user of the relay alone (chmod 600)",
        )
    };
    let text = disk::read(file, PASSWORDS_BYTES, Guard::Private);
    let text = text.map_err(|fault| {
        unreadable(match fault {
            ReadFault::Missing => "it does not exist".to_owned(),
            ReadFault::Exposed(exposure) => exposure.explanation().what,
            ReadFault::TooLarge(limit) => format!("it has more than {limit} bytes"),
            ReadFault::Disk(error) => error.to_string(),
        })
    })?;
    let role = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(role);
    let hosts = hosts(config);
    let fits = |wanted: &str, given: &str| wanted == "*" || wanted == given;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let [host, port, name, user, password] = fields(line).as_slice() {
            let is_host = |(h, p): &(String, u16)| fits(host, h) && fits(port, &p.to_string());
            if fits(name, database) && fits(user, role) && hosts.iter().any(is_host) {
                return Ok(Some(password.clone()));
            }
        }
    }
    Ok(None)
}

/// The fields of a line of a password file. A backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut chars) = (vec![String::new()], line.chars());
    while let Some(c) = chars.next() {
        match c {
            ':' if all.len() < 5 => all.push(String::new()),
            c => {
                let c = if c == '\\' {
                    chars.next().unwrap_or(c)
                } else {
                    c
                };
                if let Some(field) = all.last_mut() {
                    field.push(c);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_a_database_has_its_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        std::fs::write(&file, "db9:*:*:*:other\n*:5433:crosstalk:relay:a\\:b:c\n").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let own = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&file, own).unwrap();
        }
        let url = format!(
            "postgres://relay@db1,db2:5433/crosstalk?passfile={}",
            file.display()
        );
        let place = PostgresPlace::parse(&url.replace("db1,", "db1:5432,")).unwrap();
        assert_eq!(place.config.get_password(), Some(&b"a:b:c"[..]));
        assert!(!format!("{place:?} {place}").contains("a:b"));
    }

    #[test]
    fn a_server_elsewhere_has_to_prove_its_name() {
        let mode = |url: &str| PostgresPlace::parse(url).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://r@127.0.0.1/x"), SslMode::Disable);
        assert_eq!(mode("postgres://r@127.0.0.1,db2/x"), SslMode::Require);
        assert_eq!(mode("postgres://r@db2/x?sslmode=disable"), SslMode::Disable);
        assert!(PostgresPlace::parse("postgres://r@db2/x?sslmode=prefer").is_err());
        assert!(PostgresPlace::parse("postgres:///x").is_err());
    }
}
