//! `meta: routing` (MET-010).

use super::value::{list, route, words};
use crate::address::Address;
use crate::document::Document;
use crate::registry::Priority;
use std::borrow::Cow;

/// Routing hints and delivery preferences.
#[derive(Clone, Debug, Default)]
pub struct Routing<'d> {
    /// `X-Route`: the way so far, as it was written. It is unsigned: hops write it.
    pub route: Option<&'d str>,
    /// `X-Reply-To`: where answers go.
    pub reply_to: Option<Address<'d>>,
    /// `X-Priority`.
    pub priority: Priority,
    /// `X-Delivery`: how to deliver, as it was written.
    pub delivery: Option<&'d str>,
    /// `X-Policy`, as it was written.
    pub policy: Option<&'d str>,
    /// `X-Capabilities-Required`, as it was written.
    pub capabilities: Option<&'d str>,
    /// `X-Deadline`, as it was written.
    pub deadline: Option<&'d str>,
    /// `Targets`, as it was written.
    pub targets: Option<&'d str>,
}

impl<'d> Routing<'d> {
    pub(super) fn of(document: &'d Document<'d>) -> Self {
        let mut routing = Self::default();
        let Some(block) = document.block("routing") else {
            return routing;
        };
        for (key, value) in block.fields() {
            match key {
                "X-Route" => routing.route = Some(value),
                "X-Reply-To" => routing.reply_to = Some(Address::split(value)),
                "X-Priority" => {
                    routing.priority = Priority::parse(Some(value));
                }
                "X-Delivery" => routing.delivery = Some(value),
                "X-Policy" => routing.policy = Some(value),
                "X-Capabilities-Required" => routing.capabilities = Some(value),
                "X-Deadline" => routing.deadline = Some(value),
                "Targets" => routing.targets = Some(value),
                _ => {}
            }
        }
        routing
    }

    /// The stations of `X-Route`.
    pub fn stations(&self) -> impl Iterator<Item = Address<'d>> + use<'d> {
        self.route
            .into_iter()
            .flat_map(route)
            .filter(|s| !s.is_empty())
            .map(Address::split)
    }

    /// The addresses of `Targets`.
    pub fn target_list(&self) -> Vec<Cow<'d, str>> {
        self.targets.map(list).unwrap_or_default()
    }

    /// The words of `X-Policy`.
    pub fn policies(&self) -> Vec<Cow<'d, str>> {
        self.policy.map(words).unwrap_or_default()
    }

    /// The capabilities that are required.
    pub fn capability_list(&self) -> Vec<Cow<'d, str>> {
        self.capabilities.map(list).unwrap_or_default()
    }
}
