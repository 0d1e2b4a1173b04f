//! The pages that the navigation lists. Each page has a line here, and a route in `lib.rs`.

use crosstalk_protocol::relay::Peer;

/// A page in the navigation.
#[derive(Debug)]
pub(crate) struct NavItem {
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    /// The key that leads there after `g`.
    pub(crate) key: char,
    pub(crate) group: NavGroup,
    pub(crate) needs: NavRole,
    /// The number beside it, if it has one.
    pub(crate) count: Option<CountOf>,
}

/// The groups, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavGroup {
    /// Pages that people use every day.
    Work,
    /// Pages that show whether everything is as it should be.
    Check,
    /// Pages for the operator.
    Operate,
}

impl NavGroup {
    pub(crate) const ALL: [Self; 3] = [Self::Work, Self::Check, Self::Operate];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Work => "Messages",
            Self::Check => "Check",
            Self::Operate => "Relay",
        }
    }
}

/// The role that a page is for. It only hides links: the endpoints behind a page check every call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavRole {
    Anyone,
    Person,
    Admin,
}

impl NavRole {
    pub(crate) fn allows(self, peer: &Peer) -> bool {
        match self {
            Self::Anyone => true,
            Self::Person => peer.is_person(),
            Self::Admin => peer.is_admin(),
        }
    }
}

/// The messages that a number in the navigation counts.
#[allow(dead_code, reason = "each is for a page, which may not be there yet")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountOf {
    Unread,
    Errands,
    Approvals,
    DeadLetters,
}

/// A line of the table: path, label, key, group, role, count.
const fn item(
    path: &'static str,
    label: &'static str,
    key: char,
    group: NavGroup,
    needs: NavRole,
    count: Option<CountOf>,
) -> NavItem {
    NavItem {
        path,
        label,
        key,
        group,
        needs,
        count,
    }
}

/// The navigation.
pub(crate) static NAV: &[NavItem] = &[
    item(
        "/inbox",
        "Inbox",
        'i',
        NavGroup::Work,
        NavRole::Anyone,
        Some(CountOf::Unread),
    ),
    item(
        "/threads",
        "Conversations",
        't',
        NavGroup::Work,
        NavRole::Anyone,
        None,
    ),
    item(
        "/new",
        "New message",
        'n',
        NavGroup::Work,
        NavRole::Anyone,
        None,
    ),
    item(
        "/carry",
        "Carry",
        'c',
        NavGroup::Work,
        NavRole::Person,
        Some(CountOf::Errands),
    ),
    item(
        "/paste",
        "Paste",
        'p',
        NavGroup::Work,
        NavRole::Anyone,
        None,
    ),
    item(
        "/inspect",
        "Inspect",
        'x',
        NavGroup::Check,
        NavRole::Anyone,
        None,
    ),
    item(
        "/approvals",
        "Approvals",
        'a',
        NavGroup::Work,
        NavRole::Person,
        Some(CountOf::Approvals),
    ),
    item(
        "/polls",
        "Polls",
        'v',
        NavGroup::Work,
        NavRole::Anyone,
        None,
    ),
    item(
        "/search",
        "Search",
        's',
        NavGroup::Work,
        NavRole::Anyone,
        None,
    ),
    item(
        "/consents",
        "Consents",
        'e',
        NavGroup::Check,
        NavRole::Anyone,
        None,
    ),
    item(
        "/audit",
        "Audit log",
        'l',
        NavGroup::Check,
        NavRole::Admin,
        None,
    ),
    item(
        "/trust",
        "Keys and trust",
        'k',
        NavGroup::Check,
        NavRole::Admin,
        None,
    ),
    item(
        "/status",
        "Status",
        'h',
        NavGroup::Operate,
        NavRole::Admin,
        None,
    ),
    item(
        "/dead",
        "Dead letters",
        'd',
        NavGroup::Operate,
        NavRole::Admin,
        Some(CountOf::DeadLetters),
    ),
    item(
        "/tokens",
        "Tokens",
        'o',
        NavGroup::Operate,
        NavRole::Admin,
        None,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_page_has_a_path_and_a_key_of_its_own() {
        let paths: HashSet<_> = NAV.iter().map(|i| i.path).collect();
        let keys: HashSet<_> = NAV.iter().map(|i| i.key).collect();
        assert_eq!((paths.len(), keys.len()), (NAV.len(), NAV.len()));
    }
}
