//! `crosstalk serve`: starts the relay and announces it.

mod check;
mod run;

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::relay::console::sign_in_url;
use crate::service::relay::data::{DataArgument, DataFolder, command};
use crate::service::relay::last_start::{self, FailedStart, LastStart};
use crate::service::relay::log::{self, LogFormat};
use crate::service::relay::start::{
    NARROW_TOKEN, count_active_tokens, count_tokens_of, hand_over_tokens, runtime, start,
    start_shared, work_folder,
};
use crate::shell;
use clap::Args;
use crosstalk_console::ConsoleCredential;
use crosstalk_envelope::unicode::escape;
use crosstalk_gateway::gateway::{GatewayError, MailGateway, MailListeners};
use crosstalk_protocol::dns::host_fault;
use crosstalk_relay::config::Config;
use crosstalk_relay::{delivery, server};
use crosstalk_store::{PostgresPlace, SqliteStore};
use run::{FileDigests, ProcessSignals, Reloader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Run a relay: inboxes, routing and delivery over HTTP
///
/// Works without any configuration: it listens on this machine alone, and everyone on this machine is the local person.
/// The relay reads its configuration from relay.toml in the data folder, or from the file of --config. Any other listen
/// address needs tokens (`crosstalk token create`). SIGTERM or Ctrl-C ends it after everything is written, a second one
/// at once. Configuration, certificate, key and trust file are read again when they change, and on SIGHUP; the log shows
/// the result, and which settings need a restart.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk serve\n  crosstalk serve --data /var/lib/crosstalk --listen 127.0.0.1:9000\n  crosstalk serve --name relay.example --log-format json --log warn\n  crosstalk serve --check --data /var/lib/crosstalk\n  crosstalk serve --health --data /var/lib/crosstalk\n\nIf stdout is no terminal, the URL is printed there as soon as the relay listens.\n\nExit codes: 0 stopped by a signal, 1 the store or the address can't be used, 2\nthe listen address needs tokens or an option is wrong, 12 the configuration\ncan't be read. With --check, those of the start; a relay may run on the data\nfolder meanwhile. With --health, 0 the relay is ready, 1 it is not."
)]
pub(crate) struct Serve {
    #[command(flatten)]
    data: DataArgument,
    /// Where to listen; 127.0.0.1:8799 if nothing is configured. Port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// The configuration, instead of relay.toml in the data folder
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The name of the relay: its domain
    #[arg(long, value_name = "DOMAIN", value_parser = name)]
    name: Option<String>,
    /// The PostgreSQL database that this relay shares with others, as postgres://ROLE@HOST:PORT,HOST:PORT/DATABASE?passfile=FILE; the data folder keeps its key, its trusted keys and attachments, which the others do not see (docs/operate.md)
    #[arg(long, value_name = "URL", conflicts_with_all = ["check", "health"])]
    store: Option<String>,
    /// The form of the log; text on a terminal, else json
    #[arg(long, value_enum, value_name = "FORM")]
    log_format: Option<LogFormat>,
    /// How much is logged: off, error, warn, info, debug or trace, or levels for parts as in info,crosstalk_relay=debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
    /// Check everything that a start needs, and what routes need, and exit; nothing is started or changed
    #[arg(long)]
    check: bool,
    /// With --check: print JSON of the form crosstalk.serve-check/1
    #[arg(long, requires = "check")]
    json: bool,
    /// Ask the relay that runs on the data folder whether it is ready, with TLS or without, and exit
    #[arg(long, conflicts_with = "check")]
    health: bool,
}

/// The advice if a relay runs on the folder.
const STOP_FIRST: &str = "stop that one first, or give this one another folder with --data and another address with --listen";

/// The options of `serve` that override the configuration.
#[derive(Clone, Debug, Default)]
struct StartOptions {
    file: Option<PathBuf>,
    listen: Option<SocketAddr>,
    name: Option<String>,
}

