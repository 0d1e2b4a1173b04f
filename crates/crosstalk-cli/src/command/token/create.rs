//! `crosstalk token create`: a new token. The secret is printed once, and never kept.

use crate::clock;
use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::paragraph::wrap;
use crate::service::relay::data::DataArgument;
use crate::service::relay::token::{OPERATOR, new_token};
use clap::{Args, ValueEnum};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{Pattern, RelayStore as _, Role, TokenRecord, is_human};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Make a token
///
/// Prints the secret, and nothing else, on stdout; with --out, it goes to a file that only its owner can read. It can't be
/// shown again.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token create ann --role person --for human://acme.example/ann --for ANN --out ann.token\n  crosstalk token create bo --role person --for BO --courier CHATGPT --out bo.token\n  crosstalk token create ci --role agent --for 'claude://code/*' --expires 90d --out ci.token\n  crosstalk token create ops --role admin --expires 2027-01-31 --out ops.token\n  crosstalk token create prometheus --role monitor --out prometheus.token\n\nExit codes: 0 made, 1 there is one of this name or the file is there, 2 wrong usage."
)]
pub(super) struct Create {
    /// The name of the token in lists and logs
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// The role of its owner: agent (a program; never speaks for a person), person, admin (sees and changes everything),
    /// or monitor (reads the metrics and nothing else)
    #[arg(long, value_enum, value_name = "ROLE")]
    role: RoleWord,
    /// For which addresses it speaks and reads: one, or the beginning of some and `*`; may be given again
    #[arg(long = "for", value_name = "ADDR", num_args = 1.., value_parser = pattern, required_if_eq_any = [("role", "agent"), ("role", "person")])]
    addresses: Vec<String>,
    /// To whom its owner may carry messages of others by copy and paste: an address, or the beginning of some and `*`; may
    /// be given again. A person carries their own messages without it
    #[arg(long, value_name = "PATTERN", num_args = 1.., value_parser = pattern)]
    courier: Vec<String>,
    /// When it ends: 90d, 12h, 8w, or a date; without it, never
    #[arg(long, value_name = "TIME", value_parser = clock::until)]
    expires: Option<Timestamp>,
    /// Write the secret to this new file, for its owner alone, and not on stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoleWord {
    Agent,
    Person,
    Admin,
    Monitor,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Agent => Self::Agent,
            RoleWord::Person => Self::Person,
            RoleWord::Admin => Self::Admin,
            RoleWord::Monitor => Self::Monitor,
        }
    }
}

/// Reads the name of a token.
fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    match (1..=64).contains(&text.len()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("write 1 to 64 letters, digits, and -_.@".to_owned()),
    }
}

fn pattern(text: &str) -> Result<String, String> {
    Pattern::parse(text)
        .map(|p| p.to_string())
        .map_err(|e| e.to_string())
}

/// A new file for its owner alone.
fn new_file(path: &Path) -> Result<File, Failure> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|fault| {
        let shown = path.to_string_lossy();
        match fault.kind() {
            // What is there may be somebody's only copy of a secret.
            ErrorKind::AlreadyExists => Failure::Failed(format!(
                "{} is there already, and no token was made: choose another name with --out, or remove the file if it is not \
                 needed any more",
                shown_path(&shown)
            )),
            _ => Failure::Io(shown.into_owned(), fault),
        }
    })
}

impl Create {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let role = Role::from(self.role);
        if !role.may_carry() && !self.courier.is_empty() {
            return Err(Failure::Usage(
                "a program does not carry messages: leave --courier out, or make a token for a person".into(),
            ));
        }
        if role == Role::Monitor && !self.addresses.is_empty() {
            return Err(Failure::Usage(
                "a monitor reads the metrics and speaks for nobody: leave --for out, or choose another role".into(),
            ));
        }
        let data = self.data.folder()?;
        let is_new = !data.store().exists();
        let mut store = data.open()?;
        let is_first = store.tokens()?.is_empty();
        // A secret that can't be written down is no use.
        let file = self.out.as_deref().map(new_file).transpose()?;
        let (token, secret) = new_token(self.name, role, self.addresses)?;
        let token = TokenRecord {
            courier: self.courier,
            expires_at: self.expires,
            ..token
        };
        if !store.add_token(&token, OPERATOR)? {
            if let Some(path) = &self.out {
                // It is empty, and was made here.
                let _ = std::fs::remove_file(path);
            }
            let name = &token.name;
            return Err(Failure::Failed(format!(
                "there is a token `{name}` already, or there was one: a revoked token keeps its name, which the audit log has. Choose \
                 another name"
            )));
        }
        match (file, &self.out) {
            (Some(mut file), Some(path)) => writeln!(file, "{secret}")
                .and_then(|()| file.sync_all())
                .map_err(|e| Failure::at(path, e))?,
            _ => {
                console.data(format!("{secret}\n"))?;
                console.flush()?;
            }
        }
        if token.role == Role::Agent && token.addresses.iter().any(|a| is_human(a)) {
            console.warning("an agent never speaks for a person: the human:// addresses of this token open nothing")?;
        }
        let ends = token.expires_at.map_or("It never expires".to_owned(), |t| {
            format!("It expires on {t}")
        });
        let name = escape(&token.name);
        let use_of = match token.role {
            // It reads nothing but the metrics.
            Role::Monitor => {
                "Prometheus takes it as `authorization: {credentials_file: FILE}`, other programs as the header `Authorization: \
                 Bearer …` of GET /metrics"
            }
            _ => {
                "Whoever uses it: `crosstalk relay add URL --token-file FILE`, or the header `Authorization: Bearer …`"
            }
        };
        let mut text = format!(
            "{ends}; `{}` revokes it. The secret can't be shown again. {use_of}.",
            self.data.command(&format!("token revoke {name}"))
        );
        if is_first {
            text.push_str(" It is the first token: from now on, nobody comes in without one.");
        }
        if is_new {
            let folder = data.shown();
            text.push_str(&format!(
                " There was no relay in {folder} yet: its store was made there."
            ));
        }
        console.talk(&format!("{}\n", wrap(&text, 0, 0)))?;
        Ok(Exit::SUCCESS)
    }
}
