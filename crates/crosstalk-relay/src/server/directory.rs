//! The endpoints that resolve names, list agents and declare their capabilities.

use super::query::{self, Query, TEXT};
use super::response::{HttpError, Json};
use super::router::{Accepts, Call};
use crate::core::Relay;
use crosstalk_api::directory::{
    AgentInfo, Agents, MAX_CAPABILITIES, MAX_CAPABILITY_CHARS, NAME, Resolved, RouteList, RouteView,
};
use crosstalk_envelope::Address;
use crosstalk_envelope::name::same_name;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::dns::{AddressAnswer, host_fault};
use crosstalk_protocol::relay::Agent;
use crosstalk_protocol::relay::port::RegistryChange;
use crosstalk_protocol::store::may_answer;
use crosstalk_protocol::{NameStep, NameTable, name_to_ask};
use serde_json::{Value, json};
use std::time::Duration;

/// How long the DNS may take.
const DNS: Duration = Duration::from_secs(10);
/// How many agents there may be for which one credential speaks.
const AGENTS: usize = 512;

pub(super) async fn resolve(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<Resolved>, HttpError> {
    let name = query.required(&NAME)?;
    let relay = &call.server.relay;
    let mut names = NameTable::default();
    for (name, address) in &relay.config().names {
        // An invalid name resolves to nothing.
        let _ = names.add(name, address);
    }
    let dns = match name_to_ask(name, &names) {
        Some(asked) => ask_dns(relay, asked).await,
        None => None,
    };
    let resolution = crosstalk_protocol::resolve(name, &names, dns.as_ref());
    let mut steps: Vec<Value> = resolution.steps.iter().map(step).collect();
    let by_dns = resolution
        .steps
        .iter()
        .any(|s| matches!(s, NameStep::Dns { .. }));
    let (mut by, mut address) = match (resolution.is_resolved(), by_dns) {
        (true, true) => ("dns", Some(resolution.result.clone())),
        (true, false) => ("names", Some(resolution.result.clone())),
        (false, _) => ("nobody", None),
    };
    if address.is_none() {
        let rules = relay.rules();
        // Only agents of the configuration: nobody takes a name over by declaring an address that fits it.
        let agents = rules.directory.agents().map(|a| a.address);
        let fits = |a: &String| !Address::split(a).is_name() && may_answer(a, &resolution.result);
        let found: Vec<String> = agents.filter(fits).collect();
        steps.push(json!({"step": "directory", "addresses": found}));
        if let [only] = found.as_slice() {
            (by, address) = ("directory", Some(only.clone()));
        }
    }
    Ok(Json(Resolved {
        name: name.to_owned(),
        address,
        by: by.to_owned(),
        steps,
    }))
}

pub(super) async fn routes(call: Call, _: Accepts) -> Json<RouteList> {
    let rules = call.server.relay.rules();
    let routes = rules.routes.table.iter().map(|route| RouteView {
        to: route.to.to_string(),
        by: route.by.as_str().to_owned(),
    });
    Json(RouteList {
        routes: routes.collect(),
    })
}

/// What the domains of this relay say about a name, the first that has it.
async fn ask_dns(relay: &Relay, name: &str) -> Option<AddressAnswer> {
    let config = relay.config();
    let resolver = relay.resolver().filter(|_| config.federation.enabled)?;
    let mut last = None;
    let domains = std::iter::once(&config.name).chain(&config.domains);
    for domain in domains.filter(|d| d.contains('.') && host_fault(d).is_none()) {
        let answer = tokio::time::timeout(DNS, resolver.addresses(name, domain)).await;
        let answer = answer.unwrap_or_else(|_| AddressAnswer::Unavailable {
            reason: format!("{domain}: no answer within {} seconds", DNS.as_secs()),
        });
        let is_found = matches!(answer, AddressAnswer::Found { .. });
        last = Some(answer);
        if is_found {
            break;
        }
    }
    last
}

/// A step on the way from a name to an address.
fn step(step: &NameStep) -> Value {
    let word = step.as_str();
    match step {
        NameStep::Url { address } => json!({"step": word, "address": address}),
        NameStep::Table { name, address } => {
            json!({"step": word, "name": name, "address": address})
        }
        NameStep::NotInTable { name } | NameStep::TooLong { name } | NameStep::Person { name } => {
            json!({"step": word, "name": name})
        }
        NameStep::Loop { way } => json!({"step": word, "way": way}),
        NameStep::Dns {
            at,
            address,
            others,
            wrong,
            dnssec,
        } => json!({
            "step": word, "at": at, "address": address, "others": others, "wrong": wrong, "dnssec": dnssec.as_str(),
        }),
        NameStep::NotInDns { at, dnssec } => {
            json!({"step": word, "at": at, "dnssec": dnssec.as_str()})
        }
        NameStep::DnsWrong { reason }
        | NameStep::DnsUnavailable { reason }
        | NameStep::DnsUnasked { reason } => json!({"step": word, "reason": reason}),
    }
}

pub(super) async fn agents(call: Call, _: Accepts) -> Json<Agents> {
    let rules = call.server.relay.rules();
    let agents = rules.directory.agents().map(info_of).collect();
    Json(Agents { agents })
}

fn info_of(agent: Agent) -> AgentInfo {
    AgentInfo {
        address: agent.address,
        capabilities: agent.capabilities,
    }
}

/// Notes what an agent offers. The answer says what it can do now: what was assigned to it, as far as it offers it.
pub(super) async fn declare(
    call: Call,
    Json(view): Json<AgentInfo>,
) -> Result<Json<AgentInfo>, HttpError> {
    query::check_text("address", &view.address, TEXT)?;
    if let Err(fault) = Address::parse(&view.address) {
        return Err(HttpError::format(
            format!("`address` is no address: {fault}."),
            "give a name, or a URL such as claude://code/api.",
        ));
    }
    if view.capabilities.len() > MAX_CAPABILITIES {
        return Err(HttpError::format(
            format!("`capabilities` has more than {MAX_CAPABILITIES} texts."),
            "declare the most important ones.",
        ));
    }
    for capability in &view.capabilities {
        query::check_text("A capability", capability, MAX_CAPABILITY_CHARS)?;
    }
    if !call
        .server
        .relay
        .rules()
        .lets_speak(&call.caller.peer, &view.address)
    {
        return Err(HttpError::forbidden(
            format!(
                "The credential `{}` does not speak for {}.",
                call.caller.peer.name,
                crosstalk_envelope::unicode::escape(&view.address)
            ),
            "use one that is bound to this address.",
        ));
    }
    let relay = &call.server.relay;
    let rules = relay.rules();
    let declared = rules.directory.declared();
    let mut others = declared
        .iter()
        .filter(|a| call.caller.peer.speaks_for(&a.address));
    let is_known = declared
        .iter()
        .any(|a| same_name(&a.address, &view.address));
    if !is_known && others.nth(AGENTS - 1).is_some() {
        return Err(HttpError::new(
            ErrorCode::TooLarge,
            format!(
                "The credential `{}` speaks for {AGENTS} agents that were declared, and there are no more for \
                     one credential.",
                call.caller.peer.name
            ),
            "declare one of them again, or use another credential.",
        ));
    }
    let agent = Agent {
        address: view.address.clone(),
        capabilities: view.capabilities.clone(),
    };
    let at = relay.now();
    let declare = RegistryChange::Declare { agent, at };
    relay.store().change_registry(declare).await?;
    // The directory goes by it from now on.
    relay.registry().await?;
    let agent = relay.rules().directory.get(&view.address);
    Ok(Json(agent.map_or(
        AgentInfo {
            capabilities: Vec::new(),
            ..view
        },
        info_of,
    )))
}
