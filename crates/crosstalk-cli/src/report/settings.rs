//! What `config`, `name`, `address` and `lint` print for programs.

use super::or_null;
use crate::service::settings::{SETTINGS, SettingSource, Settings, Value};
use crosstalk_protocol::dns::Dnssec;
use schemars::JsonSchema;
use serde::Serialize;

/// What `crosstalk config show --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ConfigReport {
    file: String,
    exists: bool,
    profile: Option<String>,
    profiles: Vec<String>,
    settings: Vec<SettingReport>,
    names: Vec<NameReport>,
    warnings: Vec<String>,
}

/// A setting.
#[derive(Serialize, JsonSchema)]
struct SettingReport {
    key: &'static str,
    /// Null where there is none.
    value: Option<Value>,
    about: &'static str,
    #[serde(flatten)]
    source: SourceReport,
}

/// What `crosstalk name --json` prints: what each simple name stands for.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NamesReport {
    pub(crate) names: Vec<NameReport>,
}

/// A name and the address that it stands for.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NameReport {
    pub(crate) name: String,
    address: String,
    #[serde(flatten)]
    source: SourceReport,
}

/// Where a value comes from.
#[derive(Serialize, JsonSchema)]
struct SourceReport {
    #[schemars(extend("enum" = ["default", "file", "profile", "variable", "flag"]))]
    source: &'static str,
    #[schemars(range(min = 1))]
    line: Option<usize>,
    profile: Option<String>,
    variable: Option<String>,
}

impl ConfigReport {
    pub(crate) fn new(config: &Settings) -> Self {
        let settings = SETTINGS.iter().map(|setting| {
            let (value, source) = config.value(setting.key);
            SettingReport {
                key: setting.name,
                value,
                about: setting.about,
                source: SourceReport::new(source),
            }
        });
        Self {
            file: config.path().to_string_lossy().into_owned(),
            exists: config.exists(),
            profile: config.profile().map(str::to_owned),
            profiles: config.profiles().to_vec(),
            settings: settings.collect(),
            names: NamesReport::new(config).names,
            warnings: config.warnings().to_vec(),
        }
    }
}

impl NamesReport {
    pub(crate) fn new(config: &Settings) -> Self {
        let names = config.names().iter().map(|(name, address)| NameReport {
            name: name.to_owned(),
            address: address.to_owned(),
            source: SourceReport::new(config.name_source(name)),
        });
        Self {
            names: names.collect(),
        }
    }
}

impl SourceReport {
    fn new(source: SettingSource) -> Self {
        let (word, line) = (source.as_str(), source.line());
        let (profile, variable) = match source {
            SettingSource::Profile(name, _) => (Some(name), None),
            SettingSource::Variable(name) => (None, Some(name)),
            _ => (None, None),
        };
        Self {
            source: word,
            line,
            profile,
            variable,
        }
    }
}

/// What `crosstalk address resolve --json` prints. `result` is a URL if the name is resolved, else the name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResolveReport {
    pub(crate) name: String,
    pub(crate) resolved: bool,
    pub(crate) result: String,
    pub(crate) retry: bool,
    pub(crate) steps: Vec<NameStepReport>,
}

const STEPS: [&str; 11] = [
    "url",
    "table",
    "not-in-table",
    "table-loop",
    "table-too-long",
    "dns",
    "not-in-dns",
    "dns-wrong",
    "dns-unavailable",
    "dns-unasked",
    "person",
];

/// A step from a name to an address.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct NameStepReport {
    #[schemars(extend("enum" = STEPS))]
    pub(crate) step: &'static str,
    pub(crate) sentence: String,
    pub(crate) name: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) others: Vec<String>,
    pub(crate) wrong: Vec<String>,
    #[schemars(extend("enum" = or_null(&Dnssec::ALL, Dnssec::as_str)))]
    pub(crate) dnssec: Option<&'static str>,
}
