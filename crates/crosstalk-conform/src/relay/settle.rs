//! Settles the messages that a run leaves behind, so that people who use the relay find none of them in the courier's queue.

use super::probe::{Probe, object, word};
use super::wire::{SuiteRequest, Wire};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The addresses of a run.
#[derive(Debug, Default)]
pub(super) struct Used(Mutex<BTreeSet<String>>);

impl Used {
    /// Remembers an address.
    pub(super) fn note(&self, address: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(address.to_owned());
    }

    fn all(&self) -> BTreeSet<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// Settles what waits for the addresses of a run. A relay that does not let it is left as it is.
pub(super) async fn settle(wire: &Arc<Wire>) {
    let probe = Probe::new(Arc::clone(wire));
    let used = wire.used.all();
    let request = SuiteRequest::get("/crosstalk/courier?limit=500").accept("application/json");
    let Ok(answer) = probe.send(request).await else {
        return;
    };
    if let Ok(queue) = object(&answer, 200)
        && let Some(waiting) = queue.get("messages").and_then(|m| m.as_array())
    {
        let is_ours = |m: &&serde_json::Value| used.contains(word(m, "to"));
        for message in waiting.iter().filter(is_ours) {
            let path = format!("/crosstalk/courier/{}", word(message, "id"));
            let said = json!({"to": word(message, "to"), "state": "carried"});
            let request = SuiteRequest::new("POST", path).json(&said);
            // One that is gone meanwhile is settled.
            let _ = probe.send(request.accept("application/json")).await;
        }
    }
    for address in &used {
        let Ok(ids) = probe.inbox_ids(address).await else {
            continue;
        };
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        if !ids.is_empty() {
            // The inbox is nobody else's; what stays there disturbs nobody.
            let _ = probe.acknowledge(address, &ids, "acknowledged").await;
        }
    }
}
