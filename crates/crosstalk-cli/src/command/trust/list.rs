//! `crosstalk trust list`.

use super::view;
use crate::console::{Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::service::home::Rooms;
use clap::Args;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Domain;

/// List the keys of others that are known, and what became of them
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk trust list\n  crosstalk trust list --json | jq -r '.keys[].id'"
)]
pub(super) struct List {
    /// Print JSON of the form crosstalk.trust-list/1
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let rooms = Rooms::open()?;
        let trust = rooms.trust()?;
        if self.json {
            let keys: Vec<_> = trust.keys().iter().map(|k| (k, Vec::new())).collect();
            let domains: Vec<&Domain> = trust.domains().iter().collect();
            console.data(view::report(&keys, &domains, &[])?)?;
            return Ok(Exit::SUCCESS);
        }
        for known in trust.keys() {
            console.show(&view::key(known, &[]))?;
        }
        for domain in trust.domains() {
            let keys = crate::paragraph::count(domain.keys.len(), "key");
            console.show(&format!(
                "{}  {keys} in DNS ({})\n  {}\n",
                styled(crate::console::BOLD, &escape(&domain.name)),
                domain.dnssec.as_str(),
                styled(
                    DIM,
                    &format!("asked {}, good until {}", domain.asked, domain.expires)
                )
            ))?;
        }
        if trust.keys().is_empty() && trust.domains().is_empty() {
            console.talk("no key is known: pin one with `crosstalk trust pin signed.txt`\n")?;
        }
        Ok(Exit::SUCCESS)
    }
}
