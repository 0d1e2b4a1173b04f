//! The servers beside which the relay is measured: each in a scratch folder, on a free port of the loopback address, told
//! to have every message on disk before it says so. None of them is a service that the machine runs anyway.

use crosstalk_testing::folder::Folder;
use std::fs;
use std::io::{Error, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The kinds of server, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An event store.
    Redis,
    /// A message broker.
    Nats,
    /// A database.
    Postgres,
    /// A mail server.
    Postfix,
}

impl Peer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Redis, Self::Nats, Self::Postgres, Self::Postfix];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "Redis, XADD",
            Self::Nats => "NATS JetStream, publish",
            Self::Postgres => "PostgreSQL, INSERT",
            Self::Postfix => "Postfix, SMTP",
        }
    }

    /// Why an acknowledged message is on disk.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Redis => "`appendfsync always`",
            Self::Nats => "`sync_interval: always`",
            Self::Postgres => "`synchronous_commit = on`, a transaction each",
            Self::Postfix => "the queue file is synced before `250`",
        }
    }

    /// Its program, if the machine has it.
    fn program(self) -> Option<PathBuf> {
        match self {
            Self::Redis => find("redis-server"),
            Self::Nats => find("nats-server"),
            Self::Postgres => Some(postgres_program("postgres")).filter(|p| p.is_file()),
            Self::Postfix => find("postfix"),
        }
    }

    /// Its version, as it says it.
    pub fn version(self) -> Option<String> {
        let (program, word) = match self {
            Self::Postfix => (find("postconf")?, "mail_version"),
            _ => (self.program()?, "--version"),
        };
        let said = Command::new(program).arg(word).output().ok()?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let number = |word: &&str| {
            word.trim_start_matches("v=")
                .trim_start_matches('v')
                .starts_with(|c: char| c.is_ascii_digit())
        };
        let found = said.split_whitespace().find(number)?;
        Some(
            found
                .trim_start_matches("v=")
                .trim_start_matches('v')
                .to_owned(),
        )
    }

    /// Starts it, and waits until it takes connections. Nothing if the machine does not have it, or must not start it.
    pub fn start(self, place: &Path) -> Result<Option<Server>> {
        let Some(program) = self.program() else {
            return Ok(None);
        };
        if self == Self::Postfix && !is_root() {
            return Ok(None);
        }
        let folder = Folder::within(place, "peer");
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let command = match self {
            Self::Redis => redis(&program, folder.path(), address),
            Self::Nats => nats(&program, folder.path(), address)?,
            Self::Postgres => postgres(&program, folder.path(), address)?,
            Self::Postfix => postfix(&program, folder.path(), address)?,
        };
        Server::spawn(self, command, folder, address).map(Some)
    }
}

/// A server that runs. It ends with the value.
pub struct Server {
    process: Child,
    peer: Peer,
    /// Where it listens.
    pub address: SocketAddr,
    folder: Folder,
}

