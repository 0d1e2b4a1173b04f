//! Where a poll is looked at or closed: at the relay that counts it, or here.

use crate::failure::Failure;
use crate::service::poll::KeptPoll;
use crate::service::relay::remote::{Remote, Through};
use crate::service::workspace::Desk;
use clap::Args;
use crosstalk_envelope::ErrorCode;

/// Where a poll is looked at or closed.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// At the relay of the settings, whether the poll is kept here or not
    #[arg(long, conflicts_with = "here")]
    remote: bool,
    /// By what is kept here, whatever a relay counts
    #[arg(long, conflicts_with = "relay")]
    here: bool,
    #[command(flatten)]
    through: Through,
}

impl Place {
    /// The relay that counts a poll, and how the poll is called there; nothing if it is counted here. A poll that goes by a
    /// relay of the settings is counted there, if the relay knows it.
    pub(super) fn relay(
        &self,
        desk: &Desk,
        poll: &str,
        kept: Option<&KeptPoll>,
    ) -> Result<Option<(Remote, String)>, Failure> {
        let id = kept.map_or(poll, |k| k.id.as_str()).to_owned();
        if self.remote || self.through.is_named() {
            let remote = self.through.connect(&desk.config, None)?;
            return Ok(Some((remote, id)));
        }
        let group = kept.and_then(KeptPoll::asked).map(|r| r.receiver.as_str());
        let by = group.filter(|g| desk.config.relay_for(g).is_some());
        let Some(group) = by.filter(|_| !self.here) else {
            return Ok(None);
        };
        let remote = self.through.connect(&desk.config, Some(group))?;
        match remote.poll(&id) {
            Ok(_) => Ok(Some((remote, id))),
            Err(trouble) if trouble.is_unknown() => Ok(None),
            Err(trouble) => {
                let why = Failure::from(trouble).to_string();
                Err(Failure::refused(
                    ErrorCode::Route,
                    format!("the relay may count this poll, and can't be asked: {why}"),
                )
                .help("--here goes by what is kept here"))
            }
        }
    }
}
