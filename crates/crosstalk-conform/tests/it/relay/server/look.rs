//! The paths that look something up, or change one thing.

use super::{Asked, Fault, Reply, Server, TEXT, fault, json_reply, texts};
use crate::relay::defect::Defect;
use crate::relay::model::{Model, now};
use crosstalk_envelope::registry::{ErrorCode, Intent};
use crosstalk_protocol::relay::{
    Agent, Binding, DeliveryState, Handler, Pattern, Peer, Role, authority,
};
use serde_json::{Value, json};

impl Server {
    pub(super) fn blob(&self, asked: &Asked, name: &str) -> Result<Reply, Fault> {
        let mut model = self.model.lock().unwrap();
        if crosstalk_envelope::meta::Digest::parse(name).is_none() {
            return Err(fault(ErrorCode::Format, "No digest"));
        }
        if asked.method == "PUT" {
            let is_new = model
                .put(name, &asked.body, &asked.peer)
                .map_err(|r| Fault(r, None, Vec::new()))?;
            let status = match is_new || !self.has(Defect::TellsKnownBlobs) {
                true => 201,
                false => 200,
            };
            return Ok(json_reply(
                status,
                &json!({"digest": name, "size": asked.body.len()}),
            ));
        }
        let blob = model.blobs.get(name);
        let is_open = self.has(Defect::OpenBlobs) || asked.peer.is_admin();
        let bytes = blob
            .filter(|(_, by)| is_open || by.contains(&asked.peer.name))
            .map(|(bytes, _)| bytes)
            .ok_or_else(|| fault(ErrorCode::Route, "No such attachment"))?;
        if self.has(Defect::BlobsAsPages) {
            return Ok(Reply::new(200, "text/html", bytes.clone()));
        }
        Ok(Reply::new(200, "application/octet-stream", bytes.clone())
            .with("Content-Disposition", "attachment")
            .with("X-Content-Type-Options", "nosniff")
            .with("ETag", format!("\"{name}\"")))
    }

    pub(super) fn token(&self, asked: &Asked) -> Result<Reply, Fault> {
        if !asked.peer.is_admin() {
            return Err(fault(ErrorCode::Perm, "Only an administrator"));
        }
        let mut tokens = self.tokens.lock().unwrap();
        match (asked.method.as_str(), asked.path.get(1)) {
            ("GET", _) => {
                let list: Vec<Value> = tokens
                    .values()
                    .map(|(name, _)| json!({"name": name}))
                    .collect();
                Ok(json_reply(200, &json!({"tokens": list})))
            }
            ("POST", _) => {
                let wanted = asked.object()?;
                let (name, role) = (
                    wanted["name"].as_str().unwrap(),
                    wanted["role"].as_str().unwrap(),
                );
                let least = usize::from(role != "monitor");
                let addresses = texts(&wanted["addresses"], least, 64)?;
                let addresses = addresses
                    .iter()
                    .map(|a| Pattern::parse(a).unwrap())
                    .collect();
                let peer = Peer {
                    name: name.into(),
                    role: Role::parse(role).unwrap(),
                    addresses,
                    domain: None,
                    courier: Vec::new(),
                    is_local: false,
                };
                if !self.has(Defect::CarriesForInboxes) {
                    let bound = peer.addresses.iter().filter(|p| !p.is_all());
                    let bound = bound.map(|to| Binding {
                        to: to.clone(),
                        role: peer.role,
                    });
                    let mut model = self.model.lock().unwrap();
                    model.rules.routes.bindings.extend(bound);
                }
                let token = format!("xt_{}", crosstalk_envelope::id::new_ulid());
                tokens.insert(token.clone(), (name.into(), peer));
                Ok(json_reply(
                    201,
                    &json!({"name": name, "role": role, "token": token}),
                ))
            }
            (_, name) => {
                if !self.has(Defect::TokensStay) {
                    tokens.retain(|_, (n, _)| Some(&*n) != name);
                }
                Ok(Reply {
                    status: 204,
                    headers: Vec::new(),
                    body: Vec::new(),
                })
            }
        }
    }

