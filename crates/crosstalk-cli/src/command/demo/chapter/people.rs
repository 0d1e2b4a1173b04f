//! Who takes part, and whose keys are known.

use super::super::page::Page;
use super::super::world::{World, relayed, require};
use crate::failure::Failure;
use crosstalk_protocol::relay::Role;
use serde_json::{Value, json};

pub(super) fn tell(world: &mut World, page: &mut Page) -> Result<(), Failure> {
    page.say(
        "Ann is a person; Scout and Critic are agents. Each has an address, a key that was made a moment ago, and a token \
         for the relay between them. They have compared the fingerprints of their keys, so that from now on nobody can \
         speak in the name of another.",
    );
    let mut people: Vec<Value> = Vec::new();
    for one in world.cast() {
        let known = world.trust.active(one.pkid);
        let known = known
            .ok_or_else(|| Failure::Failed(format!("the key of {} is not pinned", one.name)))?;
        let kind = match one.role {
            Role::Agent => "agent",
            _ => "person",
        };
        let fingerprint = known.key.fingerprint().to_string();
        page.checked(format!(
            "{} ({kind}) is {}, key {fingerprint}",
            one.name, one.address
        ));
        people.push(json!({
            "name": one.name, "kind": kind, "address": one.address, "key": fingerprint,
        }));
    }
    let key = world.run(world.admin.log_key());
    let key = relayed(key, "the relay does not say its key")?;
    require(
        key.name() == super::super::world::NAME,
        "the relay has another name",
    )?;
    page.checked(format!(
        "The relay {} listens at {} and signs with a key of its own.",
        key.name(),
        world.url
    ));
    page.fact("participants", people);
    page.fact("relay", world.url.clone());
    Ok(())
}
