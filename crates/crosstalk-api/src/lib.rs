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
pub mod pairing;
pub mod poll;
pub mod receive;
pub mod schema;
pub mod thread;
pub mod token;
pub mod trust;

pub use endpoint::{
    BodyForm, Endpoint, Media, Method, Parameter, ParameterKind, ParameterPlace, RequestBody,
    Requirement, SuccessResponse, Tag,
};

/// Lists the endpoints with their names.
macro_rules! list {
    ($($id:ident = $module:ident::$name:ident,)+) => {
        /// The names of the endpoints, by which a server finds the function that answers.
        #[allow(
            missing_docs,
            reason = "each is described where the endpoint is defined"
        )]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EndpointId {
            $($id,)+
        }

        /// Every endpoint. Those of one path stand together, in the order of an `Allow` header.
        pub static ENDPOINTS: [&Endpoint; [$(EndpointId::$id),+].len()] = [$(&$module::$name),+];
    };
}

list! {
    Receive = receive::RECEIVE,
    Inbox = inbox::INBOX,
    Ack = inbox::ACK,
    Message = message::MESSAGE,
    Status = message::STATUS,
    Threads = thread::THREADS,
    Thread = thread::THREAD,
    Search = message::SEARCH,
    GetBlob = blob::GET_BLOB,
    HeadBlob = blob::HEAD_BLOB,
    PutBlob = blob::PUT_BLOB,
    Resolve = directory::RESOLVE,
    Agents = directory::AGENTS,
    Declare = directory::DECLARE,
    Routes = directory::ROUTES,
    Approvals = approval::APPROVALS,
    Approval = approval::APPROVAL,
    Decide = approval::DECIDE,
    Consents = consent::CONSENTS,
    Consent = consent::CONSENT,
    Courier = delivery::COURIER,
    Carry = delivery::CARRY,
    Polls = poll::POLLS,
    Poll = poll::POLL,
    ClosePoll = poll::CLOSE_POLL,
    Dead = delivery::DEAD,
    Requeue = delivery::REQUEUE,
    Quarantine = delivery::QUARANTINE,
    RetryQuarantine = delivery::RETRY_QUARANTINE,
    Tokens = token::TOKENS,
    MakeToken = token::MAKE_TOKEN,
    EndToken = token::END_TOKEN,
    Pair = pairing::PAIR,
    Unpair = pairing::UNPAIR,
    TrustedKeys = trust::TRUSTED_KEYS,
    PinKey = trust::PIN_KEY,
    DistrustKey = trust::DISTRUST_KEY,
    Receipt = audit::RECEIPT,
    Checkpoint = audit::CHECKPOINT,
    LogKey = audit::LOG_KEY,
    Inclusion = audit::INCLUSION,
    Consistency = audit::CONSISTENCY,
    Chains = audit::CHAINS,
    Entries = audit::ENTRIES,
    Healthz = operation::HEALTHZ,
    HeadHealthz = operation::HEAD_HEALTHZ,
    Readyz = operation::READYZ,
    HeadReadyz = operation::HEAD_READYZ,
    Metrics = operation::METRICS,
    Openapi = operation::OPENAPI,
    HeadOpenapi = operation::HEAD_OPENAPI,
    Home = operation::HOME,
    HeadHome = operation::HEAD_HOME,
}
