//! The database alone as the service: each message is one INSERT through HAProxy. It shows what the cluster itself promises.

use super::load::{Answer, Door, Load, Service};
use crosstalk_testing::cluster::{Cluster, DATABASE_PORT, NODES, PASSWORD};
use crosstalk_testing::wait::wait_for_ok;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How `psql` reaches the primary. A line that went silent is given up after some seconds.
const CONNECTION: &str = "user=crosstalk dbname=crosstalk connect_timeout=2 keepalives_idle=2 keepalives_interval=1 \
                          keepalives_count=3 tcp_user_timeout=5000";

fn psql(host: &str, port: u16) -> Command {
    let connection = format!("host={host} port={port} {CONNECTION}");
    let mut command = Command::new("psql");
    command
        .args(["-X", "-A", "-t", "-d", &connection])
        .env("PGPASSWORD", PASSWORD);
    command
}

/// How `psql` reaches the primary.
fn to_primary() -> Command {
    psql("127.0.0.1", DATABASE_PORT)
}

/// Runs a statement, and returns its rows.
fn query(mut psql: Command, statement: &str) -> Result<Vec<String>, String> {
    let output = psql.args(["-q", "-c", statement]).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let rows = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(rows.lines().map(str::to_owned).collect())
}

/// The database alone.
pub(super) struct Table;

impl Table {
    /// Makes the table, and waits until every node has it: without synchronous replication, even that could be lost.
    pub(super) fn make(cluster: &Cluster) -> Self {
        let told = |error: String| format!("a table: {error}\n{}", cluster.logs());
        wait_for_ok(|| {
            let table = "CREATE TABLE IF NOT EXISTS message (id text PRIMARY KEY, repeated int NOT NULL DEFAULT 0)";
            query(to_primary(), table).map_err(told)
        });
        for node in NODES {
            wait_for_ok(|| query(psql(node, 5432), "SELECT id FROM message").map_err(told));
        }
        Self
    }
}

impl Service for Table {
    const READERS: usize = 0;

    fn door(&self) -> impl Door + Send {
        Session::default()
    }

    fn read(&self, _: usize, _: &Load) {}

    fn present(&self) -> Vec<String> {
        wait_for_ok(|| query(to_primary(), "SELECT id FROM message"))
    }

    fn restart(&self, _: &mut Cluster, _: usize) {}
}

/// A session of one sender.
#[derive(Default)]
struct Session {
    open: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl Session {
    fn close(&mut self) {
        if let Some((mut child, ..)) = self.open.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn ask(&mut self, statement: &str) -> io::Result<Answer> {
        if self.open.is_none() {
            // One stream for rows and messages: a warning stands before the result that it is about.
            let psql = to_primary();
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
                .arg("psql")
                .args(psql.get_args());
            let mut child = shell
                .env("PGPASSWORD", PASSWORD)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let parts = child.stdin.take().zip(child.stdout.take());
            let (input, output) = parts.ok_or(io::ErrorKind::BrokenPipe)?;
            self.open = Some((child, input, BufReader::new(output)));
        }
        let Some((_, input, output)) = &mut self.open else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        writeln!(input, "{statement}")?;
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(match line.trim_end() {
            "INSERT 0 1" => Answer::Accepted("INSERT 0 1".to_owned()),
            // A warning too: it says that a commit did not wait for the standby.
            other => Answer::Later(other.to_owned()),
        })
    }
}

impl Door for Session {
    fn hand_in(&mut self, id: &str) -> io::Result<Answer> {
        // A repeated message writes as well. A transaction that only finds the row waits for no standby, and the row may be one
        // whose commit was cancelled while it waited.
        let insert = format!(
            "INSERT INTO message (id) VALUES ('{id}') ON CONFLICT (id) DO UPDATE SET repeated = message.repeated + 1;"
        );
        let answer = self.ask(&insert);
        if !matches!(answer, Ok(Answer::Accepted(_))) {
            self.close();
        }
        answer
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}
