//! Tokens: the credentials of people, agents and programs. A secret is shown once.

use super::polls::{lines, time_of};
use super::{PageError, PageResult, Shell, render, render_with};
use crate::fields::encode;
use crate::text::{Moment, Shown};
use crate::visit::{Posted, Visit, redirect};
use askama::Template;
use axum::extract::Path;
use crosstalk_api::client::{ClientError, NewToken, TokenView};
use crosstalk_envelope::{Explanation, Timestamp};

/// A token in the list.
struct TokenRow {
    path: String,
    name: Shown,
    role: Shown,
    addresses: Vec<Shown>,
    courier: Vec<Shown>,
    created: Moment,
    expires: Option<Moment>,
    used: Option<Moment>,
    standing: &'static str,
    tone: &'static str,
    is_active: bool,
    is_own: bool,
}

impl TokenRow {
    fn of(token: &TokenView, own: &str, now: Timestamp) -> Self {
        let expired = token.expires_at.as_deref().and_then(Timestamp::parse);
        let (standing, tone) = match (&token.revoked_at, expired) {
            (Some(_), _) => ("revoked", "bad"),
            (None, Some(end)) if end <= now => ("expired", "warn"),
            _ => ("valid", "ok"),
        };
        let all = |list: &[String]| list.iter().map(|a| Shown::new(a)).collect();
        let at = |text: &Option<String>| text.as_deref().map(|at| Moment::parse(at, now));
        Self {
            path: encode(&token.name),
            name: Shown::new(&token.name),
            role: Shown::new(&token.role),
            addresses: all(&token.addresses),
            courier: all(&token.courier),
            created: Moment::parse(&token.created_at, now),
            expires: at(&token.expires_at),
            used: at(&token.last_used_at),
            standing,
            tone,
            is_active: standing == "valid",
            is_own: token.name == own,
        }
    }
}

/// The fields of the form.
#[derive(Default)]
struct TypedToken {
    name: String,
    addresses: String,
    courier: String,
    expires: String,
}

/// A role that the form offers.
struct RoleChoice {
    word: &'static str,
    meaning: &'static str,
}

const ROLES: [RoleChoice; 4] = [
    RoleChoice {
        word: "person",
        meaning: "reads, answers, decides about held messages, carries",
    },
    RoleChoice {
        word: "agent",
        meaning: "a program: sends and reads for its addresses",
    },
    RoleChoice {
        word: "admin",
        meaning: "may do everything here",
    },
    RoleChoice {
        word: "monitor",
        meaning: "reads the metrics only",
    },
];

#[derive(Template)]
#[template(path = "tokens.html")]
struct TokensPage {
    shell: Shell,
    tokens: Vec<TokenRow>,
    roles: &'static [RoleChoice],
    typed: TypedToken,
    fault: Option<Explanation>,
    relay_url: String,
    local: bool,
}

impl TokensPage {
    async fn of(visit: &Visit) -> Result<Self, PageError> {
        let mut tokens = visit.client.tokens().await?;
        tokens.sort_by(|a, b| {
            let over = |t: &TokenView| t.revoked_at.is_some();
            over(a).cmp(&over(b)).then_with(|| a.name.cmp(&b.name))
        });
        let own = match visit.peer.is_local {
            true => "",
            false => visit.peer.name.as_str(),
        };
        Ok(Self {
            tokens: tokens
                .iter()
                .map(|t| TokenRow::of(t, own, visit.now))
                .collect(),
            roles: &ROLES,
            typed: TypedToken::default(),
            fault: None,
            relay_url: visit.console.host.url(&visit.headers),
            local: visit.peer.is_local,
            shell: visit.shell("Tokens").await,
        })
    }
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    render(&TokensPage::of(&visit).await?)
}

#[derive(Template)]
#[template(path = "token_made.html")]
struct MadePage {
    shell: Shell,
    name: Shown,
    role: Shown,
    secret: String,
    relay_url: String,
}

/// Makes a token. The answer has the secret, and no other page ever has.
pub(crate) async fn make(Posted { visit, form }: Posted) -> PageResult {
    let list = |name: &str| lines(&form.text(name).replace(',', "\n"));
    let expires = time_of(form.text("expires"), visit.now);
    let made = match expires {
        Ok(at) => {
            let wanted = NewToken {
                name: form.text("name").trim().to_owned(),
                role: form.text("role").to_owned(),
                addresses: list("addresses"),
                courier: list("courier"),
                expires_at: at.map(|at| at.to_string()),
            };
            visit
                .client
                .add_token(&wanted)
                .await
                .map_err(|fault| match fault {
                    ClientError::Rejected(fault) => {
                        let status = fault.status;
                        (status, PageError::from(ClientError::Rejected(fault)))
                    }
                    other => (502, other.into()),
                })
        }
        Err(fault) => Err((400, fault)),
    };
    match made {
        Ok(token) => render(&MadePage {
            name: Shown::new(&token.name),
            role: Shown::new(&token.role),
            secret: token.token.unwrap_or_default(),
            relay_url: visit.console.host.url(&visit.headers),
            shell: visit.shell("Tokens").await,
        }),
        Err((status, fault)) => {
            // Without the permission, there is no list either.
            let mut page = TokensPage::of(&visit).await?;
            page.typed = TypedToken {
                name: form.text("name").to_owned(),
                addresses: form.text("addresses").to_owned(),
                courier: form.text("courier").to_owned(),
                expires: form.text("expires").to_owned(),
            };
            page.fault = Some(fault.explanation());
            Ok(render_with(&page, status))
        }
    }
}

pub(crate) async fn revoke(Path(name): Path<String>, Posted { visit, .. }: Posted) -> PageResult {
    visit.client.revoke_token(&name).await?;
    Ok(redirect("/tokens?did=token-revoked"))
}
