//! Routing: the table of routes, `X-Delivery`, and the defaults without either.

use super::accept::shown;
use super::delivery::{Handler, Recipient};
use super::pattern::Pattern;
use super::peer::{Role, authority, is_human};
use super::port::TokenRecord;
use crate::store::{is_same_party, party};
use crosstalk_envelope::Address;
use crosstalk_envelope::name::same_host;
use crosstalk_envelope::registry::{ErrorCode, SchemeKind};
use crosstalk_envelope::reply::Rejection;
use std::collections::BTreeMap;

/// Schemes of networks for which there is no bridge.
const BRIDGES: [&str; 6] = ["matrix", "xmpp", "slack", "discord", "mcp", "sms"];

/// One line of the table: these addresses go this way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Which addresses.
    pub to: Pattern,
    /// How they are reached.
    pub by: Handler,
    /// Whether what it leads to belongs to the organisation, although a message leaves the relay on it.
    pub inside: bool,
    /// Whether callers that the operator does not know may send on it, although that costs money or runs a tool.
    pub open: bool,
}

impl Route {
    /// Whether only callers that the operator knows may send on it (HTP-061).
    pub fn is_guarded(&self) -> bool {
        !self.open && is_guarded(self.by)
    }
}

/// Whether a delivery costs the operator money, or runs a tool of theirs.
const fn is_guarded(by: Handler) -> bool {
    // Every handler is named, so that a new one can't be open by mistake.
    match by {
        Handler::Sms | Handler::Mcp => true,
        Handler::Inbox
        | Handler::CopyPaste
        | Handler::Http
        | Handler::File
        | Handler::Exec
        | Handler::Relay
        | Handler::Email => false,
    }
}

/// Addresses that a token is bound to: what is for them waits in an inbox until their owner comes for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Which addresses.
    pub to: Pattern,
    /// What the token is for.
    pub role: Role,
}

impl Binding {
    /// The bindings of all tokens. One that was revoked or has expired counts as well: what came for its owner is not for
    /// others. `*` names nobody, and binds nothing.
    pub fn of(tokens: &[TokenRecord]) -> Vec<Self> {
        let bindings = tokens.iter().flat_map(|token| {
            let patterns = token
                .addresses
                .iter()
                .filter_map(|a| Pattern::parse(a).ok());
            patterns.filter(|p| !p.is_all()).map(|to| Self {
                to,
                role: token.role,
            })
        });
        bindings.collect()
    }
}

/// The table of routes, and what holds for addresses that are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The table; the first line that fits counts.
    pub table: Vec<Route>,
    /// Simple names of this relay and the addresses that they stand for; the keys are in the form of
    /// [`party`].
    pub names: BTreeMap<String, String>,
    /// The addresses that tokens are bound to.
    pub bindings: Vec<Binding>,
    /// The domains that are this relay's own.
    pub domains: Vec<String>,
    /// Whether messages are passed on to relays of other domains.
    pub federates: bool,
    /// Whether the relay rejects addresses that no route, name or domain of it covers.
    pub refuses_unknown: bool,
}

impl Routes {
    /// The address that a simple name stands for here, else the address itself.
    pub fn named<'a>(&'a self, address: &'a str) -> &'a str {
        match Address::split(address).is_name() {
            true => self
                .names
                .get(&party(address))
                .map_or(address, String::as_str),
            false => address,
        }
    }

    /// Whether a pattern covers an address, or a name that stands for it.
    pub fn covers(&self, pattern: &Pattern, address: &str) -> bool {
        let is_name_of =
            |(name, a): (&String, &String)| is_same_party(a, address) && pattern.matches(name);
        pattern.matches(address) || self.names.iter().any(is_name_of)
    }

    /// Whether a token is bound to an address: it is an inbox, and nobody carries messages there.
    pub fn is_bound(&self, address: &str) -> bool {
        let address = self.named(address);
        self.bindings.iter().any(|b| self.covers(&b.to, address))
    }

    /// Whether an address is that of a person, or a simple name that the token of a person is bound to.
    pub fn is_persons(&self, address: &str) -> bool {
        let is_bound = |b: &Binding| b.role != Role::Agent && b.to.matches(address);
        let is_name = Address::split(address).is_name();
        is_human(self.named(address)) || (is_name && self.bindings.iter().any(is_bound))
    }

    /// Every address and name of the person at an address or behind a name; nothing if it is none of a person.
    ///
    /// ```
    /// use crosstalk_protocol::relay::Routes;
    /// let names = [("ANN".to_owned(), "human://acme.example/ann".to_owned())];
    /// let routes = Routes { names: names.into(), ..Routes::default() };
    /// assert_eq!(routes.of_person("ann"), ["human://acme.example/ann", "ANN"]);
    /// assert!(routes.of_person("claude://code/api").is_empty());
    /// ```
    pub fn of_person(&self, address: &str) -> Vec<String> {
        let person = self.named(address);
        if !is_human(person) {
            return Vec::new();
        }
        let stands = |(_, a): &(&String, &String)| is_same_party(a, person);
        let names = self.names.iter().filter(stands).map(|(name, _)| name);
        std::iter::once(person.to_owned())
            .chain(names.cloned())
            .collect()
    }

    /// Whether an address belongs to another organisation.
    pub fn is_foreign(&self, address: &str) -> bool {
        let is_own = |d: &str| self.domains.iter().any(|o| same_host(o, d));
        authority(address).is_some_and(|d| !is_own(d))
    }

