//! The OpenAPI 3.1 document of the API, made from [`ENDPOINTS`].

use crate::error::{ErrorAnswer, STATUSES};
use crate::schema::{self, schema_of};
use crate::{
    BodyForm, ENDPOINTS, Endpoint, Parameter, ParameterKind, ParameterPlace, Requirement, Tag,
};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The largest number that every JSON reader keeps exactly.
const MAX_EXACT_NUMBER: u64 = (1 << 53) - 1;
/// The path of the schemas in the document.
const SCHEMAS: &str = "/components/schemas";

static TEXT: LazyLock<String> = LazyLock::new(|| {
    // A document consists of texts and numbers, which can always be written.
    let text = serde_json::to_string_pretty(&document());
    text.unwrap_or_default() + "\n"
});

/// The document as text.
///
/// ```
/// assert!(crosstalk_api::openapi::text().starts_with("{\n  \"openapi\": \"3.1.0\""));
/// ```
pub fn text() -> &'static str {
    &TEXT
}

/// The document.
pub fn document() -> Value {
    let mut document = DocumentWriter::new();
    let mut paths = Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(path_of(endpoint)).or_insert_with(|| json!({}));
        if let Value::Object(path) = path {
            let method = endpoint.method.as_str().to_lowercase();
            path.insert(method, document.operation(endpoint));
        }
    }
    let responses = document.error_responses();
    let headers = document.headers();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "AI Crosstalk relay",
            "version": "1.1.0",
            "summary": "Envelopes over HTTP: durable inboxes, routing and honest delivery.",
            "description": "The HTTP binding of AI Crosstalk v1.1. The normative text is spec/http.md; it holds the \
                            rules HTP-001 and so on.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This relay." }],
        "security": [{ "bearer": [] }, {}],
        "tags": Tag::ALL.map(|tag| json!({ "name": tag.as_str(), "description": describe(tag) })),
        "paths": paths,
        "components": {
            "schemas": document.into_schemas(),
            "headers": headers,
            "responses": responses,
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of the relay. Where the relay listens on a loopback address and has no tokens, none \
                                is needed.",
            } },
        },
    })
}

/// Writes the document. What a caller writes and what a relay writes have different schemas: a caller may leave out
/// what has a default, a relay does not.
struct DocumentWriter {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl DocumentWriter {
    fn new() -> Self {
        let settings = || {
            let settings = SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = SCHEMAS.into();
                settings.meta_schema = None;
            });
            settings.with_transform(RecursiveTransform(join_lines))
        };
        let responses = settings().with_transform(RecursiveTransform(without_default));
        Self {
            requests: settings().for_deserialize().into_generator(),
            responses: responses.for_serialize().into_generator(),
        }
    }

    fn into_schemas(mut self) -> Map<String, Value> {
        let mut schemas = self.requests.take_definitions(true);
        schemas.extend(self.responses.take_definitions(true));
        schemas.sort_keys();
        schemas
    }

    fn operation(&mut self, endpoint: &Endpoint) -> Value {
        let mut operation = Map::new();
        operation.insert("operationId".into(), operation_id(endpoint).into());
        operation.insert("summary".into(), endpoint.summary().into());
        operation.insert("tags".into(), json!([endpoint.tag.as_str()]));
        let description = endpoint.description();
        if !description.is_empty() {
            operation.insert("description".into(), description.into());
        }
        if matches!(endpoint.requirement, Requirement::Open | Requirement::Named) {
            operation.insert("security".into(), json!([{}]));
        }
        if !endpoint.parameters.is_empty() {
            let parameters = endpoint.parameters.iter();
            let parameters: Vec<Value> = parameters.map(|p| self.parameter(p)).collect();
            operation.insert("parameters".into(), parameters.into());
        }
        if let Some(request) = &endpoint.request {
            let content = contents(&mut self.requests, request.content);
            let body =
                json!({ "required": true, "description": request.description, "content": content });
            operation.insert("requestBody".into(), body);
        }
        let mut responses = Map::new();
        let status = endpoint.response.status.to_string();
        responses.insert(status, self.response(endpoint));
        for status in endpoint.error_statuses() {
            let reference = format!("#/components/responses/{status}");
            responses.insert(status.to_string(), json!({ "$ref": reference }));
        }
        operation.insert("responses".into(), responses.into());
        operation.into()
    }

    fn response(&mut self, endpoint: &Endpoint) -> Value {
        let response = &endpoint.response;
        let mut out = Map::new();
        out.insert("description".into(), response.description.into());
        if !response.headers.is_empty() {
            out.insert("headers".into(), header_references(response.headers));
        }
        if !response.content.is_empty() {
            let content = contents(&mut self.responses, response.content);
            out.insert("content".into(), content.into());
        }
        out.into()
    }

    fn parameter(&mut self, parameter: &Parameter) -> Value {
        json!({
            "name": parameter.name,
            "in": match parameter.place {
                ParameterPlace::Path => "path",
                ParameterPlace::Query => "query",
                ParameterPlace::Header => "header",
            },
            "required": parameter.is_required,
            "description": parameter.description.trim(),
            "schema": self.values(&parameter.kind),
        })
    }

    fn values(&mut self, kind: &ParameterKind) -> Value {
        let (mut schema, default) = match kind {
            ParameterKind::Text { schema, .. } => return schema(&mut self.requests).to_value(),
            ParameterKind::Number { min, max, default } => {
                let max = (*max).min(MAX_EXACT_NUMBER);
                let schema = json!({ "type": "integer", "minimum": min, "maximum": max });
                (schema, default.map(Value::from))
            }
            ParameterKind::Flag { default } => {
                (json!({ "type": "boolean" }), default.map(Value::from))
            }
        };
        if let (Some(schema), Some(default)) = (schema.as_object_mut(), default) {
            schema.insert("default".into(), default);
        }
        schema
    }

    /// The responses to requests that fail, by status.
    fn error_responses(&mut self) -> Map<String, Value> {
        let envelope = schema_of::<schema::Envelope>(&mut self.responses);
        let error = schema_of::<ErrorAnswer>(&mut self.responses);
        let response = |(status, description): &(u16, &'static str)| {
            let mut response = Map::new();
            response.insert("description".into(), (*description).into());
            let header = match status {
                401 => Some("WWW-Authenticate"),
                405 => Some("Allow"),
                429 | 503 => Some("Retry-After"),
                _ => None,
            };
            if let Some(header) = header {
                response.insert("headers".into(), header_references(&[header]));
            }
            // The others are written before there is a request to answer.
            if !matches!(status, 414 | 431) {
                let content = json!({
                    "text/plain": { "schema": envelope },
                    "application/json": { "schema": error },
                });
                response.insert("content".into(), content);
            }
            (status.to_string(), response.into())
        };
        STATUSES.iter().map(response).collect()
    }

    fn headers(&mut self) -> Value {
        let cursor = schema_of::<schema::Cursor>(&mut self.responses);
        let prefer = schema_of::<schema::Prefer>(&mut self.responses);
        json!({
            "Retry-After": {
                "description": "Seconds after which another attempt makes sense.",
                "required": true,
                "schema": { "type": "integer", "minimum": 0 },
            },
            "WWW-Authenticate": {
                "description": "How to authenticate.",
                "required": true,
                "schema": { "type": "string", "pattern": "^Bearer" },
            },
            "Allow": {
                "description": "The methods of the path.",
                "required": true,
                "schema": { "type": "string", "minLength": 3 },
            },
            "Crosstalk-Cursor": {
                "description": "The cursor behind the last message.",
                "required": true,
                "schema": cursor,
            },
            "Preference-Applied": {
                "description": "The wait that the relay used.",
                "required": false,
                "schema": prefer,
            },
            "RateLimit-Policy": {
                "description": "How many requests are allowed, where there is a limit.",
                "required": false,
                "schema": { "type": "string", "examples": ["\"requests\";q=600;w=60"] },
            },
        })
    }
}