impl StartOptions {
    /// The command that starts this relay, for a hint that works from any folder.
    fn command(&self, options: &str, data: &DataFolder) -> String {
        let words = format!("serve {options}");
        let file = self.absolute_file();
        let files = [
            ("--data", Some(data.folder())),
            ("--config", file.as_deref()),
        ];
        let mut line = command(words.trim_end(), &files);
        if let Some(listen) = self.listen {
            line.push_str(&format!(" --listen {listen}"));
        }
        if let Some(name) = &self.name {
            line.push_str(&format!(" --name {}", shell::word(name)));
        }
        line
    }

    /// The absolute path of --config.
    fn absolute_file(&self) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        Some(std::path::absolute(file).unwrap_or_else(|_| file.clone()))
    }

    /// The difference to the last start on this folder, and the command that starts as before.
    fn change(&self, data: &DataFolder, name: &str) -> Option<String> {
        let last = data.last_start();
        let own = data.config();
        let own = std::path::absolute(&own).unwrap_or(own);
        let file = self.absolute_file();
        let change = last.difference(name, file.as_deref(), &own)?;
        let before = Self {
            file: last.config,
            name: last.name,
            listen: self.listen,
        };
        Some(format!(
            "{change}. If this is a mistake, start it with `{}`",
            before.command("", data)
        ))
    }

    /// The configuration with the options applied.
    fn config(&self, data: &DataFolder) -> Result<Config, Failure> {
        let (mut config, _) = data.read_config(self.file.as_deref())?;
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        if let Some(name) = &self.name {
            config.name.clone_from(name);
        }
        Ok(config)
    }
}

fn name(text: &str) -> Result<String, String> {
    match host_fault(text.strip_suffix('.').unwrap_or(text)) {
        Some(fault) => Err(format!("this is no domain: {fault}")),
        None => Ok(text.to_owned()),
    }
}