    pub(super) fn look(&self, asked: &Asked, path: &[&str]) -> Result<Reply, Fault> {
        let mut model = self.model.lock().unwrap();
        let missing = || fault(ErrorCode::Route, "There is no such thing");
        let find = |model: &Model, id: &str| {
            let number = model.find(id).ok_or_else(missing)?;
            let arrival = &model.messages[number].admission.arrival;
            let may = |a: &str| {
                (asked.peer.is_admin() || asked.peer.speaks_for(a))
                    || self.has(Defect::AnybodySpeaks)
            };
            let is_own = may(&arrival.sender) || may(&arrival.receiver);
            is_own.then_some(number).ok_or_else(missing)
        };
        let clamps = self.has(Defect::Clamps);
        let limit = asked.number("limit", 100, 1, 500, clamps)?;
        let value = match path {
            ["ack"] => {
                let said = asked.object()?;
                let address = said["for"]
                    .as_str()
                    .ok_or_else(|| fault(ErrorCode::Format, "For whom"))?;
                let ids = texts(&said["ids"], 1, 500)?;
                self.may_read(asked, address)?;
                let state = match said.get("state").map(|s| s.as_str()) {
                    None | Some(Some("acknowledged")) => DeliveryState::Acknowledged,
                    Some(Some("read")) => DeliveryState::Read,
                    _ => return Err(fault(ErrorCode::Format, "No such state")),
                };
                model.mark(address, &ids, state)
            }
            ["messages", id] => {
                let number = find(&model, id)?;
                if !asked.accepts("application/json") {
                    return Ok(Reply::new(200, TEXT, model.handed_out(number)));
                }
                model.entry(number)
            }
            ["messages", id, _] => model.status(find(&model, id)?),
            ["threads"] => threads(
                &model,
                asked.text("with")?,
                asked.query.get("open").map(String::as_str),
                limit,
                asked.number("skip", 0, 0, 1000, false)?,
            ),
            ["threads", id] => {
                let own: Vec<usize> = (0..model.messages.len())
                    .filter(|n| model.messages[*n].thread() == *id)
                    .collect();
                if own.is_empty() {
                    return Err(missing());
                }
                let texts: Vec<String> = own.iter().map(|n| model.handed_out(*n)).collect();
                match asked.header("accept") {
                    "text/plain" => return Ok(Reply::new(200, TEXT, texts.join("\n"))),
                    "text/markdown" => {
                        return Ok(Reply::new(200, "text/markdown", texts.join("\n")));
                    }
                    _ => json!({"thread": {"id": id}, "messages": model.tree(id, None)}),
                }
            }
            ["search"] => {
                let words = asked.text("q")?.to_lowercase();
                let has = |text: &str| {
                    words.split(' ').all(|w| text.to_lowercase().contains(w))
                        || self.has(Defect::SearchFindsAll)
                };
                let found = (0..model.messages.len())
                    .rev()
                    .filter(|n| has(&model.messages[*n].admission.arrival.body));
                let found: Vec<Value> = found.take(limit).map(|n| model.entry(n)).collect();
                json!({"messages": found})
            }
            ["resolve"] => {
                json!({"name": asked.text("name")?, "address": null, "by": "nobody", "steps": []})
            }
            ["agents"] if asked.method == "PUT" => {
                let said = asked.object()?;
                let agent = Agent {
                    address: said["address"].as_str().unwrap().into(),
                    capabilities: texts(&said["capabilities"], 0, 64)?,
                };
                model.declare(agent.clone());
                let own = model.rules.directory.get(&agent.address);
                let own = own.map_or_else(Vec::new, |a| a.capabilities);
                json!({"address": agent.address, "capabilities": own})
            }
            ["agents"] => {
                let list: Vec<Value> = model
                    .rules
                    .directory
                    .agents()
                    .map(|a| json!({"address": a.address, "capabilities": a.capabilities}))
                    .collect();
                json!({"agents": list})
            }
            ["courier"] => {
                let waits = model
                    .deliveries
                    .iter()
                    .filter(|d| d.by == Handler::CopyPaste && d.state == DeliveryState::Queued);
                let list: Vec<Value> = waits.map(|d| model.entry(d.message)).collect();
                json!({"messages": list, "cursor": "c-0"})
            }
            ["courier", id] => {
                let (said, number) = (asked.object()?, find(&model, id)?);
                let reason = said["reason"].as_str().map(str::to_owned);
                model.carry(
                    number,
                    said["to"].as_str().unwrap(),
                    said["state"] == "carried",
                    reason,
                );
                model.status(number)
            }
            ["dead"] => {
                let dead = model
                    .deliveries
                    .iter()
                    .rev()
                    .filter(|d| d.state == DeliveryState::Failed);
                let list: Vec<Value> = dead.take(limit).map(|d| {
                    let m = &model.messages[d.message];
                    json!({"id": m.id(), "from": m.admission.arrival.sender, "to": d.to, "by": d.by.as_str(), "attempts": 0, "reason": d.reason, "failed_at": now().to_string()})
                }).collect();
                json!({"letters": list})
            }
            ["consents"] => {
                let by = asked.query.get("by").map(String::as_str);
                let holding = asked.query.get("holding").is_some_and(|h| h == "true");
                model.consents(&asked.peer, by, holding)
            }
            ["consents", id] => model.consent(&asked.peer, id).ok_or_else(missing)?,
            ["polls"] => model.polls(&asked.peer),
            ["polls", id] => model.poll(&asked.peer, id).ok_or_else(missing)?,
            ["polls", id, _] => {
                model.poll(&asked.peer, id).ok_or_else(missing)?;
                let closed = model.close_poll(&asked.peer, id);
                closed.ok_or_else(|| fault(ErrorCode::Perm, "Only who asked"))?
            }
            ["dead", id, _] => {
                let number = find(&model, id)?;
                json!({"requeued": model.requeue(number)})
            }
            _ => return Err(missing()),
        };
        Ok(json_reply(200, &value))
    }
}

fn threads(model: &Model, with: &str, open: Option<&str>, limit: usize, skip: usize) -> Value {
    assert!(authority(with).is_none());
    let mut order: Vec<(String, bool)> = Vec::new();
    for message in &model.messages {
        let arrival = &message.admission.arrival;
        let closes = arrival.meaning == Some(Intent::Close);
        let known = order.iter().position(|(t, _)| t == message.thread());
        let was_closed = known.map(|n| order.remove(n).1);
        if was_closed.is_some() || arrival.sender == with || arrival.receiver == with {
            order.push((
                message.thread().to_owned(),
                was_closed.unwrap_or(false) || closes,
            ));
        }
    }
    let wanted = |closed: bool| open.is_none_or(|o| (o == "true") != closed);
    let list = order
        .iter()
        .rev()
        .filter(|(_, closed)| wanted(*closed))
        .skip(skip)
        .take(limit);
    let list: Vec<Value> = list
        .map(|(id, closed)| json!({"id": id, "open": !closed}))
        .collect();
    json!({"threads": list})
}
