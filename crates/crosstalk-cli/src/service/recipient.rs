//! Whom a message is for, as it is typed: an address, a name of the settings, a name that a domain lists, or a name for a
//! person to resolve.

use crate::console::Console;
use crate::failure::Failure;
use crate::service::dns::{DnsOptions, server};
use crate::service::settings::Settings;
use crate::service::workspace::Workspace;
use clap::Args;
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::{SCHEMES, SchemeKind, rule};
use crosstalk_protocol::dns::AddressAnswer;
use crosstalk_protocol::store::{Page, ThreadFilter, is_same_party};
use crosstalk_protocol::{edit_distance, name_to_ask, resolve, split_receivers};
use std::net::SocketAddr;

/// Whether and whom to ask for the address of a name.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Ask {
    /// Ask the domain for the address of a name. Without this or the setting `dns`, the command asks no name server
    #[arg(long)]
    dns: bool,
    /// The domain that lists addresses of names; else that of the settings
    #[arg(long, value_name = "DOMAIN", requires = "dns")]
    domain: Option<String>,
    /// Ask this name server, and not those of the system
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = server, requires = "dns")]
    dns_server: Option<SocketAddr>,
}

impl Ask {
    /// The address to write, after asking the domain if that was asked for and the name is not in the settings.
    pub(crate) fn resolve(
        &self,
        console: &mut Console,
        config: &Settings,
        typed: &str,
    ) -> Result<String, Failure> {
        let answer = self.answer(config, typed)?;
        let resolution = resolve(typed, config.names(), answer.as_ref());
        if resolution.is_retry() {
            let what = format!("`{typed}` stays a name");
            let fault = Failure::of_rule(&rule::NAME_UNAVAILABLE, &what);
            if self.dns {
                return Err(fault);
            }
            console.note(&fault.to_string())?;
        }
        Ok(written(typed, resolution.result))
    }

    /// The same for several with commas between them.
    pub(crate) fn resolve_each(
        &self,
        console: &mut Console,
        config: &Settings,
        typed: &str,
    ) -> Result<Vec<String>, Failure> {
        each(config, typed, |part| self.resolve(console, config, part))
    }

    fn answer(&self, config: &Settings, typed: &str) -> Result<Option<AddressAnswer>, Failure> {
        let domain = self.domain.clone().or_else(|| config.domain());
        // The setting asks where there is a domain; who says --dns wants to know that there is none.
        let is_asked = self.dns || (config.dns() && domain.is_some());
        if !is_asked {
            return Ok(None);
        }
        let look = DnsOptions {
            dns: true,
            dns_server: self.dns_server,
            ..DnsOptions::default()
        };
        ask_domain(&look, config, domain, typed)
    }
}

/// Asks a domain about a name, unless the name is in the settings or is an address already.
pub(crate) fn ask_domain(
    look: &DnsOptions,
    config: &Settings,
    domain: Option<String>,
    typed: &str,
) -> Result<Option<AddressAnswer>, Failure> {
    let Some(name) = name_to_ask(typed, config.names()) else {
        return Ok(None);
    };
    let domain = domain.ok_or_else(|| {
        Failure::usage("no domain to ask")
            .help("add --domain example.com, or `crosstalk config set domain example.com`")
    })?;
    let answer = look.connect()?.addresses_blocking(name, &domain);
    Ok(Some(match look.require_dnssec {
        true => answer.protected(),
        false => answer,
    }))
}

/// The most receivers of one message.
const MOST: usize = 20;

/// The receivers that a person typed, each as `find` writes it. A name of the settings may have a comma in it.
fn each(
    config: &Settings,
    typed: &str,
    mut find: impl FnMut(&str) -> Result<String, Failure>,
) -> Result<Vec<String>, Failure> {
    let parts = match config.names().get(typed) {
        Some(_) => vec![typed],
        None => split_receivers(typed),
    };
    if parts.len() > MOST {
        return Err(Failure::usage(format!(
            "`{typed}` names {} receivers, and a message goes to at most {MOST}",
            parts.len()
        ))
        .help("send it in several rounds"));
    }
    let mut receivers: Vec<String> = Vec::new();
    for part in parts {
        if config.names().get(part).is_none() && is_sentence(part) {
            return Err(Failure::usage(format!(
                "`{part}` is no name: the receiver comes first, as in `crosstalk send chatgpt \"Your question\"`; several are \
                 written with commas between them and no space"
            )));
        }
        let receiver = find(part)?;
        if receivers.iter().any(|r| is_same_party(r, &receiver)) {
            return Err(Failure::usage(format!("{receiver} is named twice"))
                .help("name each receiver once"));
        }
        receivers.push(receiver);
    }
    Ok(receivers)
}

