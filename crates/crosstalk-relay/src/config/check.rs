//! Reads `relay.toml` and reports its errors.

use super::Config;
use super::email::is_loopback;
use crosstalk_email::is_mail_address;
use crosstalk_envelope::name::{NameList, begins_with};
use crosstalk_envelope::{Address, Explanation};
use crosstalk_protocol::consent::{BorderPolicy, Jurisdiction, Policy, scopes};
use crosstalk_protocol::relay::{
    Agent, Directory, Handler, KnownNames, Pattern, RelayRules, Route, Routes, is_human,
};
use crosstalk_protocol::store::party;
use crosstalk_protocol::url::Url;
use std::sync::Arc;
use std::time::Duration;

/// An error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{explanation}")]
pub struct ConfigError {
    /// The place with its fault, and what to write instead.
    pub explanation: Explanation,
}

impl ConfigError {
    pub(super) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        let explanation = Explanation::new(what, help);
        Self { explanation }
    }
}

/// Whether a text is the origin of a browser extension: a scheme of extensions and an id. An ordinary page never has one.
pub(crate) fn is_extension_origin(origin: &str) -> bool {
    let rest = origin.split_once("-extension://");
    let Some((browser, id)) = rest else {
        return false;
    };
    let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
    matches!(browser, "chrome" | "moz" | "safari-web") && !id.is_empty() && id.chars().all(is_id)
}

