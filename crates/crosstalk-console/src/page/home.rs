//! `/`: the inbox for somebody who is signed in, else the sign-in.

use super::{PageError, PageResult, inbox, sign_in};
use crate::ConsoleState;
use crate::visit::Visit;
use axum::extract::State;
use std::sync::Arc;

pub(crate) async fn show(
    State(console): State<Arc<ConsoleState>>,
    visit: Result<Visit, PageError>,
) -> PageResult {
    match visit {
        Ok(visit) => inbox::show(visit).await,
        Err(PageError::SignIn { .. }) => Ok(sign_in::page(&console)),
        Err(other) => Err(other),
    }
}
