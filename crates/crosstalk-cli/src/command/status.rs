//! `crosstalk status`: shows the deliveries of a message at a relay.

use crate::console::{BOLD, Console, DIM, GREEN, RED, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::{count, wrap};
use crate::schema::STATUS;
use crate::service::lookup::{self, LAST};
use crate::service::relay::outbox::{Outbox, unread};
use crate::service::relay::remote::{DeliveryStatus, RelayArgument};
use crate::service::workspace::Workspace;
use crate::view;
use clap::Args;
use crosstalk_envelope::ErrorCode;

/// The failure if no message was sent.
const NOTHING_SENT: &str = "you sent nothing yet: name a message by its id at the relay";

/// Show how far a message is at the relay: queued, delivered, read, acknowledged or failed
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk status last\n  crosstalk status 01K74V8QF857CTA8MBHN4ZW0ZK --json | jq -r '.deliveries[].state'\n\nExit codes: 0 shown, 1 a delivery failed, 10 the relay does not know the\nmessage or can't be reached, 14 no permission."
)]
pub(crate) struct Status {
    /// A message: the id at the relay, or the beginning of one that is kept here; `last` is the one that you sent last
    #[arg(value_name = "ID")]
    id: String,
    /// Print JSON of the form crosstalk.status/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    through: RelayArgument,
}

impl Status {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        // A message that is kept here may be named by the beginning of its id; any other id goes to the relay as typed.
        let kept = match workspace.messages(console)? {
            // `last` means the last sent message, not the answer to it.
            Some(store) if self.id.eq_ignore_ascii_case(LAST) => {
                let sent = lookup::latest_sent(&store)?;
                Some(sent.ok_or_else(|| Failure::failed(NOTHING_SENT.to_owned()))?)
            }
            Some(store) => match lookup::message(&store, &self.id) {
                Ok(record) => Some(record),
                Err(usage) if usage.is_usage() => return Err(usage),
                Err(_) => None,
            },
            None => None,
        };
        let id = kept.as_ref().map_or(self.id.clone(), |r| r.id.clone());
        let receiver = kept.as_ref().map(|r| r.receiver.as_str());
        let due = Outbox::of(&workspace).find(&id);
        let through = match &due {
            Some(due) => self.through.or(&due.relay, due.token_file.as_deref()),
            None => self.through.clone(),
        };
        let remote = through.connect(&workspace.config, receiver)?;
        let status = remote.status(&id).map_err(|trouble| match &due {
            Some(due) => Failure::refused(
                ErrorCode::Route,
                format!("it was not handed over to {}", due.relay),
            )
            .help(format!(
                "`crosstalk relay deliver {id}` tries again\n{trouble}"
            )),
            None => trouble.into(),
        })?;
        let is_failed = status.deliveries.iter().any(|d| d.state == "failed");
        let exit = Exit::of_check(!is_failed);
        if self.json {
            console.report(STATUS, &status)?;
            return Ok(exit);
        }
        console.show(&format!(
            "{}  {}\n",
            styled(BOLD, &view::line(&status.id)),
            styled(
                DIM,
                &view::line(&format!("from {}, thread {}", status.sender, status.thread))
            )
        ))?;
        if status.deliveries.is_empty() {
            console.talk("Accepted, with no recipients.\n")?;
        }
        for delivery in &status.deliveries {
            console.show(&shown(delivery))?;
            if let Some(hint) = unread(&workspace.config, delivery) {
                console.show(&format!("  {}\n", wrap(&hint, 2, 2)))?;
            }
        }
        Ok(exit)
    }
}

fn shown(delivery: &DeliveryStatus) -> String {
    let style = match delivery.state.as_str() {
        "failed" => RED,
        "acknowledged" | "read" => GREEN,
        _ => YELLOW,
    };
    let mut out = format!(
        "{}  to {} by {}",
        styled(style, &view::line(&delivery.state)),
        view::line(&delivery.to),
        view::line(&delivery.by)
    );
    if delivery.attempts > 0 {
        out.push_str(&format!(
            ", {}",
            count(delivery.attempts as usize, "attempt")
        ));
    }
    let times = [
        ("queued", Some(&delivery.queued_at)),
        ("delivered", delivery.delivered_at.as_ref()),
        ("read", delivery.read_at.as_ref()),
        ("acknowledged", delivery.acknowledged_at.as_ref()),
        ("failed", delivery.failed_at.as_ref()),
        ("next attempt", delivery.next_at.as_ref()),
    ];
    let times = times
        .into_iter()
        .filter_map(|(word, at)| Some(format!("{word} {}", at?)));
    let times: Vec<String> = times.collect();
    out.push_str(&format!(
        "\n  {}\n",
        styled(DIM, &view::line(&times.join(", ")))
    ));
    if let Some(since) = &delivery.running_since {
        let what = match delivery.by.as_str() {
            "exec" => "the program is running",
            "mcp" => "the tool is running",
            _ => "an attempt is under way",
        };
        out.push_str(&format!("  {what} since {}\n", view::line(since)));
    }
    if let Some(reason) = &delivery.reason {
        out.push_str(&format!("  {}\n", wrap(&view::line(reason), 2, 2)));
    }
    out
}