impl Config {
    /// Reads a configuration, and checks that everything in it can be used.
    ///
    /// ```
    /// use crosstalk_relay::config::Config;
    /// let config = Config::parse("name = \"relay.example\"\n[[route]]\nto = \"CHATGPT\"\nby = \"copy_paste\"\n").unwrap();
    /// assert_eq!(config.listen.to_string(), "127.0.0.1:8799");
    /// let wrong = Config::parse("[[route]]\nto = \"CHATGPT\"\nby = \"pigeon\"\n").unwrap_err();
    /// assert!(wrong.to_string().contains("pigeon"));
    /// ```
    ///
    /// # Errors
    /// If the text is not valid; the error says where.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|e| ConfigError::new(e.to_string(), ""))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.name.trim().is_empty() || self.name.contains(char::is_whitespace) {
            return Err(ConfigError::new(
                "`name` is empty or has spaces in it",
                "write the domain of the relay, or `localhost`",
            ));
        }
        if let Some(person) = &self.escalate_to
            && !is_human(person)
        {
            return Err(ConfigError::new(
                format!("`escalate_to` is `{person}`, which is not the address of a person"),
                "write human://…",
            ));
        }
        self.check_retention()?;
        for origin in &self.extension.origins {
            if !is_extension_origin(origin) {
                return Err(ConfigError::new(
                    format!(
                        "`origins` of [extension] has `{origin}`, which is not the origin of a browser extension"
                    ),
                    "copy it from the options page of the extension: chrome-extension://… or moz-extension://…",
                ));
            }
        }
        if let Some(email) = &self.email {
            email.check()?;
        }
        if let Some(sms) = &self.sms {
            sms.check()?;
        }
        for route in &self.routes {
            self.check_route(route)?;
        }
        for address in &self.consent.authorities {
            pattern("`authorities` of [consent]", address)?;
        }
        for hold in &self.holds {
            hold.rule()?;
        }
        for watch in &self.watches {
            for address in &watch.addresses {
                pattern("addresses of a [[watch]]", address)?;
            }
        }
        let addresses = self.names.values();
        let agents = self.agents.iter().map(|a| &a.address);
        for address in addresses.chain(agents) {
            Address::parse(address)
                .map_err(|e| ConfigError::new(format!("`{address}` is no address: {e}"), ""))?;
        }
        Ok(())
    }

    /// Elsewhere in the file, 0 is "no limit". Here it would erase everything at the next check.
    fn check_retention(&self) -> Result<(), ConfigError> {
        let kept = &self.retention;
        if kept.days == Some(0) {
            return Err(ConfigError::new(
                "`days = 0` of [retention] would erase every message at once",
                "leave `days` out to keep messages, or write 1 or more",
            ));
        }
        let hours = [
            ("sensitive_hours", kept.sensitive_hours),
            ("unused_blob_hours", kept.unused_blob_hours),
        ];
        hours
            .into_iter()
            .find(|(_, hours)| *hours == 0)
            .map_or(Ok(()), |(key, _)| {
                Err(ConfigError::new(
                    format!("`{key} = 0` of [retention] would erase at once"),
                    "write 1 or more hours, or leave it out for 24",
                ))
            })
    }

    fn check_route(&self, route: &super::RouteEntry) -> Result<(), ConfigError> {
        let to = &route.to;
        pattern("`to` of a [[route]]", to)?;
        let missing = match route.handler() {
            None => {
                return Err(ConfigError::new(
                    format!(
                        "the [[route]] to `{to}` goes by `{}`, which this relay does not have",
                        route.by
                    ),
                    "write inbox, copy_paste, http, file, exec, relay, email, sms or mcp",
                ));
            }
            Some(Handler::Http) => route.url.is_none().then_some("url"),
            Some(Handler::File) => route.folder.is_none().then_some("folder"),
            Some(Handler::Exec) => route.command.is_empty().then_some("command"),
            Some(Handler::Email) => {
                self.check_mail_route(route)?;
                None
            }
            Some(Handler::Sms) => {
                self.check_text_route(route)?;
                None
            }
            Some(Handler::Mcp) => {
                check_tool_route(route)?;
                None
            }
            Some(Handler::Inbox | Handler::CopyPaste | Handler::Relay) => None,
        };
        missing.map_or(Ok(()), |key| {
            Err(ConfigError::new(
                format!("the [[route]] to `{to}` goes by {}", route.by),
                format!("add its `{key}`"),
            ))
        })
    }

    fn check_mail_route(&self, route: &super::RouteEntry) -> Result<(), ConfigError> {
        let to = &route.to;
        if self.email.as_ref().is_none_or(|email| email.out.is_none()) {
            return Err(ConfigError::new(
                format!("the [[route]] to `{to}` goes by email, and nothing says how mail is sent"),
                "add [email] with a `domain`, and [email.out] with the `host` of your mail server",
            ));
        }
        match &route.mail {
            Some(address) if !is_mail_address(address) => Err(ConfigError::new(
                format!(
                    "`mail` of the [[route]] to `{to}` is `{address}`, which is no mail address"
                ),
                "write it as in ann@acme.example",
            )),
            None if !begins_with(to, "email:") => Err(ConfigError::new(
                format!("the [[route]] to `{to}` goes by email, and says no mail address"),
                "add `mail = \"ann@acme.example\"`, or write `to = \"email:…\"`",
            )),
            _ => Ok(()),
        }
    }

    /// Settings that are valid and probably a mistake, a sentence each. The relay starts nevertheless.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let known = scopes();
        let consent = self.consent.signed.iter().chain(&self.consent.declared);
        for scope in consent.chain(self.holds.iter().flat_map(|h| &h.scopes)) {
            if scope != "*" && !known.iter().any(|k| k.eq_ignore_ascii_case(scope)) {
                doubts.push(format!(
                    "`{scope}` is a scope of your own, or mistyped: the known scopes are {}",
                    known.join(", ")
                ));
            }
        }
        for address in &self.consent.authorities {
            if address != "*" && !address.contains("://") && !self.names.contains_key(address) {
                doubts.push(format!(
                    "`authorities` of [consent] has `{address}`, which is no address: write human://…"
                ));
            }
        }
        for host in &self.hosts {
            if host.contains('/') {
                doubts.push(format!(
                    "`hosts` has `{host}`: write the name alone, without `https://` and path, as `Host` has it"
                ));
            }
        }
        doubts.extend(self.email.iter().flat_map(super::Email::doubts));
        doubts.extend(self.sms.iter().flat_map(super::Sms::doubts));
        for (number, route) in self.routes.iter().enumerate() {
            let covers = |earlier: &&super::RouteEntry| {
                let is_wide = earlier.to.ends_with('*') || !route.to.ends_with('*');
                let pattern = earlier.pattern().filter(|_| is_wide);
                pattern.is_some_and(|p| p.matches(route.to.trim_end_matches('*')))
            };
            let mut before = self.routes.iter().take(number);
            if let Some(earlier) = before.find(covers) {
                doubts.push(format!(
                    "the [[route]] to `{}` is never used, because `{}` comes before it and covers it",
                    route.to, earlier.to
                ));
            }
        }
        doubts
    }

    /// The rules of the relay, as configured.
    pub fn rules(&self) -> RelayRules {
        let line = |r: &super::RouteEntry| {
            Some(Route {
                to: r.pattern()?,
                by: r.handler()?,
                inside: r.inside,
                open: r.open,
            })
        };
        let names = self.names.iter().map(|(n, a)| (party(n), a.clone()));
        let own = std::iter::once(&self.name).chain(&self.domains);
        let agents = self.agents.iter().map(|a| Agent {
            address: a.address.clone(),
            capabilities: a.capabilities.clone(),
        });
        RelayRules {
            routes: Routes {
                table: self.routes.iter().filter_map(line).collect(),
                names: names.collect(),
                // The tokens are in the store.
                bindings: Vec::new(),
                domains: own.cloned().collect(),
                federates: self.federation.enabled,
                refuses_unknown: self.unknown == super::Unknown::Refuse,
            },
            directory: Directory::new(agents),
            escalate_to: self.escalate_to.clone(),
            answer_within: self.answer_within.map(Duration::from_secs),
            consent: self.consent.policy(),
            // `check` rejects unreadable rules. If one got here anyway, the relay holds every message.
            holds: self
                .holds
                .iter()
                .map(|h| h.rule().unwrap_or_default())
                .collect(),
            listed: KnownNames {
                configured: Arc::new(self.listed()),
                ..KnownNames::default()
            },
        }
    }

    /// The names and addresses that the configuration has, patterns aside.
    fn listed(&self) -> NameList {
        let names = self
            .names
            .iter()
            .flat_map(|(name, address)| [name, address]);
        let agents = self.agents.iter().map(|a| &a.address);
        let routes = self.routes.iter().map(|r| &r.to);
        let people = self.holds.iter().flat_map(|h| &h.deciders);
        let watched = self.watches.iter().flat_map(|w| &w.addresses);
        let all = names
            .chain(agents)
            .chain(routes)
            .chain(people)
            .chain(watched);
        let all = all
            .chain(&self.escalate_to)
            .chain(&self.consent.authorities);
        all.map(|a| a.trim())
            .filter(|a| !a.ends_with('*'))
            .collect()
    }
}

