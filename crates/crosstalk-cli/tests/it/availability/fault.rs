//! What is broken on purpose, and how it is repaired.

use crosstalk_testing::cluster::{BALANCER, Cluster, NODES, RELAYS};
use crosstalk_testing::namespace::OWN;

/// A fault of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breakage {
    /// Every process of PostgreSQL on the primary is killed.
    PrimaryKilled,
    /// Everything on the node of the primary is killed, etcd included.
    NodeKilled,
    /// Patroni on the primary is killed, and PostgreSQL goes on without anybody who would stop it.
    PatroniKilled,
    /// A relay is killed.
    RelayKilled(usize),
    /// The primary reaches nothing, and nothing reaches it.
    PrimaryAlone,
    /// The primary is cut off from the other nodes, and clients still reach it: the case in which two primaries could accept
    /// messages.
    PrimaryFromNodes,
    /// Nothing that the primary sends arrives at the other nodes; what they send arrives at the primary.
    PrimaryMute,
    /// A standby reaches nothing, and nothing reaches it.
    StandbyAlone,
    /// A relay is cut off from the database. Clients still reach it.
    RelayFromDatabase(usize),
    /// The only relay is killed.
    OnlyRelayKilled,
    /// The balancer and the only relay do not reach each other.
    OnlyRelayFromBalancer,
}

/// What a fault leaves to repair.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repair {
    /// Patroni does it.
    Nothing,
    StartNode(&'static str),
    StartRelay(usize),
    Heal,
}

impl Breakage {
    /// The fail-overs of a campaign, again and again.
    pub(super) const FAIL_OVERS: [Self; 5] = [
        Self::PrimaryKilled,
        Self::NodeKilled,
        Self::RelayKilled(0),
        Self::PatroniKilled,
        Self::RelayKilled(1),
    ];
    /// The partitions of a campaign, again and again.
    pub(super) const PARTITIONS: [Self; 5] = [
        Self::PrimaryFromNodes,
        Self::RelayFromDatabase(2),
        Self::PrimaryAlone,
        Self::StandbyAlone,
        Self::PrimaryMute,
    ];

    /// Whether another node has to become the primary. After PostgreSQL alone was killed, the same one may come back.
    pub(super) fn deposes(self) -> bool {
        matches!(
            self,
            Self::NodeKilled
                | Self::PatroniKilled
                | Self::PrimaryAlone
                | Self::PrimaryFromNodes
                | Self::PrimaryMute
        )
    }

    /// Whether it needs no relays.
    pub(super) fn is_about_database(self) -> bool {
        !matches!(
            self,
            Self::RelayKilled(_)
                | Self::RelayFromDatabase(_)
                | Self::OnlyRelayKilled
                | Self::OnlyRelayFromBalancer
        )
    }

    /// Whether nobody can be served before it is repaired.
    pub(super) fn stops_everything(self) -> bool {
        matches!(self, Self::OnlyRelayKilled | Self::OnlyRelayFromBalancer)
    }

    /// Breaks it. The name says where.
    pub(super) fn inflict(self, cluster: &Cluster, primary: &'static str) -> (String, Repair) {
        let nodes: Vec<&str> = NODES.into_iter().filter(|node| *node != primary).collect();
        // Every host but one.
        let all_but = |host: &str| -> Vec<&str> {
            let hosts = NODES.into_iter().chain(RELAYS).chain([BALANCER, OWN]);
            hosts.filter(|other| *other != host).collect()
        };
        let network = &cluster.network;
        let (what, repair) = match self {
            Self::PrimaryKilled => {
                network.kill(primary, Some("postgres"));
                (format!("PostgreSQL killed on {primary}"), Repair::Nothing)
            }
            Self::NodeKilled => {
                network.kill(primary, None);
                (
                    format!("everything killed on {primary}"),
                    Repair::StartNode(primary),
                )
            }
            Self::PatroniKilled => {
                network.kill(primary, Some("patroni"));
                (
                    format!("Patroni killed on {primary}"),
                    Repair::StartNode(primary),
                )
            }
            Self::OnlyRelayKilled => {
                network.kill(RELAYS[0], None);
                (format!("{} killed", RELAYS[0]), Repair::StartRelay(0))
            }
            Self::OnlyRelayFromBalancer => {
                network.part(RELAYS[0], &[BALANCER]);
                let name = format!("{} cut off from the balancer", RELAYS[0]);
                (name, Repair::Heal)
            }
            Self::RelayKilled(number) => {
                network.kill(RELAYS[number], None);
                (
                    format!("{} killed", RELAYS[number]),
                    Repair::StartRelay(number),
                )
            }
            Self::PrimaryAlone => {
                network.part(primary, &all_but(primary));
                (
                    format!("{primary}, the primary, cut off from everything"),
                    Repair::Heal,
                )
            }
            Self::PrimaryFromNodes => {
                network.part(primary, &nodes);
                (
                    format!("{primary}, the primary, cut off from the other nodes"),
                    Repair::Heal,
                )
            }
            Self::PrimaryMute => {
                nodes.iter().for_each(|node| network.cut(primary, node));
                (
                    format!("{primary}, the primary, heard by no other node"),
                    Repair::Heal,
                )
            }
            Self::StandbyAlone => {
                let standby = nodes[0];
                network.part(standby, &all_but(standby));
                (
                    format!("{standby}, a standby, cut off from everything"),
                    Repair::Heal,
                )
            }
            Self::RelayFromDatabase(number) => {
                network.part(RELAYS[number], &NODES);
                (
                    format!("{} cut off from the database", RELAYS[number]),
                    Repair::Heal,
                )
            }
        };
        (what, repair)
    }
}
