//! Names and where they lead, agents and what they can do.

use crate::client::{Client, ClientError, RequestTarget};
use crate::endpoint::{endpoints, parameters};
use crate::schema::{self, MAX_TEXT_CHARS};
use crate::{BodyForm, ParameterKind, RequestBody, SuccessResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many capabilities an agent may declare.
pub const MAX_CAPABILITIES: usize = 64;
/// How many characters a capability may have.
pub const MAX_CAPABILITY_CHARS: usize = 200;

parameters! {
    /// The name.
    NAME = required "name", ParameterKind::text::<schema::Text>(MAX_TEXT_CHARS);
}

endpoints! {
    /// Where a name leads
    ///
    /// HTP-043.
    RESOLVE: Resolve = Get "/crosstalk/resolve" for Known in Names {
        parameters: &[&NAME],
        response: SuccessResponse::ok("Where it leads, and how.", &[BodyForm::json::<Resolved>()]),
    }

    /// List agents and their capabilities
    ///
    /// HTP-044.
    AGENTS: Agents = Get "/crosstalk/agents" for Known in Names {
        response: SuccessResponse::ok(
            "The agents of the configuration, each with the capabilities that it has.",
            &[BodyForm::json::<Agents>()],
        ),
    }

    /// Declare which of its capabilities an agent offers
    ///
    /// HTP-044.
    DECLARE: Declare = Put "/crosstalk/agents" for Known in Names {
        request: Some(RequestBody {
            description: "The agent.",
            content: &[BodyForm::json::<AgentInfo>()],
        }),
        response: SuccessResponse::ok(
            "The agent with the capabilities that it has now: those that the operator assigned to it and that it offers.",
            &[BodyForm::json::<AgentInfo>()],
        ),
    }

    /// The routes of the configuration
    ///
    /// HTP-044. For the relay operator: which addresses go which way, in the order in which they are tried.
    ROUTES: Routes = Get "/crosstalk/routes" for Admin in Names {
        response: SuccessResponse::ok("The routes.", &[BodyForm::json::<RouteList>()]),
    }
}

/// A route: these addresses go this way.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Route")]
pub struct RouteView {
    /// Which addresses.
    #[schemars(with = "schema::AddressPattern")]
    pub to: String,
    /// How they are reached.
    #[schemars(with = "schema::Way")]
    pub by: String,
}

/// The routes of a relay.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Routes")]
pub struct RouteList {
    /// The routes, in the order in which they are tried.
    pub routes: Vec<RouteView>,
}

/// Where a name leads.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Resolution")]
pub struct Resolved {
    /// The name.
    pub name: String,
    /// Where it leads; null if nowhere.
    #[schemars(with = "Option<schema::Address>")]
    pub address: Option<String>,
    /// The source of the answer.
    #[schemars(extend("enum" = ["names", "dns", "directory", "nobody"]))]
    pub by: String,
    /// How it was found out, in order.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Step>")]
    pub steps: Vec<serde_json::Value>,
}

/// An agent and what it can do.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "Agent")]
pub struct AgentInfo {
    /// Its address.
    #[schemars(with = "schema::Address")]
    pub address: String,
    /// Its capabilities; in a request, those that it offers.
    #[schemars(with = "Vec<schema::Capability>", length(max = MAX_CAPABILITIES))]
    pub capabilities: Vec<String>,
}

/// Agents.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct Agents {
    /// The agents.
    pub agents: Vec<AgentInfo>,
}

impl Client {
    /// Where a name leads.
    pub async fn resolve(&self, name: &str) -> Result<Resolved, ClientError> {
        self.get(RequestTarget::of(&RESOLVE).query(&NAME, name))
            .await
    }

    /// The routes of the configuration.
    pub async fn routes(&self) -> Result<Vec<RouteView>, ClientError> {
        Ok(self
            .get::<RouteList>(RequestTarget::of(&ROUTES))
            .await?
            .routes)
    }

    /// Agents and what they can do.
    pub async fn agents(&self) -> Result<Vec<AgentInfo>, ClientError> {
        Ok(self.get::<Agents>(RequestTarget::of(&AGENTS)).await?.agents)
    }

    /// Says which of the capabilities that the operator assigned to an agent it offers; the answer has those that it
    /// has then.
    pub async fn declare(&self, agent: &AgentInfo) -> Result<AgentInfo, ClientError> {
        self.put(RequestTarget::of(&DECLARE), agent).await
    }
}