impl Serve {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        let overrides = StartOptions {
            file: self.config.clone(),
            listen: self.listen,
            name: self.name.clone(),
        };
        if self.health {
            return check::report_health(&data, console);
        }
        if self.check {
            let given = check::PlannedStart {
                data: &data,
                overrides: &overrides,
                level: &self.log,
                create: &self.data.command(NARROW_TOKEN),
            };
            return check::run(&given, self.json, console);
        }
        let result = self.serve(&data, overrides.clone(), console);
        if let Err(fault) = &result {
            data.note_failure(FailedStart {
                config: overrides.absolute_file(),
                listen: overrides.listen,
                name: overrides.name,
                ..FailedStart::new(&fault.to_string())
            });
        }
        result
    }

    /// Runs the relay until a signal or a failure ends it.
    fn serve(
        &self,
        data: &DataFolder,
        overrides: StartOptions,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        // The configuration may have to be warned about.
        let format = LogFormat::or_fitting(self.log_format);
        log::start(format, &self.log)?;
        let digest = run::config_digest(&overrides, data);
        let config = overrides.config(data)?;
        let read = FileDigests::new(digest, config.tls.as_ref());
        data.make()?;
        let mut running = data.require_stopped(STOP_FIRST)?;
        if let Some(change) = overrides.change(data, &config.name) {
            match tracing::enabled!(tracing::Level::WARN) {
                true => tracing::warn!("{change}"),
                // The log is on stderr as well.
                false => console.warning(&change)?,
            }
        }
        let place = self
            .store
            .as_deref()
            .map(PostgresPlace::parse)
            .transpose()?;
        let create = self.data.command(NARROW_TOKEN);
        let store = match place {
            Some(place) => ChosenStore::Shared(Box::new(place)),
            None => {
                let store = data.open()?;
                let tokens = count_active_tokens(&store)?;
                require_credentials(&config, tokens, &create)?;
                ChosenStore::Own(Box::new(store), tokens)
            }
        };
        let tls = config.tls.as_ref().map(server::tls).transpose();
        let tls = tls.map_err(|e| Failure::failed(format!("TLS: {e}")))?;
        let listener = bind(config.listen)?;
        let mail = MailListeners::bind(&config).map_err(mail_failure)?;
        drop_privileges();
        let runtime = runtime(None)?;
        let (relay, tokens) = match store {
            ChosenStore::Own(store, tokens) => {
                (runtime.block_on(start(data, config, *store))?, tokens)
            }
            ChosenStore::Shared(place) => runtime.block_on(async {
                let relay = start_shared(data, config, *place).await?;
                hand_over_tokens(data, &relay).await?;
                let tokens = count_tokens_of(&relay).await?;
                require_credentials(&relay.config(), tokens, &create)?;
                Ok::<_, Failure>((relay, tokens))
            })?,
        };
        let result: Result<(), Failure> = runtime.block_on(async {
            // A program that reads that the relay listens may stop it at once.
            let signals = ProcessSignals::new()?;
            let config = relay.config();
            let listener = tokio::net::TcpListener::from_std(listener);
            let listener = listener.map_err(|e| unbound(config.listen, &e))?;
            let address = listener
                .local_addr()
                .map_err(|e| unbound(config.listen, &e))?;
            // Links of an earlier start count no more.
            server::renew_link_key(data.folder()).map_err(|e| Failure::at(data.folder(), e))?;
            let greeting = Greeting {
                config: &config,
                data,
                address,
                tokens,
            };
            // A greeting that can't be written must not stop the relay.
            let _ = running.tell(&greeting.short());
            let started = LastStart::succeeded(&config.name, overrides.absolute_file());
            if let Err(fault) = started.write(data.folder()) {
                tracing::warn!(
                    reason = %fault,
                    "{} can't be written: commands on the data folder do not learn how this relay was started",
                    last_start::FILE
                );
            }
            greeting.tell(console, format)?;
            warn_about_routes(&config, data);
            let reloader = Reloader::new(relay.clone(), data.clone(), overrides, tls.clone(), read);
            let mail =
                MailGateway::start(&relay, mail, data.folder()).map_err(mail_failure)?;
            let served =
                run::run_until_signal(&relay, listener, tls, data, reloader, signals).await;
            if let Some(mail) = mail {
                mail.stop(run::GRACE).await;
            }
            served
        });
        runtime.block_on(relay.stop());
        match relay.metrics().backlog.load(Ordering::Relaxed) {
            0 => tracing::info!("stopped: all accepted messages are indexed"),
            left => tracing::info!(
                left,
                "stopped: the remaining messages are indexed at the next start"
            ),
        }
        // Tasks that still wait for something must not keep the process.
        runtime.shutdown_background();
        drop(running);
        result.map(|()| Exit::SUCCESS)
    }
}

/// The store that a relay is started on.
enum ChosenStore {
    /// The file in its data folder, which was opened to be looked at, and its active tokens.
    Own(Box<SqliteStore>, usize),
    /// A database of several relays.
    Shared(Box<PostgresPlace>),
}

fn mail_failure(fault: GatewayError) -> Failure {
    let help = match fault {
        GatewayError::Listen(..) => {
            "choose another address in [email.lmtp] or [email.smtp] of relay.toml, or stop the program that listens there"
        }
        GatewayError::Setup(_) => "correct [email.smtp] or the name server in relay.toml",
    };
    Failure::failed(fault.to_string()).help(help)
}

/// Logs what routes lack. The relay runs nevertheless and tries again for each message.
fn warn_about_routes(config: &Config, data: &DataFolder) {
    for doubt in config.doubts() {
        tracing::warn!("relay.toml: {doubt}");
    }
    for missing in delivery::missing(config, &work_folder(data)) {
        tracing::warn!(reason = %missing.reason, "{} {}: messages can't go this way now", missing.what, missing.name);
    }
}

/// Clients from other machines need tokens.
fn require_credentials(config: &Config, tokens: usize, create: &str) -> Result<(), Failure> {
    match config.listen.ip().is_loopback() || tokens > 0 {
        true => Ok(()),
        false => Err(no_credentials(config.listen, create)),
    }
}

