//! What is worth telling about a message that was handed to a relay, as soon as it is known: nobody reads where it waits, the
//! program that should answer it fails, or a person has to carry or to decide it.

use crate::console::{Console, YELLOW, styled};
use crate::failure::Failure;
use crate::service::relay::remote::{Delivered, Remote, Waiting};
use crate::service::settings::Config;
use crate::{shell, view};
use crosstalk_envelope::{CoreHeader, Document, Intent, Reading};
use crosstalk_protocol::nearest_address;
use crosstalk_protocol::relay::{Handler, State};
use std::collections::BTreeSet;

/// That nobody has ever read the inbox where a message waits, with the address that may have been meant: one that the relay
/// may name to this caller, or one of the settings.
pub(crate) fn unread(config: &Config, delivery: &Delivered) -> Option<String> {
    if !delivery.never_read {
        return None;
    }
    let own = || {
        let addresses = config.names().iter().map(|(_, address)| address);
        nearest_address(&delivery.to, addresses)
    };
    let meant = delivery.did_you_mean.as_deref().or_else(own);
    let to = view::line(&delivery.to);
    Some(match meant {
        Some(meant) => format!(
            "No one has read {to} yet; did you mean {}?",
            view::line(meant)
        ),
        None => format!("No one has read {to} yet."),
    })
}

/// How many of the latest messages to people are looked through for the ESCALATE of a conversation.
const LOOKED_THROUGH: usize = 50;

/// Follows a message at a relay, and tells each piece of news once.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    told: BTreeSet<String>,
}

impl Watch {
    /// Tells what is new about a message. A relay that does not say how far the message is, is left alone: the message is
    /// there.
    pub(crate) fn tell(
        &mut self,
        console: &mut Console,
        config: &Config,
        remote: &Remote,
        id: &str,
    ) -> Result<(), Failure> {
        let Ok(status) = remote.status(id) else {
            return Ok(());
        };
        let mut news: Vec<String> = Vec::new();
        for delivery in &status.deliveries {
            news.extend(unread(config, delivery));
            let to = view::line(&delivery.to);
            if let Some(reason) = delivery.reason.as_ref().filter(|_| delivery.attempts > 0) {
                news.push(format!("{to}: {}.", view::line(reason)));
            }
            if delivery.by == Handler::CopyPaste.as_str()
                && delivery.state == State::Queued.as_str()
            {
                let url = shell::word(remote.url());
                news.push(format!(
                    "It waits for a person who carries it to {to}: `crosstalk carry --relay {url}`."
                ));
            }
        }
        let to_people = remote
            .search("to:human", LOOKED_THROUGH)
            .unwrap_or_default();
        let is_passed_on = |m: &&Waiting| {
            let document = Document::parse(&m.envelope, Reading::Strict);
            document.header(CoreHeader::Parent) == Some(id)
                && document.envelope().meaning() == Some(Intent::Escalate)
        };
        for asked in to_people.iter().filter(is_passed_on) {
            news.push(format!(
                "{} has asked a person, {}, and waits for the reply.",
                view::line(&asked.from),
                view::line(&asked.to)
            ));
        }
        for sentence in news {
            if self.told.insert(sentence.clone()) {
                console.talk(&format!("{}\n", styled(YELLOW, &sentence)))?;
            }
        }
        Ok(())
    }
}
