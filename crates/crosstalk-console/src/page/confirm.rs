//! Before a page sends an envelope, the person sees exactly what is sent.

use super::{PageResult, Shell, render};
use crate::text::{Piece, Shown, pieces};
use crate::visit::Visit;
use askama::Template;

/// An envelope that is about to be sent.
pub(crate) struct Confirmation {
    pub(crate) title: &'static str,
    /// What it does, in a sentence.
    pub(crate) meaning: &'static str,
    pub(crate) button: &'static str,
    /// The path that sends it.
    pub(crate) action: String,
    /// The page that made it.
    pub(crate) back: String,
    /// The same as a command.
    pub(crate) command: String,
    pub(crate) envelope: String,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    shell: Shell,
    asked: Confirmation,
    shown: Vec<Piece>,
    relay: Shown,
}

impl Confirmation {
    /// The page with the envelope and the button.
    pub(crate) async fn page(self, visit: &Visit) -> PageResult {
        render(&ConfirmPage {
            shell: visit.shell(self.title).await,
            shown: pieces(&self.envelope),
            relay: Shown::new(&visit.console.host.relay_name()),
            asked: self,
        })
    }
}
