//! `crosstalk token`: creates, lists and revokes the tokens of a relay, and pairs browser extensions.

use crate::clock;
use crate::console::{BOLD, Console};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::shown_path;
use crate::report::{TokenReport, TokensReport};
use crate::schema::TOKENS;
use crate::screen;
use crate::service::relay::data::{DataArgument, private_file};
use crate::service::relay::start::{NARROW_TOKEN, OPERATOR, count_active_tokens, new_token};
use crate::service::workspace::Workspace;
use anstyle::Style;
use clap::{Args, ValueEnum};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{
    PAIRING_CODE_BYTES, PAIRING_SECONDS, Pattern, Role, TokenRecord, is_human, pairing_code,
    pairing_digest,
};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

group! {
    /// Create, list and revoke the tokens of a relay
    ///
    /// Works on the data folder of the relay, on the machine where it runs; a running relay uses the change at once. The
    /// relay keeps only a hash of each token.
    #[command(
        after_help = "Examples:\n  crosstalk token create ann --role person --for 'human://acme.example/ann' --out ann.token\n  crosstalk token create ci --role agent --for 'claude://code/*' --expires 90d\n  crosstalk token pair --courier 'chatgpt://*' --courier 'claude://*'\n  crosstalk token list\n  crosstalk token revoke ci"
    )]
    Token {
        Create(CreateToken),
        Pair(PairBrowser),
        List(ListTokens),
        Revoke(RevokeToken),
    }
}

/// Revoke a token: it no longer gives access
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk token revoke ci\n\nExit codes: 0 revoked, 1 there is no active token of this name."
)]
struct RevokeToken {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    data: DataArgument,
}

impl RevokeToken {
    fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let name = &self.name;
        let now = clock::now();
        let mut store = data.open()?;
        match store.revoke_token(name, OPERATOR, now)? {
            true => {
                console.talk("Revoked. It no longer gives access.\n")?;
                if count_active_tokens(&store)? == 0 {
                    let create = self.data.command(NARROW_TOKEN);
                    console.talk(&format!(
                        "It was the last active token, and every client still needs one. Create another one with\n`{create}`.\n"
                    ))?;
                }
                Ok(Exit::SUCCESS)
            }
            false => Err(
                Failure::failed(format!("there is no active token `{name}`"))
                    .help(format!("`{}` shows all", self.data.command("token list"))),
            ),
        }
    }
}

/// Make a token
///
/// Prints the secret, and nothing else, on stdout; with --out, it goes to a file that only its owner can read. It can't be
/// shown again.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token create ann --role person --for human://acme.example/ann --for ANN --out ann.token\n  crosstalk token create bo --role person --for BO --courier CHATGPT --out bo.token\n  crosstalk token create ci --role agent --for 'claude://code/*' --expires 90d --out ci.token\n  crosstalk token create ops --role admin --expires 2027-01-31 --out ops.token\n  crosstalk token create prometheus --role monitor --out prometheus.token\n\nExit codes: 0 created, 1 a token of this name exists or the file is there, 2 wrong usage."
)]
struct CreateToken {
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
    /// When it expires: 90d, 12h, 8w, or a date; without it, never
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
    let opened = private_file().create_new(true).open(path);
    opened.map_err(|fault| {
        let shown = path.to_string_lossy();
        match fault.kind() {
            // The existing file may be the only copy of a secret.
            ErrorKind::AlreadyExists => Failure::failed(format!(
                "{} already exists, so no token was created",
                shown_path(&shown)
            ))
            .help(
                "choose another name with --out, or remove the file if it is not \
                 needed any more",
            ),
            _ => Failure::io(shown.into_owned(), fault),
        }
    })
}

impl CreateToken {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let role = Role::from(self.role);
        if !role.may_carry() && !self.courier.is_empty() {
            return Err(Failure::usage("a program does not carry messages")
                .help("leave --courier out, or create a token for a person"));
        }
        if role == Role::Monitor && !self.addresses.is_empty() {
            return Err(
                Failure::usage("a monitor reads the metrics and sends no messages")
                    .help("leave --for out, or choose another role"),
            );
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
            return Err(Failure::failed(format!("a token `{name}` exists, or existed: a revoked token keeps its name, which is in the audit log")).help("choose \
                 another name"));
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
            console.warning("an agent never speaks for a person: the human:// addresses of this token have no effect")?;
        }
        let ends = token.expires_at.map_or("It never expires".to_owned(), |t| {
            format!("It expires on {t}")
        });
        let name = escape(&token.name);
        let use_of = match token.role {
            // It reads nothing but the metrics.
            Role::Monitor => {
                "Prometheus reads it from `authorization: {credentials_file: FILE}`; other \
                 programs send the header `Authorization: Bearer …` with GET /metrics"
            }
            _ => {
                "To use it: `crosstalk relay add URL --token-file FILE`, or the header `Authorization: Bearer …`"
            }
        };
        let mut text = format!(
            "{ends}; `{}` revokes it. The secret can't be shown again. {use_of}.",
            self.data.command(&format!("token revoke {name}"))
        );
        if is_first {
            text.push_str(" It is the first token: from now on, every client needs one.");
        }
        if is_new {
            let folder = data.shown();
            text.push_str(&format!(
                " There was no relay in {folder} yet: its store was created there."
            ));
        } else if self.data.data.is_none() {
            text.push_str(&format!(" It is for the relay in {}.", data.shown()));
        }
        console.tell(&text)
    }
}