impl Server {
    fn spawn(
        peer: Peer,
        mut command: Command,
        folder: Folder,
        address: SocketAddr,
    ) -> Result<Self> {
        let log = fs::File::create(folder.path().join("log"))?;
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut server = Self {
            process: command.spawn()?,
            peer,
            address,
            folder,
        };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if server.process.try_wait()?.is_some() || Instant::now() > end {
                let log = fs::read_to_string(server.folder.path().join("log"))?;
                let name = peer.name();
                return Err(Error::other(format!("{name} does not come up:\n{log}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let configuration = self.folder.path().join("conf");
        let id = self.process.id().to_string();
        // Killed, these would leave processes behind.
        let mut end = match self.peer {
            Peer::Postfix => {
                let mut stop = Command::new(find("postfix").unwrap_or_default());
                stop.arg("-c").arg(configuration).arg("stop");
                stop
            }
            Peer::Postgres => {
                let mut stop = Command::new("kill");
                stop.args(["-INT", &id]);
                stop
            }
            Peer::Redis | Peer::Nats => {
                let mut stop = Command::new("kill");
                stop.args(["-KILL", &id]);
                stop
            }
        };
        let _ = end.stdin(Stdio::null()).output();
        let _ = self.process.wait();
    }
}

fn redis(program: &Path, folder: &Path, address: SocketAddr) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--bind", "127.0.0.1", "--port", &address.port().to_string()])
        .args([
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
        ])
        .arg("--dir")
        .arg(folder);
    command
}

fn nats(program: &Path, folder: &Path, address: SocketAddr) -> Result<Command> {
    let file = folder.join("nats.conf");
    let text = format!(
        "listen: \"{address}\"\njetstream {{\n  store_dir: \"{}\"\n  sync_interval: always\n}}\n",
        folder.join("store").display()
    );
    fs::write(&file, text)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(file);
    Ok(command)
}

/// PostgreSQL refuses to run as root: then it is the user of its package.
fn postgres(program: &Path, folder: &Path, address: SocketAddr) -> Result<Command> {
    let data = folder.join("data");
    fs::create_dir(&data)?;
    let run = |program: &Path| {
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=postgres", "--regid=postgres", "--init-groups"])
            .arg(program);
        command
    };
    if is_root() {
        done(Command::new("chown").arg("postgres:").arg(&data))?;
    }
    let mut initdb = run(&program.with_file_name("initdb"));
    initdb
        .current_dir("/")
        .args(["--auth=trust", "-U", "bench", "-D"]);
    done(initdb.arg(&data))?;
    let mut command = run(program);
    command.current_dir("/").arg("-D").arg(&data).args([
        "-h",
        "127.0.0.1",
        "-p",
        &address.port().to_string(),
        "-k",
        "",
    ]);
    Ok(command)
}

const POSTFIX_SERVICES: &str = "\
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
anvil unix - - n - 1 anvil
discard unix - - n - - discard
error unix - - n - - error
retry unix - - n - - error
postlog unix-dgram n - n - 1 postlogd
";

/// Postfix drops what it has accepted, so that it has no more to do than to queue it; and nothing slows senders down.
fn postfix(program: &Path, folder: &Path, address: SocketAddr) -> Result<Command> {
    for name in ["conf", "queue", "data"] {
        fs::create_dir(folder.join(name))?;
    }
    done(
        Command::new("chown")
            .arg("postfix:")
            .arg(folder.join("data")),
    )?;
    let place = folder.display();
    let main = format!(
        "compatibility_level = 3.6\nqueue_directory = {place}/queue\ndata_directory = {place}/data\n\
         maillog_file = {place}/mail.log\nmaillog_file_prefixes = /\ninet_interfaces = 127.0.0.1\n\
         inet_protocols = ipv4\nmyhostname = bench.test\nmynetworks = 127.0.0.0/8\nmydestination =\n\
         local_transport = discard:\ndefault_transport = discard:\nalias_maps =\nlocal_recipient_maps =\n\
         in_flow_delay = 0\nsmtpd_client_connection_count_limit = 0\ndefault_process_limit = 200\n"
    );
    let services = format!("{address} inet n - n - - smtpd\n{POSTFIX_SERVICES}");
    fs::write(folder.join("conf/main.cf"), main)?;
    fs::write(folder.join("conf/master.cf"), services)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(folder.join("conf")).arg("start-fg");
    Ok(command)
}

/// Runs a command that has to succeed.
pub fn done(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::other(format!("{command:?}: {said}")))
}

fn is_root() -> bool {
    done(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// A program: in the search path, in the folders of servers, or where `cargo xtask bench peers` has installed it.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok();
    let tools =
        own.and_then(|own| Some(own.parent()?.parent()?.join("tools").join(name).join("bin")));
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain(tools)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// One of PostgreSQL's own programs. Debian keeps them out of the search path, in a folder for each version.
pub fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.flatten().map(|entry| entry.path().join("bin"));
    let newest = versions
        .filter(|folder| folder.join("initdb").is_file())
        .max_by_key(|folder| {
            let version = folder.parent().and_then(Path::file_name);
            version.and_then(|v| v.to_str()?.parse::<u32>().ok())
        });
    let newest = newest.map(|folder| folder.join(name));
    newest.or_else(|| find(name)).unwrap_or_else(|| name.into())
}
