//! A command and all that it starts.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The process group of a command; it is killed when this goes.
pub(super) struct Group {
    leader: Option<Pid>,
}

impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            // 0 would be the group of the relay itself.
            leader: id.filter(|id| *id > 1).and_then(Pid::from_raw),
        }
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) {
        if let Some(leader) = self.leader {
            // If nothing is left, there is nothing to kill.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