impl super::Consent {
    fn policy(&self) -> Policy {
        let mut policy = Policy {
            signed: self.signed.clone(),
            declared: self.declared.clone(),
            border: match self.border {
                super::Border::Sensitive => BorderPolicy::Sensitive,
                super::Border::All => BorderPolicy::All,
            },
            authorities: self
                .authorities
                .iter()
                .filter_map(|a| Pattern::parse(a).ok())
                .collect(),
            ..Policy::default()
        };
        for law in &self.jurisdictions {
            let is_other = |j: &Jurisdiction| !j.name.eq_ignore_ascii_case(&law.name);
            policy.jurisdictions.retain(is_other);
            policy.jurisdictions.push(law.clone());
        }
        policy
    }
}

fn check_tool_route(route: &super::RouteEntry) -> Result<(), ConfigError> {
    let to = &route.to;
    let fault = |what: &str, help: &str| {
        let what = format!("the [[route]] to `{to}` goes by mcp, and {what}");
        Err(ConfigError::new(what, help))
    };
    if !begins_with(to, "mcp:") {
        return fault(
            "its addresses are none of tools",
            "write `to = \"mcp://TOOL@HOST\"`; [names] can give it a simple name",
        );
    }
    if route.command.is_empty() == route.url.is_none() {
        return fault(
            "has to name one server",
            "add `command = [\"PROGRAM\", \"ARGUMENT\"]` for a server on this machine, or `url` for one over HTTP",
        );
    }
    let url = route.url.as_deref().map(Url::parse);
    if let Some(Ok(url)) = url
        && route.token_file.is_some()
        && !url.is_https()
        && !is_loopback(&url.host().to_string())
    {
        return fault("would send its token without TLS", "write https://");
    }
    if route.tools.iter().any(|tool| tool.trim().is_empty()) {
        return fault("`tools` has an empty name", "write the names of its tools");
    }
    let is_one = route.tool(to).is_some() || !route.tools.is_empty();
    match is_one {
        true => Ok(()),
        false => fault(
            "nothing says which tools may be called",
            "add `tools = [\"NAME\"]`, or write `to = \"mcp://TOOL@HOST\"`",
        ),
    }
}

