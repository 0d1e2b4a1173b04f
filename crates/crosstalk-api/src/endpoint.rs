//! How an endpoint is described.

use crate::EndpointId;
use crate::schema::{SchemaOf, schema_of};
use crosstalk_envelope::words;
use schemars::JsonSchema;

/// An endpoint: one method of one path.
#[derive(Debug)]
pub struct Endpoint {
    /// Which one it is.
    pub id: EndpointId,
    /// Its method.
    pub method: Method,
    /// Its path. `{}` is one segment, which the first of the parameters describes.
    pub path: &'static str,
    /// The permission that it needs.
    pub requirement: Requirement,
    /// The group that the OpenAPI document shows it in.
    pub tag: Tag,
    /// The lines of its documentation: a summary, an empty line, and more.
    pub documentation: &'static [&'static str],
    /// Its parameters: in the path, in the query, in headers.
    pub parameters: &'static [&'static Parameter],
    /// The body of a request, if it has one.
    pub request: Option<RequestBody>,
    /// The response of a request that succeeds.
    pub response: SuccessResponse,
    /// The statuses of requests that fail.
    pub errors: &'static [u16],
    /// More of them, which only this endpoint has.
    pub own_errors: &'static [u16],
}

words! {
    /// A method of HTTP.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Method {
        /// Reads.
        Get = "GET",
        /// Reads the head of the response only.
        Head = "HEAD",
        /// Acts.
        Post = "POST",
        /// Writes what the path names.
        Put = "PUT",
        /// Removes what the path names.
        Delete = "DELETE",
    }
}

/// The permission that a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// None, from anywhere.
    Open,
    /// None, but the relay must be reached under one of its names.
    Named,
    /// The same; a message of a stranger must prove itself by its signature.
    Stranger,
    /// None on the same machine as a loopback listener, else a token of a monitor or an administrator.
    Monitor,
    /// Any token but a monitor's.
    Known,
    /// The token of a person.
    Person,
    /// The token of an administrator.
    Admin,
}

words! {
    /// A group of endpoints, in the order of the OpenAPI document.
    #[allow(missing_docs, reason = "each has a description")]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Tag {
        Messages = "messages",
        Inbox = "inbox",
        Threads = "threads",
        Polls = "polls",
        Blobs = "blobs",
        Names = "names",
        Approvals = "approvals",
        Delivery = "delivery",
        Tokens = "tokens",
        Operations = "operations",
        Audit = "audit",
        Consents = "consents",
        Trust = "trust",
    }
}

/// The media type of a body.
#[allow(missing_docs, reason = "each has a name")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Text,
    Json,
    Markdown,
    Events,
    Batch,
    Html,
    Bytes,
    Metrics,
}

/// A parameter of a request.
#[derive(Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: ParameterPlace,
    /// Whether a request without it is rejected.
    pub is_required: bool,
    /// Its meaning.
    pub description: &'static str,
    /// Its values.
    pub kind: ParameterKind,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    /// In the path.
    Path,
    /// In the query of the URL.
    Query,
    /// In a header.
    Header,
}

/// The values of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum ParameterKind {
    /// Text.
    Text {
        /// Its schema.
        schema: SchemaOf,
        /// How many characters it has at most.
        max_chars: usize,
    },
    /// A whole number.
    Number {
        /// The least one.
        min: u64,
        /// The largest one.
        max: u64,
        /// The one that counts if there is none.
        default: Option<u64>,
    },
    /// `true` or `false`.
    Flag {
        /// The default.
        default: Option<bool>,
    },
}

/// The body of a request.
#[derive(Debug)]
pub struct RequestBody {
    /// Its description.
    pub description: &'static str,
    /// Its forms.
    pub content: &'static [BodyForm],
}

/// The response of a request that succeeds.
#[derive(Debug)]
pub struct SuccessResponse {
    /// Its status.
    pub status: u16,
    /// Its description.
    pub description: &'static str,
    /// The headers that it has besides the usual ones.
    pub headers: &'static [&'static str],
    /// Its forms; the first one is for callers that don't say what they accept.
    pub content: &'static [BodyForm],
}

/// One form of a body.
#[derive(Clone, Copy, Debug)]
pub struct BodyForm {
    /// Its type.
    pub media: Media,
    /// Its schema.
    pub schema: SchemaOf,
    /// A description besides that of the schema.
    pub description: Option<&'static str>,
}

/// The statuses that every endpoint of messages may have.
const ERRORS: &[u16] = &[
    400, 401, 403, 404, 405, 406, 408, 413, 414, 415, 422, 429, 431, 503,
];

impl Endpoint {
    /// The defaults of an endpoint.
    pub(crate) const DEFAULT: Self = Self {
        id: EndpointId::Home,
        method: Method::Get,
        path: "/",
        requirement: Requirement::Admin,
        tag: Tag::Operations,
        documentation: &[],
        parameters: &[],
        request: None,
        response: SuccessResponse::ok("", &[]),
        errors: ERRORS,
        own_errors: &[],
    };

