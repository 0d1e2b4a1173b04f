//! Endpoints for the relay operator: probes, metrics, the description of the API, and a page for people.

use crate::client::{Client, ClientError, RequestTarget, unreadable};
use crate::endpoint::endpoints;
use crate::{BodyForm, Media, SuccessResponse};
use http::header::ACCEPT;
use serde_json::{Map, Value};

/// The statuses of a path that everybody may use, and that no message comes to.
const PROBE_ERRORS: &[u16] = &[403, 405, 408, 414, 429, 431, 503];

endpoints! {
    /// Whether the process lives
    HEALTHZ: Healthz = Get "/healthz" for Open in Operations {
        response: SuccessResponse::ok("It lives.", &[BodyForm::of::<String>(Media::Text)]),
        errors: PROBE_ERRORS,
    }

    /// Whether the process lives, without a body
    HEAD_HEALTHZ: HeadHealthz = Head "/healthz" for Open in Operations {
        response: SuccessResponse::ok("It lives.", &[]),
        errors: PROBE_ERRORS,
    }

    /// Whether it can take messages
    READYZ: Readyz = Get "/readyz" for Open in Operations {
        response: SuccessResponse::ok("It can.", &[BodyForm::of::<String>(Media::Text)]),
        errors: PROBE_ERRORS,
    }

    /// Whether it can take messages, without a body
    HEAD_READYZ: HeadReadyz = Head "/readyz" for Open in Operations {
        response: SuccessResponse::ok("It can.", &[]),
        errors: PROBE_ERRORS,
    }

    /// Numbers for Prometheus
    ///
    /// Open on a loopback listener without credentials, else for a monitor or an administrator.
    METRICS: Metrics = Get "/metrics" for Monitor in Operations {
        response: SuccessResponse::ok("The numbers.", &[BodyForm::of::<String>(Media::Metrics)]),
        errors: PROBE_ERRORS,
        own_errors: &[401],
    }

    /// This document
    OPENAPI: Openapi = Get "/openapi.json" for Named in Operations {
        response: SuccessResponse::ok("This document.", &[BodyForm::json::<Map<String, Value>>()]),
        errors: PROBE_ERRORS,
    }

    /// This document, without its body
    HEAD_OPENAPI: HeadOpenapi = Head "/openapi.json" for Named in Operations {
        response: SuccessResponse::ok("It is there.", &[]),
        errors: PROBE_ERRORS,
    }

    /// A page for people
    HOME: Home = Get "/" for Named in Operations {
        response: SuccessResponse::ok(
            "The page.",
            &[BodyForm::of::<String>(Media::Html), BodyForm::of::<String>(Media::Text)],
        ),
        errors: PROBE_ERRORS,
    }

    /// A page for people, without its body
    HEAD_HOME: HeadHome = Head "/" for Named in Operations {
        response: SuccessResponse::ok("It is there.", &[]),
        errors: PROBE_ERRORS,
    }
}

impl Client {
    /// Numbers in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let call = self.call(RequestTarget::of(&METRICS))?;
        let answer = self
            .run(call.header(ACCEPT, Media::Metrics.name())?)
            .await?;
        let text = answer.text().map(str::to_owned);
        text.ok_or_else(|| unreadable(&answer, "it is no text"))
    }
}