pub(super) fn pattern(place: &str, text: &str) -> Result<Pattern, ConfigError> {
    Pattern::parse(text).map_err(|e| ConfigError::new(format!("{place}, `{text}`: {e}"), ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubtful_settings_are_named() {
        let route = |to: &str| format!("[[route]]\nto = \"{to}\"\nby = \"inbox\"\n");
        let text = format!(
            "hosts = [\"https://relay.example/\"]\n[consent]\nsigned = [\"medcal\", \"medical\", \"*\"]\nauthorities = \
             [\"ann\", \"human://acme.example/dpo\"]\n{}{}{}{}",
            route("bot://a"),
            route("bot://*"),
            route("bot://b"),
            route("bot://c/*")
        );
        let doubts = Config::parse(&text).unwrap().doubts();
        let wanted = [
            "`medcal`",
            "`ann`",
            "`https://relay.example/`",
            "`bot://b`",
            "`bot://c/*`",
        ];
        assert_eq!(doubts.len(), wanted.len(), "{doubts:#?}");
        for (doubt, wanted) in doubts.iter().zip(wanted) {
            assert!(doubt.contains(wanted), "{doubt}");
        }
    }

    #[test]
    fn retention_of_zero_is_rejected() {
        for key in ["days", "sensitive_hours", "unused_blob_hours"] {
            let read = |n: u32| Config::parse(&format!("[retention]\n{key} = {n}\n"));
            let fault = read(0).unwrap_err().to_string();
            assert!(fault.contains(&format!("`{key} = 0`")), "{fault}");
            assert!(fault.contains("write 1 or more"), "{fault}");
            assert!(read(1).is_ok(), "{key}");
        }
    }

    #[test]
    fn a_route_to_a_tool_names_one_server_and_its_tools() {
        let read = |to: &str, more: &str| {
            Config::parse(&format!("[[route]]\nto = \"{to}\"\nby = \"mcp\"\n{more}\n"))
        };
        let command = "command = [\"docs\"]";
        let tool = |to: &str, more: &str, asked: &str| {
            let config = read(to, more).unwrap();
            config.routes[0].tool(asked).map(str::to_owned)
        };
        let found = tool("mcp://Look@docs", command, "mcp://look@docs");
        assert_eq!(found.as_deref(), Some("Look"));
        let listed = format!("{command}\ntools = [\"get/page\"]");
        assert_eq!(
            tool("mcp://docs", &listed, "mcp://docs").as_deref(),
            Some("get/page")
        );
        let several = format!("{command}\ntools = [\"Look\", \"fetch\"]");
        assert_eq!(
            tool("mcp://*", &several, "mcp://LOOK@x").as_deref(),
            Some("Look")
        );
        assert_eq!(tool("mcp://*", &several, "mcp://write@x"), None);
        assert_eq!(tool("mcp://*", &several, "mcp://x"), None);
        for url in ["https://a.example/", "http://127.0.0.1:9/", "http://[::1]/"] {
            let with_token = format!("url = \"{url}\"\ntoken_file = \"t\"");
            assert!(read("mcp://look@docs", &with_token).is_ok(), "{url}");
        }
        assert!(read("mcp://look@docs", "url = \"http://a.example/\"").is_ok());
        for (to, more, word) in [
            ("LOOK", command, "mcp://TOOL@HOST"),
            ("mcp://*", command, "`tools"),
            ("mcp://docs", command, "`tools"),
            ("mcp://look@docs", "", "`command"),
            (
                "mcp://look@docs",
                "command = [\"a\"]\nurl = \"https://a.example/\"",
                "one server",
            ),
            (
                "mcp://look@docs",
                "url = \"http://a.example/\"\ntoken_file = \"t\"",
                "without TLS",
            ),
            (
                "mcp://*",
                "command = [\"a\"]\ntools = [\" \"]",
                "empty name",
            ),
        ] {
            let fault = read(to, more).unwrap_err().to_string();
            assert!(fault.contains(word), "{to} {more}: {fault}");
        }
    }
}