fn no_credentials(listen: SocketAddr, create: &str) -> Failure {
    Failure::usage(format!("{listen} can be reached from other machines, and there is no token: anyone could read and send in any name")).help(format!("create a \
         token for each agent or person, for their own address alone: `{create}`; or listen on 127.0.0.1"))
}

/// Binds before there is any other thread.
fn bind(address: SocketAddr) -> Result<std::net::TcpListener, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|e| Failure::io("the threads of the relay", e))?;
    let bound = runtime.block_on(tokio::net::TcpListener::bind(address));
    let bound = bound.and_then(tokio::net::TcpListener::into_std);
    bound.map_err(|e| unbound(address, &e))
}

/// Drops the capability to listen on ports below 1024, which systemd may have given, so that programs that the relay
/// starts do not have it.
fn drop_privileges() {
    #[cfg(target_os = "linux")]
    if let Err(fault) = rustix::thread::clear_ambient_capability_set() {
        // A kernel without such sets has no capability to drop.
        tracing::debug!(reason = %fault, "ambient capabilities can't be cleared");
    }
}

fn unbound(address: SocketAddr, fault: &std::io::Error) -> Failure {
    let help = match fault.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program listens there: choose another address with --listen"
        }
        std::io::ErrorKind::PermissionDenied => {
            "choose a port from 1024 on with --listen, or start the relay with the systemd unit, which allows it"
        }
        _ => "",
    };
    Failure::failed(format!("can't listen on {address}: {fault}")).help(help)
}

/// The first lines of a relay.
struct Greeting<'g> {
    config: &'g Config,
    data: &'g DataFolder,
    /// The bound address.
    address: SocketAddr,
    /// The number of active tokens.
    tokens: usize,
}