    /// Its purpose, in a line.
    pub fn summary(&self) -> &'static str {
        self.documentation.first().map_or("", |line| line.trim())
    }

    /// More about it.
    pub fn description(&self) -> String {
        let more: Vec<&str> = self
            .documentation
            .iter()
            .skip(2)
            .map(|l| l.trim())
            .collect();
        more.join(" ")
    }

    /// The statuses of requests that fail, in order.
    pub fn error_statuses(&self) -> Vec<u16> {
        let mut all = [self.errors, self.own_errors].concat();
        all.sort_unstable();
        all
    }

    /// The name of the segment in its path, if there is one.
    pub fn segment(&self) -> Option<&'static str> {
        let has_segment = self.path.contains("{}");
        let first = self.parameters.first().filter(|_| has_segment);
        first.map(|parameter| parameter.name)
    }

    /// The types of its response, the usual one first.
    pub fn media(&self) -> impl Iterator<Item = Media> {
        self.response.content.iter().map(|content| content.media)
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Head => Self::HEAD,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Delete => Self::DELETE,
        }
    }
}

impl Media {
    /// The value of `Content-Type`.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json => "application/json",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Events => "text/event-stream",
            Self::Batch => "application/vnd.crosstalk.batch",
            Self::Html => "text/html; charset=utf-8",
            Self::Bytes => "application/octet-stream",
            Self::Metrics => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The type without its parameters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text | Self::Metrics => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Json | Self::Events | Self::Batch | Self::Bytes => self.content_type(),
        }
    }
}

impl Parameter {
    /// A parameter in the query that may be left out.
    pub(crate) const fn query(
        name: &'static str,
        description: &'static str,
        kind: ParameterKind,
    ) -> Self {
        Self {
            name,
            place: ParameterPlace::Query,
            is_required: false,
            description,
            kind,
        }
    }

    /// A parameter in the query that a request must have.
    pub(crate) const fn required(
        name: &'static str,
        about: &'static str,
        kind: ParameterKind,
    ) -> Self {
        Self {
            is_required: true,
            ..Self::query(name, about, kind)
        }
    }

    /// The segment in a path.
    pub(crate) const fn segment(
        name: &'static str,
        about: &'static str,
        kind: ParameterKind,
    ) -> Self {
        Self {
            place: ParameterPlace::Path,
            ..Self::required(name, about, kind)
        }
    }

    /// A header.
    pub(crate) const fn header(
        name: &'static str,
        about: &'static str,
        kind: ParameterKind,
    ) -> Self {
        Self {
            place: ParameterPlace::Header,
            ..Self::query(name, about, kind)
        }
    }
}

impl ParameterKind {
    /// Text of a type.
    pub(crate) const fn text<T: JsonSchema>(max_chars: usize) -> Self {
        Self::Text {
            schema: schema_of::<T>,
            max_chars,
        }
    }

    /// A number within bounds, and the one that counts if there is none.
    pub(crate) const fn number(min: u64, max: u64, default: Option<u64>) -> Self {
        Self::Number { min, max, default }
    }

    /// A count or an index.
    pub(crate) const fn count() -> Self {
        Self::number(0, u64::MAX, None)
    }
}

impl BodyForm {
    /// A body of a type.
    pub(crate) const fn of<T: JsonSchema>(media: Media) -> Self {
        Self {
            media,
            schema: schema_of::<T>,
            description: None,
        }
    }

    /// JSON of a type.
    pub(crate) const fn json<T: JsonSchema>() -> Self {
        Self::of::<T>(Media::Json)
    }

    /// Text that only a description describes.
    pub(crate) const fn text(media: Media, description: &'static str) -> Self {
        Self {
            description: Some(description),
            ..Self::of::<String>(media)
        }
    }
}

impl SuccessResponse {
    /// A response with the status 200.
    pub(crate) const fn ok(description: &'static str, content: &'static [BodyForm]) -> Self {
        Self {
            status: 200,
            description,
            headers: &[],
            content,
        }
    }
}

/// Defines endpoints: `NAME: Id = METHOD "PATH" for REQUIREMENT in TAG`. Their doc comments are their documentation in the
/// OpenAPI document, too.
macro_rules! endpoints {
    ($($(#[doc = $doc:literal])+ $name:ident: $id:ident = $method:ident $path:literal for $requirement:ident in $tag:ident {
        $($field:ident: $value:expr),+ $(,)?
    })+) => {$(
        $(#[doc = $doc])+
        pub static $name: $crate::Endpoint = $crate::Endpoint {
            id: $crate::EndpointId::$id,
            method: $crate::Method::$method,
            path: $path,
            requirement: $crate::Requirement::$requirement,
            tag: $crate::Tag::$tag,
            documentation: &[$($doc),+],
            $($field: $value,)+
            ..$crate::Endpoint::DEFAULT
        };
    )+};
}

/// Defines parameters. Their doc comments are their descriptions in the OpenAPI document, too.
macro_rules! parameters {
    ($($(#[doc = $doc:literal])+ $name:ident = $place:ident $wire:literal, $kind:expr;)+) => {$(
        $(#[doc = $doc])+
        pub static $name: $crate::Parameter =
            $crate::Parameter::$place($wire, concat!($($doc),+), $kind);
    )+};
}

pub(crate) use {endpoints, parameters};
