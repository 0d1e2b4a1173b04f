//! The commands, one module each: read the input, call the library, render the answer.

mod address;
mod approve;
mod audit;
mod backup;
mod build;
mod canonical;
mod carry;
mod clip;
mod close;
mod completions;
mod config;
mod conform;
mod consent;
mod dead;
mod demo;
mod doctor;
mod escalate;
mod explain;
mod export;
mod fmt;
mod forget;
mod forward;
mod fsck;
mod handoff;
mod id;
mod import;
mod inbox;
mod key;
mod lint;
mod listen;
mod man;
mod migrate;
mod name;
mod parse;
mod paste;
mod poll;
mod prompt;
mod redact;
mod relay;
mod relocate;
mod reply;
mod restore;
mod schema;
mod search;
mod send;
mod serve;
mod show;
mod sign;
pub(crate) mod start;
mod status;
mod threads;
mod token;
mod trust;
mod verify;
mod waiting;
mod watch;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::clipboard::HOLD;
use clap::{Args, Subcommand};
use crosstalk_protocol::store::Page;

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Send(send::Send),
    Paste(paste::Paste),
    Move(relocate::Move),
    Reply(reply::Reply),
    Forward(forward::Forward),
    Inbox(inbox::Inbox),
    Waiting(waiting::Waiting),
    Threads(threads::Threads),
    Show(show::Show),
    Search(search::Search),
    Watch(watch::Watch),
    Poll(poll::Poll),
    Escalate(escalate::Escalate),
    Handoff(handoff::Handoff),
    Close(close::Close),
    Consent(consent::Consent),
    Export(export::Export),
    Import(import::Import),
    Forget(forget::Forget),
    Listen(listen::Listen),
    Carry(carry::Carry),
    Approve(approve::Approve),
    Refuse(approve::Refuse),
    Status(status::Status),
    Relay(relay::Relay),
    Serve(serve::Serve),
    Token(token::Token),
    Dead(dead::Dead),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Fsck(fsck::Fsck),
    Audit(audit::Audit),
    Parse(parse::Parse),
    Lint(lint::Lint),
    Fmt(fmt::Fmt),
    Doctor(doctor::Doctor),
    Sign(sign::Sign),
    Verify(verify::Verify),
    Key(key::Key),
    Trust(trust::Trust),
    Redact(redact::Redact),
    Build(build::Build),
    Migrate(migrate::Migrate),
    Canonical(canonical::Canonical),
    Address(address::Address),
    Name(name::Name),
    Prompt(prompt::Prompt),
    Config(config::Config),
    Conform(conform::Conform),
    Id(id::Id),
    Clip(clip::Clip),
    #[command(name = HOLD)]
    ClipboardHold(clip::ClipboardHold),
    Demo(demo::Demo),
    Explain(explain::Explain),
    Schema(schema::Schema),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Runs it.
    pub(crate) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        match self {
            Self::Send(command) => command.run(console),
            Self::Paste(command) => command.run(console),
            Self::Move(command) => command.run(console),
            Self::Reply(command) => command.run(console),
            Self::Forward(command) => command.run(console),
            Self::Inbox(command) => command.run(console),
            Self::Waiting(command) => command.run(console),
            Self::Threads(command) => command.run(console),
            Self::Show(command) => command.run(console),
            Self::Search(command) => command.run(console),
            Self::Watch(command) => command.run(console),
            Self::Poll(command) => command.run(console),
            Self::Escalate(command) => command.run(console),
            Self::Handoff(command) => command.run(console),
            Self::Close(command) => command.run(console),
            Self::Consent(command) => command.run(console),
            Self::Export(command) => command.run(console),
            Self::Import(command) => command.run(console),
            Self::Forget(command) => command.run(console),
            Self::Listen(command) => command.run(console),
            Self::Carry(command) => command.run(console),
            Self::Approve(command) => command.run(console),
            Self::Refuse(command) => command.run(console),
            Self::Status(command) => command.run(console),
            Self::Relay(command) => command.run(console),
            Self::Serve(command) => command.run(console),
            Self::Token(command) => command.run(console),
            Self::Dead(command) => command.run(console),
            Self::Backup(command) => command.run(console),
            Self::Restore(command) => command.run(console),
            Self::Fsck(command) => command.run(console),
            Self::Audit(command) => command.run(console),
            Self::Parse(command) => command.run(console),
            Self::Lint(command) => command.run(console),
            Self::Fmt(command) => command.run(console),
            Self::Doctor(command) => command.run(console),
            Self::Sign(command) => command.run(console),
            Self::Verify(command) => command.run(console),
            Self::Key(command) => command.run(console),
            Self::Trust(command) => command.run(console),
            Self::Redact(command) => command.run(console),
            Self::Build(command) => command.run(console),
            Self::Migrate(command) => command.run(console),
            Self::Canonical(command) => command.run(console),
            Self::Address(command) => command.run(console),
            Self::Name(command) => command.run(console),
            Self::Prompt(command) => command.run(console),
            Self::Config(command) => command.run(console),
            Self::Conform(command) => command.run(console),
            Self::Id(command) => command.run(console),
            Self::Clip(command) => command.run(console),
            Self::ClipboardHold(command) => command.run(console),
            Self::Demo(command) => command.run(console),
            Self::Explain(command) => command.run(console),
            Self::Schema(command) => command.run(console),
            Self::Completions(command) => command.run(console),
            Self::Man(command) => command.run(console),
        }
    }
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
