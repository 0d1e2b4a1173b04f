//! Demands of laws on a consent, as data: one TOML file for each law.

use super::claim::{Claim, is_sensitive};
use super::proof::Assurance;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::Pii;
use serde::Deserialize;

const DAY: i64 = 86_400_000;

const BUILT_IN: [&str; 3] = [
    include_str!("../../../../spec/registry/jurisdictions/gdpr.toml"),
    include_str!("../../../../spec/registry/jurisdictions/ccpa.toml"),
    include_str!("../../../../spec/registry/jurisdictions/hipaa.toml"),
];

/// The requirements of a law.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Jurisdiction {
    /// The word for it in `Jurisdiction`.
    pub name: String,
    /// Its name.
    pub title: String,
    /// Its requirements.
    #[serde(rename = "provision", default)]
    pub provisions: Vec<Provision>,
}

/// One demand of a law.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Provision {
    /// The provision of the law that demands it.
    pub place: String,
    /// What it says, in a sentence.
    pub says: String,
    /// For which scopes it holds; without any, for every sensitive one.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Whether it holds only where personal data is present.
    #[serde(default)]
    pub pii: bool,
    /// What the consent has to have.
    pub demands: Vec<Demand>,
    /// `longest`: for how many days it may hold.
    pub days: Option<u32>,
}

/// What a consent has to have.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Demand {
    /// The time at which it was given.
    Time,
    /// An end.
    End,
    /// A name, by which it can be revoked.
    Id,
    /// A signature of a trusted key.
    Signature,
    /// An end that is not too far away.
    Longest,
}

impl Demand {
    const fn missing(self) -> &'static str {
        match self {
            Self::Time => "does not say when it was given",
            Self::End => "has no end",
            Self::Id => "has no name by which it could be revoked",
            Self::Signature => "is not signed with a trusted key",
            Self::Longest => "holds for too long",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Time => "write `Consent: explicit_yes_` and the time",
            Self::End => "write `Expires`",
            Self::Id => "write `Consent-ID`",
            Self::Signature => "sign the message (`--sign` of the command that sends it)",
            Self::Longest => "write an earlier `Expires`",
        }
    }
}

/// Why a file is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JurisdictionError(String);

impl Jurisdiction {
    /// Those that every program has: GDPR, CCPA, HIPAA.
    pub fn built_in() -> Vec<Self> {
        // A test reads them all.
        BUILT_IN
            .iter()
            .filter_map(|text| Self::parse(text).ok())
            .collect()
    }

    /// Reads one.
    ///
    /// ```
    /// use crosstalk_protocol::consent::Jurisdiction;
    /// let text = "name = \"LGPD\"\ntitle = \"Lei Geral de Proteção de Dados\"\n[[provision]]\nplace = \"Art. 8\"\n\
    ///             says = \"Consent can be revoked.\"\ndemands = [\"id\"]\n";
    /// assert_eq!(Jurisdiction::parse(text).unwrap().provisions.len(), 1);
    /// assert!(Jurisdiction::parse("name = 7").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, JurisdictionError> {
        let read: Self = toml::from_str(text).map_err(|e| JurisdictionError(e.to_string()))?;
        let lacks_days = |p: &&Provision| p.demands.contains(&Demand::Longest) && p.days.is_none();
        match read.provisions.iter().find(lacks_days) {
            Some(provision) => Err(JurisdictionError(format!(
                "the provision `{}` demands `longest` and has no `days`",
                provision.place
            ))),
            None => Ok(read),
        }
    }

    /// The first provision that a claim does not meet, and what it lacks.
    pub(super) fn broken(
        &self,
        claim: &Claim,
        assurance: Assurance,
        at: Timestamp,
    ) -> Option<(&Provision, &'static str, &'static str)> {
        self.provisions
            .iter()
            .filter(|p| p.applies_to(claim))
            .find_map(|p| {
                let mut demands = p.demands.iter();
                let lacking = demands.find(|d| !p.is_met(**d, claim, assurance, at))?;
                Some((p, lacking.missing(), lacking.remedy()))
            })
    }
}

impl Provision {
    fn applies_to(&self, claim: &Claim) -> bool {
        let is_meant = |scope: &String| match self.scopes.is_empty() {
            true => is_sensitive(scope),
            false => self.scopes.iter().any(|s| s.eq_ignore_ascii_case(scope)),
        };
        let has_pii = claim.pii == Some(Pii::Present);
        match self.pii {
            true => has_pii && (self.scopes.is_empty() || claim.scopes.iter().any(is_meant)),
            false => claim.scopes.iter().any(is_meant) || (has_pii && self.scopes.is_empty()),
        }
    }

    fn is_met(&self, demand: Demand, claim: &Claim, assurance: Assurance, at: Timestamp) -> bool {
        match demand {
            Demand::Time => claim.given_at.is_some(),
            Demand::End => claim.expires.is_some(),
            Demand::Id => !claim.ids.is_empty(),
            Demand::Signature => assurance.is_trusted(),
            Demand::Longest => {
                let from = claim.given_at.unwrap_or(at).as_millis();
                let days = i64::from(self.days.unwrap_or(u32::MAX));
                let latest = from.saturating_add(days.saturating_mul(DAY));
                claim.expires.is_some_and(|end| end.as_millis() <= latest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_jurisdictions_can_be_read() {
        for text in BUILT_IN {
            Jurisdiction::parse(text).unwrap();
        }
        let names: Vec<String> = Jurisdiction::built_in()
            .into_iter()
            .map(|j| j.name)
            .collect();
        assert_eq!(names, ["GDPR", "CCPA", "HIPAA"]);
    }
}
