//! The names and addresses that a relay knows by its configuration, its tokens and its pins (HTP-030).

use super::port::TokenRecord;
use crate::trust::{Origin, Trust};
use crosstalk_envelope::name::NameList;
use std::sync::Arc;

/// The names and addresses that a relay knows. Nobody else sends under a name that looks like one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Those of the configuration.
    pub configured: Arc<NameList>,
    /// Those that tokens are bound to.
    pub tokens: Arc<NameList>,
    /// The senders of keys that the operator pinned.
    pub pinned: Arc<NameList>,
}

impl Listed {
    /// The known name that another one looks like; none if that one is known itself.
    pub fn look_alike(&self, name: &str) -> Option<&str> {
        let lists = [&self.configured, &self.tokens, &self.pinned];
        if lists.iter().any(|list| list.has(name)) {
            return None;
        }
        lists.into_iter().find_map(|list| list.look_alike(name))
    }

    /// These are the pinned keys now. A first contact lists nothing: anybody could keep others out with it.
    pub fn set_pins(&mut self, trust: &Trust) {
        let pins = trust.keys().iter().filter(|k| k.how == Origin::Manual);
        let senders = pins.flat_map(|k| k.senders.iter().map(String::as_str));
        set(&mut self.pinned, senders);
    }

    /// These are the tokens now. One that was revoked lists nothing.
    pub fn set_tokens(&mut self, tokens: &[TokenRecord]) {
        let valid = tokens.iter().filter(|t| t.revoked_at.is_none());
        let addresses = valid.flat_map(|t| t.addresses.iter().map(String::as_str));
        set(&mut self.tokens, addresses.filter(|a| !a.ends_with('*')));
    }
}

/// Makes a list one of these names. Names come one by one: the looks of those that are there are not worked out again.
fn set<'n>(list: &mut Arc<NameList>, names: impl Iterator<Item = &'n str> + Clone) {
    if !list.is_within(names.clone()) {
        *list = Arc::default();
    }
    for name in names {
        if !list.has(name) {
            Arc::make_mut(list).add(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_one_list_has_is_no_look_alike_of_another() {
        let list = |names: &[&str]| Arc::new(names.iter().copied().collect());
        let listed = Listed {
            configured: list(&["ALI"]),
            tokens: list(&["ALL"]),
            pinned: list(&["BOB"]),
        };
        for known in ["Ali", "all", "bob"] {
            assert_eq!(listed.look_alike(known), None, "{known}");
        }
        assert_eq!(listed.look_alike("AL1"), Some("ALI"));
        assert_eq!(listed.look_alike("B0B"), Some("BOB"));
    }
}
