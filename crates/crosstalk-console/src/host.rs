//! The port to the relay that serves the console. The console sees no store: it asks who somebody is, and gets a client of the HTTP
//! API that calls in the name of that credential.

use crate::link::LinkKey;
use axum::extract::Request;
use crosstalk_api::client::Client;
use crosstalk_envelope::{Explanation, Timestamp};
use crosstalk_protocol::port::Later;
use crosstalk_protocol::relay::Peer;
use http::{Extensions, HeaderMap};
use std::sync::Arc;
use tokio::sync::watch;

/// The credential that somebody signed in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleCredential {
    /// The person at the machine of a relay without tokens, by a one-time link.
    Local,
    /// A token, by the hash of its secret.
    Token([u8; 32]),
}

/// A person whose credential counts now.
#[derive(Clone)]
pub struct Entrance {
    /// The caller, with its role and addresses.
    pub peer: Arc<Peer>,
    /// Calls the endpoints of the relay with the rights of this caller, and no others.
    pub client: Client,
}

/// Why somebody is not let in: what happened and what to do, and the status of the answer.
#[derive(Clone, Debug)]
pub struct NoEntrance {
    /// The status of the answer.
    pub status: u16,
    /// An error: the fact, and the way out.
    pub why: Explanation,
}

/// The relay that serves the console.
pub trait ConsoleHost: Send + Sync {
    /// The name of the relay.
    fn relay_name(&self) -> String;

    /// The time.
    fn now(&self) -> Timestamp;

    /// Whether browsers reach it with TLS, as far as the relay knows.
    fn is_tls(&self) -> bool;

    /// Where it is reached, by the `Host` of a request: for commands that pages show.
    fn url(&self, headers: &HeaderMap) -> String;

    /// The key of one-time links.
    fn link_key(&self) -> &LinkKey;

    /// Checks that a request came under a name of the relay, and from none of other sites.
    ///
    /// # Errors
    /// Why not.
    fn check_site(&self, request: &Request) -> Result<(), NoEntrance>;

    /// The credential of a token. The request counts for the rate limit of its address.
    ///
    /// # Errors
    /// The token does not count, or there were too many attempts.
    fn identify<'h>(
        &'h self,
        token: &'h str,
        request: &'h Extensions,
    ) -> Later<'h, Result<ConsoleCredential, NoEntrance>>;

    /// Lets the owner of a credential in, if it still counts.
    ///
    /// # Errors
    /// It was revoked, has expired, or makes too many requests.
    fn enter<'h>(
        &'h self,
        credential: ConsoleCredential,
        request: &'h Extensions,
    ) -> Later<'h, Result<Entrance, NoEntrance>>;

    /// Whether a credential still counts.
    fn has_credential(&self, credential: ConsoleCredential) -> Later<'_, bool>;

    /// Counts how often the relay has indexed something since it started: it grows when something may be new on a page.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Waits until the relay stops.
    fn stopped(&self) -> Later<'_, ()>;
}