/// Writes a description on one line; in the source it may have several.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}

/// A relay writes every key, whether its value is the default or not.
fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

/// The path with the name of its segment.
fn path_of(endpoint: &Endpoint) -> String {
    let segment = endpoint.segment().map(|name| format!("{{{name}}}"));
    endpoint.path.replace("{}", &segment.unwrap_or_default())
}

/// The name of an endpoint, beginning with a small letter.
fn operation_id(endpoint: &Endpoint) -> String {
    let name = format!("{:?}", endpoint.id);
    let mut letters = name.chars();
    let first = letters.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn contents(generator: &mut SchemaGenerator, contents: &[BodyForm]) -> Map<String, Value> {
    let one = |content: &BodyForm| {
        let mut schema: Schema = (content.schema)(generator);
        if let Some(description) = content.description {
            schema.insert("description".into(), description.into());
        }
        (content.media.name().to_owned(), json!({ "schema": schema }))
    };
    contents.iter().map(one).collect()
}

fn header_references(names: &[&str]) -> Value {
    let reference = |name: &&str| {
        let reference = format!("#/components/headers/{name}");
        ((*name).to_owned(), json!({ "$ref": reference }))
    };
    let references: Map<String, Value> = names.iter().map(reference).collect();
    references.into()
}

const fn describe(tag: Tag) -> &'static str {
    match tag {
        Tag::Messages => "Handing in and looking up",
        Tag::Inbox => "Messages to an address",
        Tag::Threads => "Conversations",
        Tag::Polls => "Polls and their results",
        Tag::Blobs => "Attachments",
        Tag::Names => "Names and agents",
        Tag::Approvals => "What waits for a person",
        Tag::Delivery => "Couriers and dead letters",
        Tag::Tokens => "Credentials",
        Tag::Operations => "For the relay operator",
        Tag::Audit => "The log and its proofs",
        Tag::Consents => "Consents on record, and their revocations.",
        Tag::Trust => "Keys of others that the relay knows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    #[test]
    fn paths_of_one_template_stand_together() {
        let mut seen: Vec<&str> = Vec::new();
        for same in ENDPOINTS.chunk_by(|a, b| a.path == b.path) {
            assert!(!seen.contains(&same[0].path), "{}", same[0].path);
            seen.push(same[0].path);
        }
    }

    #[test]
    fn every_endpoint_is_described_once() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let operations = paths.values().flat_map(|path| path.as_object().unwrap());
        let mut ids: Vec<&str> = operations
            .map(|(_, operation)| operation["operationId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), ENDPOINTS.len());
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ENDPOINTS.len());
    }

    #[test]
    fn a_segment_of_a_path_has_its_parameter() {
        for endpoint in ENDPOINTS {
            let first = endpoint.parameters.first();
            let is_segment = first.is_some_and(|p| p.place == ParameterPlace::Path);
            assert_eq!(
                is_segment,
                endpoint.path.contains("{}"),
                "{}",
                endpoint.path
            );
        }
    }

    #[test]
    fn every_reference_leads_to_a_definition() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        found.push(reference.clone());
                    }
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100);
        for reference in found {
            let pointer = reference.trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn endpoints_without_a_body_in_the_answer_have_no_content() {
        for endpoint in ENDPOINTS.iter().filter(|e| e.method == Method::Head) {
            assert!(endpoint.response.content.is_empty(), "{}", endpoint.path);
        }
    }
}
