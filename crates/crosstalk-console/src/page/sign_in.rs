//! Signing in with a token or a one-time link, and signing out.

use super::{ASSETS, PageAssets, PageError, PageResult, render_with};
use crate::ConsoleState;
use crate::fields::FormFields;
use crate::text::Shown;
use crate::visit::{Posted, cookie_of, own_path, read_form, redirect, set_cookie};
use askama::Template;
use axum::extract::{Request, State};
use axum::response::Response;
use crosstalk_envelope::Explanation;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    assets: &'static PageAssets,
    relay: Shown,
    /// The code of a one-time link that can be used.
    link: Option<Shown>,
    to: Shown,
    notice: Option<&'static str>,
    fault: Option<Explanation>,
}

impl SignInPage {
    fn new(console: &ConsoleState, to: &str) -> Self {
        Self {
            assets: &ASSETS,
            relay: Shown::new(&console.host.relay_name()),
            link: None,
            to: Shown::new(own_path(to).unwrap_or("")),
            notice: None,
            fault: None,
        }
    }
}

/// A link that is used up, or too old.
fn used_up() -> Explanation {
    Explanation::new(
        "This link was used, or is older than ten minutes.",
        "`crosstalk console` makes a new one.",
    )
}

/// The page. A one-time link only shows a button, so that a program that looks at links does not use it up.
pub(crate) async fn show(State(console): State<Arc<ConsoleState>>, request: Request) -> PageResult {
    let query = FormFields::parse(request.uri().query().unwrap_or("")).unwrap_or_default();
    let mut page = SignInPage::new(&console, query.text("to"));
    if let Some(code) = query.get("link") {
        let (host, now) = (&console.host, console.host.now());
        match console.links.is_open(host.link_key(), code, now) {
            true => page.link = Some(Shown::new(code)),
            false => page.fault = Some(used_up()),
        }
    }
    page.notice = match query.get("why") {
        Some("ended") => Some("Your sign-in has ended. Sign in again."),
        Some("out") => Some("You are signed out."),
        _ => None,
    };
    Ok(render_with(&page, 200))
}

/// The page for somebody who came without a link.
pub(crate) fn page(console: &ConsoleState) -> Response {
    render_with(&SignInPage::new(console, ""), 200)
}

pub(crate) async fn sign_in(
    State(console): State<Arc<ConsoleState>>,
    request: Request,
) -> PageResult {
    let (parts, body) = request.into_parts();
    let form = read_form(parts.uri.path(), body).await?;
    let host = &console.host;
    let credential = match (form.get("link"), form.get("token")) {
        (Some(code), _) => {
            let taken = console.links.take(host.link_key(), code, host.now());
            taken.ok_or_else(|| (401, used_up()))
        }
        (None, Some(token)) => {
            let token = token.trim();
            let found = host.identify(token, &parts.extensions).await;
            found.map_err(|fault| (fault.status, fault.why))
        }
        (None, None) => Err((
            400,
            Explanation::new("There is no token.", "paste one: it begins with `xt_`."),
        )),
    };
    let entered = match credential {
        Ok(credential) => match host.enter(credential, &parts.extensions).await {
            Ok(_) => Ok(credential),
            Err(fault) => Err((fault.status, fault.why)),
        },
        Err(fault) => Err(fault),
    };
    let credential = match entered {
        Ok(credential) => credential,
        Err((status, why)) => {
            let mut page = SignInPage::new(&console, form.text("to"));
            page.fault = Some(why);
            return Ok(render_with(&page, status));
        }
    };
    // A sign-in that the browser had before ends: whoever knows its secret is not signed in by this.
    if let Some(before) = cookie_of(&console, &parts.headers) {
        console.sign_ins.end(&before);
    }
    let secret = console.sign_ins.begin(credential, host.now());
    let secret = secret
        .map_err(|_| PageError::fault(503, "The system gives no random numbers.", "try again."))?;
    let mut answer = redirect(own_path(form.text("to")).unwrap_or("/inbox"));
    answer
        .headers_mut()
        .extend(set_cookie(&console, &parts.headers, Some(&secret)));
    Ok(answer)
}

/// Signs this browser out, or every browser of this credential.
pub(crate) async fn sign_out(Posted { visit, form }: Posted) -> Response {
    let all = &visit.console.sign_ins;
    match form.get("everywhere") {
        Some(_) => all.end_all(visit.credential()),
        None => all.end(&visit.secret),
    }
    let mut answer = redirect("/sign-in?why=out");
    answer
        .headers_mut()
        .extend(set_cookie(&visit.console, &visit.headers, None));
    answer
}