impl Greeting<'_> {
    fn url(&self) -> String {
        let scheme = match self.config.tls {
            Some(_) => "https",
            None => "http",
        };
        // Nobody connects to "any address".
        let host = match (
            self.address.ip().is_unspecified(),
            self.config.tls.is_some(),
        ) {
            (true, true) => self.config.name.clone(),
            (true, false) if self.address.is_ipv6() => "[::1]".to_owned(),
            (true, false) => "127.0.0.1".to_owned(),
            (false, _) if self.address.is_ipv6() => format!("[{}]", self.address.ip()),
            (false, _) => self.address.ip().to_string(),
        };
        format!("{scheme}://{host}:{}", self.address.port())
    }

    /// The line in the lock file, for others who try to start a relay here.
    fn short(&self) -> String {
        format!(
            "process {}, {}, {}",
            std::process::id(),
            self.url(),
            self.address
        )
    }

    fn needs_tls(&self) -> bool {
        self.config.tls.is_none() && !self.address.ip().is_loopback()
    }

    /// Writes sentences for people, a log line for programs, and the URL alone to stdout.
    fn tell(&self, console: &mut Console, format: LogFormat) -> Result<(), Failure> {
        let url = self.url();
        match format {
            LogFormat::Text => console.talk(&self.text())?,
            LogFormat::Json => tracing::info!(
                url,
                listen = %self.address,
                name = %self.config.name,
                data = %self.data.folder().display(),
                tokens = self.tokens,
                version = env!("CARGO_PKG_VERSION"),
                "listening"
            ),
        }
        const ADVICE: &str = "others can read the messages on their way: set [tls] in relay.toml, \
                              or put a proxy with TLS in front and listen on loopback";
        match (self.needs_tls(), format) {
            (true, LogFormat::Text) => console.warning(ADVICE)?,
            (true, LogFormat::Json) => tracing::warn!(listen = %self.address, "{ADVICE}"),
            (false, _) => {}
        }
        if !console.is_terminal() {
            console.data(format!("{url}\n"))?;
            console.flush()?;
        }
        Ok(())
    }

    /// How people get to the console: by a link where there are no tokens.
    fn console_line(&self) -> String {
        let made = match self.tokens {
            0 => sign_in_url(self.data, &self.url(), ConsoleCredential::Local).ok(),
            _ => None,
        };
        match made {
            Some(link) => format!(
                "Web console (this link signs in once): {}",
                styled(BOLD, &link)
            ),
            None => format!(
                "Web console: {} (`{}` signs in)",
                self.url(),
                self.data.command("console")
            ),
        }
    }

    fn text(&self) -> String {
        let url = self.url();
        let list = self.data.command("token list");
        let who = match self.tokens {
            0 => format!(
                "Everyone on this machine is the local person; a first token changes that: `{}`.",
                self.data.command(NARROW_TOKEN)
            ),
            1 => format!("One token lets people and agents in; `{list}` shows it."),
            n => format!("{n} tokens let people and agents in; `{list}` shows them."),
        };
        format!(
            "The relay {} listens on {}\nIts data is in {}\n{who}\n{}\n{}\n",
            escape(&self.config.name),
            styled(BOLD, &url),
            self.data.shown(),
            self.console_line(),
            styled(
                DIM,
                &format!(
                    "A first message:  crosstalk send claude \"Are you there?\" --relay {url}\n\
                     What waits there: crosstalk inbox --relay {url} --for CLAUDE\n\
                     Ctrl-C ends it."
                )
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_comes_in_without_a_token() {
        for (listen, tokens, is_refused) in [
            ("127.0.0.1:1", 0, false),
            ("[::1]:1", 0, false),
            ("0.0.0.0:1", 0, true),
            ("[::]:1", 0, true),
            ("192.0.2.1:1", 0, true),
            ("0.0.0.0:1", 1, false),
        ] {
            let config = Config {
                listen: listen.parse().unwrap(),
                ..Config::default()
            };
            let create = DataFolder::at("/srv/relay".into()).command(NARROW_TOKEN);
            let result = require_credentials(&config, tokens, &create);
            assert_eq!(result.is_err(), is_refused, "{listen} {tokens}");
            if let Err(fault) = result {
                assert_eq!(fault.exit(), Exit::USAGE);
                let wanted =
                    "crosstalk token create NAME --role agent --for ADDRESS --data /srv/relay";
                assert!(fault.to_string().contains(wanted), "{fault}");
            }
        }
    }

    #[test]
    fn a_hint_names_the_relay_with_all_its_options() {
        let data = DataFolder::at("/srv/my relay".into());
        assert_eq!(
            StartOptions::default().command("--check", &data),
            "crosstalk serve --check --data '/srv/my relay'"
        );
        let overrides = StartOptions {
            file: Some("/etc/relay.toml".into()),
            listen: Some("127.0.0.1:9000".parse().unwrap()),
            name: Some("relay.example".into()),
        };
        assert_eq!(
            overrides.command("", &data),
            "crosstalk serve --data '/srv/my relay' --config /etc/relay.toml --listen 127.0.0.1:9000 --name relay.example"
        );
    }

    #[test]
    fn names_are_domains() {
        assert!(name("relay.example").is_ok() && name("localhost").is_ok());
        assert!(name("a b").is_err() && name("").is_err());
    }
}

#[cfg(test)]
mod greeting_tests {
    use super::*;

    fn url(address: &str, tls: bool) -> String {
        let tls = tls.then(|| crosstalk_relay::config::Tls {
            certificate: "c".into(),
            key: "k".into(),
        });
        let config = Config {
            name: "relay.example".into(),
            tls,
            ..Config::default()
        };
        let greeting = Greeting {
            config: &config,
            data: &DataFolder::at("/x".into()),
            address: address.parse().unwrap(),
            tokens: 0,
        };
        greeting.url()
    }

    #[test]
    fn the_url_is_one_that_can_be_used() {
        for (address, tls, wanted) in [
            ("127.0.0.1:8799", false, "http://127.0.0.1:8799"),
            ("[::1]:8799", false, "http://[::1]:8799"),
            ("0.0.0.0:80", false, "http://127.0.0.1:80"),
            ("[::]:80", false, "http://[::1]:80"),
            ("0.0.0.0:443", true, "https://relay.example:443"),
        ] {
            assert_eq!(url(address, tls), wanted);
        }
    }
}