    /// Whether a message gets to a third party on its way to a recipient: another relay, an endpoint, a program, by any way
    /// an address of another organisation or a phone number, or a network that a person carries it to, unless the route
    /// says that it is inside.
    pub fn leaves(&self, recipient: &Recipient) -> bool {
        let address = Address::split(&recipient.address);
        // Every handler is named, so that a new one can't skip the check of consent.
        let is_third_party = match recipient.by {
            Handler::Relay
            | Handler::Http
            | Handler::Exec
            | Handler::Email
            | Handler::Sms
            | Handler::Mcp => true,
            Handler::CopyPaste => bridge(&address).is_some(),
            Handler::Inbox | Handler::File => false,
        };
        let goes_out = is_third_party || is_phone(&address) || self.is_foreign(&recipient.address);
        let mut lines = self.table.iter();
        let line = lines.find(|r| r.by == recipient.by && r.to.matches(&recipient.address));
        goes_out && !line.is_some_and(|r| r.inside)
    }

    /// Whether only callers that the operator knows may send to a recipient (HTP-061).
    pub fn is_guarded(&self, recipient: &Recipient) -> bool {
        let mut lines = self.table.iter();
        let line = lines.find(|r| r.by == recipient.by && r.to.matches(&recipient.address));
        line.map_or(is_guarded(recipient.by), Route::is_guarded)
    }

    /// How an address is reached, if the sender asks for a way or leaves it open.
    ///
    /// ```
    /// use crosstalk_protocol::relay::{Handler, Routes};
    /// let routes = Routes::default();
    /// assert_eq!(routes.choose("claude://session/abc", None), Ok(Handler::Inbox));
    /// assert_eq!(routes.choose("CHATGPT", None), Ok(Handler::CopyPaste));
    /// assert_eq!(routes.choose("CHATGPT", Some("pigeon")).unwrap_err().code.as_str(), "E-UNSUPPORTED");
    /// assert_eq!(routes.choose("CHATGPT", Some("exec")).unwrap_err().code.as_str(), "E-ROUTE");
    /// ```
    ///
    /// # Errors
    /// The refusal, if there is no way.
    pub fn choose(&self, address: &str, asked: Option<&str>) -> Result<Handler, Rejection> {
        let lines = || self.table.iter().filter(|r| r.to.matches(address));
        match asked.map(|word| (word, Handler::parse(word))) {
            Some((word, Some(Handler::CopyPaste))) if self.is_bound(address) => {
                Err(Rejection::new(
                    ErrorCode::Route,
                    format!(
                        "`X-Delivery: {word}` is asked for, and {} has an inbox at this relay.",
                        shown(address)
                    ),
                    "leave X-Delivery out.",
                ))
            }
            Some((_, Some(by @ (Handler::Inbox | Handler::CopyPaste)))) => Ok(by),
            Some((_, Some(Handler::Relay))) if self.may_pass_on(address) => Ok(Handler::Relay),
            Some((word, Some(by))) => {
                let is_there = lines().any(|r| r.by == by);
                is_there.then_some(by).ok_or_else(|| {
                    Rejection::new(
                        ErrorCode::Route,
                        format!(
                            "`X-Delivery: {word}` is asked for, and this relay has no such route to {}.",
                            shown(address)
                        ),
                        "leave X-Delivery out, or ask the relay operator to add a route.",
                    )
                })
            }
            Some((word, None)) => Err(Rejection::new(
                ErrorCode::Unsupported,
                format!(
                    "`X-Delivery: {}` is a way that this relay does not have.",
                    shown(word)
                ),
                "leave it out, or use one of inbox, copy_paste, http, file, exec, relay, email, sms and mcp.",
            )),
            None => match lines().next() {
                Some(route) if route.by == Handler::CopyPaste && self.is_bound(address) => {
                    Ok(Handler::Inbox)
                }
                Some(route) => Ok(route.by),
                None => self.unlisted(address),
            },
        }
    }

    /// The way of an address that is not in the table.
    fn unlisted(&self, address: &str) -> Result<Handler, Rejection> {
        let split = Address::split(address);
        let gateway = match split.kind() {
            Some(SchemeKind::Mail) => Some("mail"),
            Some(SchemeKind::Phone) => Some("the telephone network"),
            _ => bridge(&split),
        };
        if let Some(gateway) = gateway {
            return Err(Rejection::new(
                ErrorCode::Unsupported,
                format!(
                    "This relay has no bridge to {}, which {} needs.",
                    shown(gateway),
                    shown(address)
                ),
                "set `X-Delivery: copy_paste` to have a person carry it, or add a route for this address.",
            ));
        }
        if self.may_pass_on(address) {
            return Ok(Handler::Relay);
        }
        if self.is_bound(address) {
            return Ok(Handler::Inbox);
        }
        if self.refuses_unknown && (split.is_name() || self.is_foreign(address)) {
            return Err(Rejection::new(
                ErrorCode::Route,
                format!("This relay does not know {}.", shown(address)),
                "check the address, or ask the relay operator to add a route or a name for it.",
            ));
        }
        Ok(match split.is_name() {
            true => Handler::CopyPaste,
            false => Handler::Inbox,
        })
    }

    fn may_pass_on(&self, address: &str) -> bool {
        self.federates && self.is_foreign(address)
    }
}

/// The network of an address for which there is no bridge.
fn bridge<'a>(address: &Address<'a>) -> Option<&'a str> {
    let scheme = address.scheme();
    scheme.filter(|s| BRIDGES.iter().any(|b| b.eq_ignore_ascii_case(s)))
}

/// Whether an address is a phone number, of which no organisation is the relay's own.
fn is_phone(address: &Address<'_>) -> bool {
    address.kind() == Some(SchemeKind::Phone) || address.host().is_some_and(|h| h.starts_with('+'))
}