/// Pair a browser extension: print a code that gives it a token
///
/// The code is valid for five minutes and works once. Type it into the options page of the extension, together with the URL of
/// the relay. The origin of the extension, which that page shows, has to be in `origins` of `[extension]` in the configuration of
/// the relay.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token pair\n  crosstalk token pair --courier 'chatgpt://*' --courier 'claude://*'\n  crosstalk token pair laptop --for ANN --courier CHATGPT\n\nExit codes: 0 a code was made, 1 a token of this name exists, 2 wrong usage."
)]
struct PairBrowser {
    /// The name of the token in lists and logs; without it, a new one
    #[arg(value_name = "NAME", value_parser = name)]
    name: Option<String>,
    /// For which addresses it speaks and reads; without it, for you as your settings name you
    #[arg(long = "for", value_name = "ADDR", num_args = 1.., value_parser = pattern)]
    addresses: Vec<String>,
    /// To which chats it may carry messages of others: an address, or the beginning of some and `*`; may be given again
    #[arg(long, value_name = "PATTERN", num_args = 1.., value_parser = pattern)]
    courier: Vec<String>,
    #[command(flatten)]
    data: DataArgument,
}

impl PairBrowser {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let addresses = match self.addresses.is_empty() {
            false => self.addresses,
            true => vec![Workspace::open(console)?.config.sender()?],
        };
        let data = self.data.folder()?;
        data.require()?;
        let mut store = data.open()?;
        let is_first = store.tokens()?.is_empty();
        let random = || {
            let mut bytes = [0; PAIRING_CODE_BYTES];
            let filled = getrandom::fill(&mut bytes).map(|()| bytes);
            filled.map_err(|e| Failure::failed(format!("the system gives no random numbers: {e}")))
        };
        let code = pairing_code(random()?);
        let hash = pairing_digest(&code)
            .ok_or_else(|| Failure::failed("the code that was made can't be read"))?;
        let name = match self.name {
            Some(name) => name,
            // Half of a code is enough for a name.
            None => format!("browser-{}", pairing_code(random()?).to_ascii_lowercase()),
        };
        let now = clock::now();
        let (token, _) = new_token(name, Role::Person, addresses)?;
        let token = TokenRecord {
            hash,
            courier: self.courier,
            created_at: now,
            expires_at: Some(Timestamp::from_millis(
                now.as_millis() + PAIRING_SECONDS * 1000,
            )),
            ..token
        };
        if !store.add_token(&token, OPERATOR)? {
            let name = &token.name;
            return Err(Failure::failed(format!("a token `{name}` exists, or existed: a revoked token keeps its name, which is in the audit log")).help("choose \
                 another name"));
        }
        console.data(format!("{code}\n"))?;
        console.flush()?;
        let name = escape(&token.name);
        let mut text = format!(
            "The code is valid for five minutes and works once. Type it into the options page of the browser extension, and add the \
             origin that the page shows to `origins` of [extension] in the configuration of the relay. The token is called `{name}`; \
             `{}` revokes it.",
            self.data.command(&format!("token revoke {name}"))
        );
        if is_first {
            text.push_str(" It is the first token: from now on, every client needs one.");
        }
        console.tell(&text)
    }
}

/// List the tokens: their addresses, whether they are active, and when they were last used
///
/// A running relay notes the last use to the minute, within seconds.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk token list\n  crosstalk token list --json | jq -r '.tokens[] | select(.state == \"active\") | .name'"
)]
struct ListTokens {
    #[command(flatten)]
    data: DataArgument,
    /// Print JSON of the form crosstalk.tokens/1
    #[arg(long)]
    json: bool,
}

/// Whether a token counts.
fn state(token: &TokenRecord, now: Timestamp) -> &'static str {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(end)) if end <= now => "expired",
        _ => "active",
    }
}

impl ListTokens {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let data = self.data.folder()?;
        data.require()?;
        let tokens = data.open()?.tokens()?;
        let now = clock::now();
        if self.json {
            let tokens = tokens.into_iter().map(|t| report(t, now)).collect();
            return console.report(TOKENS, &TokensReport { tokens });
        }
        if tokens.is_empty() {
            return console
                .talk("there are no tokens: everyone on this machine is the local person\n");
        }
        let head = ["NAME", "ROLE", "STATE", "LAST USED", "FOR"];
        let mut rows = vec![head.map(|title| (title.to_owned(), BOLD))];
        let cells = tokens.iter().map(|t| row(t, now));
        rows.extend(cells.map(|row| row.map(|cell| (cell, Style::new()))));
        console.show(&screen::table(&rows, usize::MAX))
    }
}

/// The cells of a token: name, role, state, last use, addresses.
fn row(token: &TokenRecord, now: Timestamp) -> [String; 5] {
    let state = match (state(token, now), token.expires_at) {
        ("active", Some(end)) => format!("until {end}"),
        (state, _) => state.to_owned(),
    };
    let mut addresses = token.addresses.join(", ");
    if !token.courier.is_empty() {
        addresses.push_str("; carries to ");
        addresses.push_str(&token.courier.join(", "));
    }
    [
        escape(&token.name).into_owned(),
        token.role.as_str().to_owned(),
        state,
        token
            .last_used_at
            .map_or("never".to_owned(), |t| t.to_string()),
        escape(&addresses).into_owned(),
    ]
}

fn report(token: TokenRecord, now: Timestamp) -> TokenReport {
    TokenReport {
        role: token.role.as_str(),
        state: state(&token, now),
        created_at: token.created_at.to_string(),
        expires_at: token.expires_at.map(|t| t.to_string()),
        revoked_at: token.revoked_at.map(|t| t.to_string()),
        last_used_at: token.last_used_at.map(|t| t.to_string()),
        name: token.name,
        addresses: token.addresses,
        courier: token.courier,
    }
}
