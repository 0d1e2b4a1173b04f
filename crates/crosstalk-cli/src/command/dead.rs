//! `crosstalk dead`: lists and requeues the dead letters of a relay.

use crate::console::{BOLD, Console, DIM, styled};
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::report::DeadReport;
use crate::schema::DEAD;
use crate::service::relay::remote::{LOOKED_THROUGH, RelayArgument, find_by_prefix};
use crate::service::settings::Settings;
use crate::view;
use clap::{Args, Subcommand};
use crosstalk_envelope::ErrorCode;
use std::collections::BTreeSet;

/// List the dead letters of a relay, and requeue them
///
/// Needs the token of an admin, or the relay on this machine without tokens.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  crosstalk dead\n  crosstalk dead list --json | jq -r '.deliveries[].id'\n  crosstalk dead requeue 01K74V8QF857CTA8MBHN4ZW0ZK"
)]
pub(crate) struct Dead {
    #[command(subcommand)]
    action: Option<DeadAction>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum DeadAction {
    List(List),
    Requeue(Requeue),
}

/// List the dead letters, the latest first
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk dead list\n  crosstalk dead list --json | jq -r '.deliveries[].reason'"
)]
struct List {
    /// How many entries at most
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Print JSON of the form crosstalk.dead/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    through: RelayArgument,
}

/// Requeue a dead letter
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  crosstalk dead requeue 01K74V8QF857CTA8MBHN4ZW0ZK\n\nExit codes: 0 queued again, 10 the relay has no such delivery, 14 no\npermission."
)]
struct Requeue {
    /// The message
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    through: RelayArgument,
}

impl Dead {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        match self.action {
            None => self.list.run(console),
            Some(DeadAction::List(action)) => action.run(console),
            Some(DeadAction::Requeue(action)) => action.run(console),
        }
    }
}

impl List {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let config = Settings::open(console)?;
        let dead = self.through.connect(&config, None)?.dead(self.limit)?;
        if self.json {
            return console.report(DEAD, &DeadReport { deliveries: dead });
        }
        if dead.is_empty() {
            console.talk("No dead letters.\n")?;
        }
        for one in &dead {
            let reason = one.reason.as_deref().unwrap_or("no reason given");
            let more = format!(
                "by {}, {}, {}",
                one.by,
                count(one.attempts as usize, "attempt"),
                one.failed_at.as_deref().unwrap_or("?")
            );
            console.show(&format!(
                "{}  {} → {}  {}\n  {}\n",
                styled(BOLD, &view::line(&one.id)),
                view::line(&one.from),
                view::line(&one.to),
                styled(DIM, &view::line(&more)),
                wrap(&view::line(reason), 2, 2)
            ))?;
        }
        Ok(())
    }
}

impl Requeue {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let config = Settings::open(console)?;
        let remote = self.through.connect(&config, None)?;
        let id = &self.id;
        let all_ids = || {
            let dead = remote.dead(LOOKED_THROUGH.into())?.into_iter();
            let ids: BTreeSet<String> = dead.map(|letter| letter.id).collect();
            Ok(ids.into_iter().collect())
        };
        let several = || {
            Failure::usage(format!("`{id}` can mean several messages"))
                .help("write more of it (`crosstalk dead` lists them)")
        };
        if find_by_prefix(id, |id| remote.requeue(id), all_ids, several)? == 0 {
            return Err(
                Failure::refused(ErrorCode::Route, format!("`{id}` is no dead letter"))
                    .help("`crosstalk dead` lists the dead letters"),
            );
        }
        console.talk(&format!(
            "Requeued. `crosstalk status {}` shows its state.\n",
            view::line(&self.id)
        ))
    }
}