/// Whether somebody typed a text, or a list with a gap, where a receiver belongs.
fn is_sentence(typed: &str) -> bool {
    let is_text = typed.contains(char::is_whitespace) && typed.ends_with(['?', '!', '.']);
    Address::split(typed).is_name() && (is_text || typed.trim_matches(',') != typed)
}

/// The addresses to write for what is typed, one or several with commas between them, without asking anybody.
pub(crate) fn resolve_each(config: &Settings, typed: &str) -> Result<Vec<String>, Failure> {
    each(config, typed, |part| Ok(resolve_typed(config, part)))
}

/// The address to write for what is typed, without asking anybody.
pub(crate) fn resolve_typed(config: &Settings, typed: &str) -> String {
    written(typed, resolve(typed, config.names(), None).result)
}

/// The known name that is at most two letters away from an unknown one: a name of the settings, of the conversations so far,
/// or of a well-known chat. For an address with an unknown scheme, the address with the scheme that is one letter away.
pub(crate) fn meant_by(
    workspace: &Workspace,
    console: &mut Console,
    receiver: &str,
) -> Result<Option<String>, Failure> {
    const LETTERS: usize = 2;
    let address = Address::split(receiver);
    if let (Some(scheme), Some(SchemeKind::Custom)) = (address.scheme(), address.kind()) {
        let known = SCHEMES.iter().map(|s| s.name);
        let near = known.map(|name| (edit_distance(scheme, name), name)).min();
        let near = near.filter(|(letters, _)| *letters == 1);
        return Ok(near.map(|(_, name)| receiver.replacen(scheme, name, 1)));
    }
    if address.scheme().is_some() || receiver.chars().count() < 4 {
        return Ok(None);
    }
    let mut known: Vec<String> = ["CHATGPT", "CLAUDE", "GEMINI"].map(str::to_owned).into();
    known.extend(
        workspace
            .config
            .names()
            .iter()
            .map(|(name, _)| name.to_owned()),
    );
    if let Some(store) = workspace.messages(console)? {
        let threads = store.threads(&ThreadFilter::default(), Page::first(50))?;
        known.extend(threads.items.into_iter().flat_map(|t| t.parties));
    }
    known.retain(|name| Address::split(name).is_name());
    if known.iter().any(|name| is_same_party(name, receiver)) {
        return Ok(None);
    }
    let typed = receiver.to_uppercase();
    let near = known
        .into_iter()
        .map(|name| (edit_distance(&typed, &name.to_uppercase()), name));
    let near = near.min().filter(|(letters, _)| *letters <= LETTERS);
    Ok(near.map(|(_, name)| name))
}

/// A resolved address is written as it is. A name that stands for nothing stays one, in capitals as names are usually
/// written, if it was typed in small letters.
fn written(typed: &str, found: String) -> String {
    match found == typed {
        true => capitals(typed),
        false => found,
    }
}

/// A simple name in capitals, if it has no capital; everything else as it is.
fn capitals(typed: &str) -> String {
    let is_name = Address::split(typed).scheme().is_none();
    match is_name && !typed.chars().any(char::is_uppercase) {
        true => typed.to_uppercase(),
        false => typed.to_owned(),
    }
}

/// The sender of a message: the one that was typed, else that of the settings.
pub(crate) fn sender_or_own(config: &Settings, typed: Option<&str>) -> Result<String, Failure> {
    match typed {
        Some(typed) => Ok(resolve_typed(config, typed)),
        None => config.sender(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_in_small_letters_become_capitals() {
        for (typed, written) in [
            ("chatgpt", "CHATGPT"),
            ("brother ai", "BROTHER AI"),
            ("McCloud", "McCloud"),
            ("claude://session/abc", "claude://session/abc"),
            ("email:a@b.example", "email:a@b.example"),
        ] {
            assert_eq!(capitals(typed), written);
        }
    }
}
