//! The HTTP API of a relay, defined once.
//!
//! Each module is an endpoint or a family of endpoints that share types. It holds the path and the method, the parameters,
//! the body of the request and of the response, the caller's [`Requirement`], the documentation, and the client's methods.
//! The relay routes by [`ENDPOINTS`] and serializes the same types that [`Client`](client::Client) deserializes;
//! [`openapi::document`] describes them.
//!
//! ```
//! use crosstalk_api::{ENDPOINTS, Method};
//! let receive = ENDPOINTS.iter().find(|e| e.path == "/crosstalk/receive").unwrap();
//! assert_eq!((receive.method, receive.summary()), (Method::Post, "Hand in an envelope as text or JSON, or a batch"));
//! ```

pub mod approval;
pub mod audit;
pub mod blob;
pub mod client;
pub mod consent;
pub mod delivery;
pub mod directory;
mod endpoint;
pub mod error;
pub mod inbox;
pub mod message;
pub mod openapi;
pub mod operation;
pub mod outbound;
pub mod poll;
pub mod receive;
pub mod schema;
pub mod thread;
pub mod token;

pub use endpoint::{
    Content, Endpoint, EndpointId, Kind, Media, Method, Parameter, Place, Request, Requirement,
    Response, Tag,
};

/// Every endpoint. Those of one path stand together, in the order of an `Allow` header.
pub static ENDPOINTS: [&Endpoint; 44] = [
    &receive::RECEIVE,
    &inbox::INBOX,
    &inbox::ACK,
    &message::MESSAGE,
    &message::STATUS,
    &thread::THREADS,
    &thread::THREAD,
    &message::SEARCH,
    &blob::GET_BLOB,
    &blob::HEAD_BLOB,
    &blob::PUT_BLOB,
    &directory::RESOLVE,
    &directory::AGENTS,
    &directory::DECLARE,
    &approval::APPROVALS,
    &approval::APPROVAL,
    &approval::DECIDE,
    &consent::CONSENTS,
    &consent::CONSENT,
    &delivery::COURIER,
    &delivery::CARRY,
    &poll::POLLS,
    &poll::POLL,
    &poll::CLOSE_POLL,
    &delivery::DEAD,
    &delivery::REQUEUE,
    &token::TOKENS,
    &token::MAKE_TOKEN,
    &token::END_TOKEN,
    &audit::RECEIPT,
    &audit::CHECKPOINT,
    &audit::LOG_KEY,
    &audit::INCLUSION,
    &audit::CONSISTENCY,
    &audit::ENTRIES,
    &operation::HEALTHZ,
    &operation::HEAD_HEALTHZ,
    &operation::READYZ,
    &operation::HEAD_READYZ,
    &operation::METRICS,
    &operation::OPENAPI,
    &operation::HEAD_OPENAPI,
    &operation::HOME,
    &operation::HEAD_HOME,
];
