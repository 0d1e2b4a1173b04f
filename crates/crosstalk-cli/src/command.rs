//! The commands, one module per group: each reads its input, calls services and renders the answer.

/// Defines a command with subcommands: each variant holds the arguments of one subcommand, which has a `run`.
macro_rules! group {
    ($(#[$attribute:meta])* $name:ident { $($variant:ident($arguments:ty)),+ $(,)? }) => {
        #[derive(clap::Args, Debug)]
        $(#[$attribute])*
        pub(crate) struct $name {
            #[command(subcommand)]
            action: Action,
        }

        #[derive(clap::Subcommand, Debug)]
        enum Action {
            $($variant($arguments)),+
        }

        impl $name {
            pub(super) fn run(
                self,
                console: &mut crate::console::Console,
            ) -> Result<crate::exit::Exit, crate::failure::Failure> {
                match self.action {
                    $(Action::$variant(arguments) => arguments.run(console).map(Into::into)),+
                }
            }
        }
    };
}

mod address;
mod approve;
mod archive;
mod audit;
mod backup;
mod build;
mod canonical;
mod carry;
mod config;
mod conform;
mod consent;
mod console;
mod dead;
mod demo;
mod doctor;
mod email;
mod explain;
mod fmt;
mod fsck;
mod import;
mod inbox;
mod key;
mod lint;
mod listen;
mod mcp;
mod migrate;
mod name;
mod parse;
mod paste;
mod poll;
mod redact;
mod reference;
mod relay;
mod restore;
mod send;
mod serve;
mod setup;
mod show;
mod sign;
pub(crate) mod start;
mod status;
mod store;
mod token;
mod trust;
mod verify;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::clipboard::HOLD;
use clap::{Args, Subcommand};
use crosstalk_protocol::store::Page;

/// Lists the commands in the order of the help; each has a `run`.
macro_rules! commands {
    ($($(#[$attribute:meta])* $variant:ident($arguments:ty)),+ $(,)?) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$attribute])* $variant($arguments)),+
        }

        impl Command {
            pub(crate) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
                match self {
                    $(Self::$variant(arguments) => arguments.run(console).map(Into::into)),+
                }
            }
        }
    };
}

commands! {
    Send(send::Send),
    Paste(paste::Paste),
    Move(archive::Move),
    Reply(send::ReplyCommand),
    Forward(send::Forward),
    Inbox(inbox::Inbox),
    Waiting(show::WaitingCommand),
    Threads(show::ThreadsCommand),
    Show(show::Show),
    Search(show::SearchCommand),
    Watch(paste::WatchClipboard),
    Poll(poll::Poll),
    Escalate(send::Escalate),
    Handoff(send::Handoff),
    Close(send::Close),
    Consent(consent::ConsentCommand),
    Export(archive::Export),
    Import(import::Import),
    Forget(archive::Forget),
    Setup(setup::SetupCommand),
    Mcp(mcp::Mcp),
    Agents(mcp::AgentsCommand),
    Listen(listen::Listen),
    Carry(carry::Carry),
    Approve(approve::Approve),
    Refuse(approve::Refuse),
    Status(status::Status),
    Relay(relay::Relay),
    Serve(serve::Serve),
    Console(console::OpenConsole),
    Token(token::Token),
    Dead(dead::Dead),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Fsck(fsck::Fsck),
    Store(store::StoreCommand),
    Audit(audit::Audit),
    Parse(parse::Parse),
    Lint(lint::Lint),
    Fmt(fmt::Fmt),
    Doctor(doctor::Doctor),
    Sign(sign::Sign),
    Verify(verify::Verify),
    Key(key::Key),
    Trust(trust::TrustCommand),
    Redact(redact::Redact),
    Email(email::Email),
    Build(build::Build),
    Migrate(migrate::Migrate),
    Canonical(canonical::Canonical),
    Address(address::AddressCommand),
    Name(name::Name),
    Prompt(paste::Prompt),
    Config(config::ConfigCommand),
    Conform(conform::Conform),
    Id(name::Id),
    Clip(paste::Clip),
    #[command(name = HOLD)]
    ClipboardHold(paste::ClipboardHold),
    Demo(demo::Demo),
    Explain(explain::Explain),
    Schema(reference::Schema),
    Completions(reference::Completions),
    Man(reference::Man),
}

/// Which part of a list is wanted.
#[derive(Args, Clone, Copy, Debug)]
struct Paging {
    /// How many entries at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// How many entries to leave out at the beginning
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    skip: u32,
}

impl Paging {
    fn page(self) -> Page {
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        Page {
            limit: number(self.limit),
            skip: number(self.skip),
        }
    }

    /// Says that there are more entries than were listed.
    fn tell_more(self, console: &mut Console, more: bool) -> Result<(), Failure> {
        match more {
            true => {
                let skip = self.skip.saturating_add(self.limit);
                console.talk(&format!("… and more: --skip {skip}, or a larger --limit\n"))
            }
            false => Ok(()),
        }
    }
}
