//! The forms of the answers for programs: the name of each and its JSON Schema, made from the type that the command prints.

use crate::report;
use clap::ValueEnum;
use crosstalk_binding::form;
pub(crate) use crosstalk_binding::form::NamedForm;
use crosstalk_relay::client::{Approval, ConsentRecord, MessageStatus, MessageView};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Defines the forms: what `crosstalk schema` says about one, the constant with its name, and how its schema is made.
macro_rules! forms {
    ($($(#[$about:meta])+ $form:ident($name:ident = $text:expr) => $schema:expr;)+) => {
        $(pub(crate) const $name: &str = $text;)+

        /// An answer that has a schema.
        #[derive(Clone, Copy, Debug, ValueEnum)]
        pub(crate) enum Form {
            $($(#[$about])+ $form,)+
        }

        impl Form {
            /// Its JSON Schema.
            pub(crate) fn schema(self) -> Value {
                let (name, schema): (&str, fn(&str) -> Value) = match self {
                    $(Self::$form => ($name, $schema),)+
                };
                schema(name)
            }
        }
    };
}

forms! {
    /// crosstalk.parse/1: of `parse --json`, and what `build` reads
    Parse(PARSE = form::PARSE) => |_| crosstalk_envelope::json::schema();
    /// crosstalk.lint/1: of `lint --json`
    Lint(LINT = form::LINT) => of::<form::LintReport>;
    /// crosstalk.address/1: of `address parse --json`
    Address(ADDRESS = form::ADDRESS) => of::<form::AddressReport>;
    /// crosstalk.verify/1: of `verify --json`
    Verify(VERIFY = form::VERIFY) => of::<form::VerifyReport>;
    /// crosstalk.key-list/1: of `key list --json` and `key show --json`
    Key(KEYS = "crosstalk.key-list/1") => of::<report::KeysReport>;
    /// crosstalk.trust-list/1: of `trust list --json` and `trust check --json`
    Trust(TRUST = "crosstalk.trust-list/1") => of::<report::TrustReport>;
    /// crosstalk.sent/1: of `send`, `reply`, `forward`, `escalate`, `handoff`, `close`, `consent grant` and `consent revoke` with --json
    Sent(SENT = "crosstalk.sent/1") => of::<report::SentReport>;
    /// crosstalk.sent-many/1: of `send` and `forward` to several receivers with --json
    SentMany(SENT_MANY = "crosstalk.sent-many/1") => of::<report::SentManyReport>;
    /// crosstalk.paste/1: of `paste --json`
    Paste(PASTE = "crosstalk.paste/1") => of::<report::PasteReport>;
    /// crosstalk.move/1: of `move --json`
    Move(MOVE = "crosstalk.move/1") => of::<report::MoveReport>;
    /// crosstalk.threads/1: of `threads --json`
    Threads(THREADS = "crosstalk.threads/1") => of::<report::ThreadsReport>;
    /// crosstalk.show/1: of `show --json`
    Show(SHOW = "crosstalk.show/1") => of::<report::ShowReport>;
    /// crosstalk.inbox/1: of `inbox --json`
    Inbox(INBOX = "crosstalk.inbox/1") => of::<report::InboxReport>;
    /// crosstalk.waiting/1: of `waiting --json`
    Waiting(WAITING = "crosstalk.waiting/1") => of::<report::WaitingReport>;
    /// crosstalk.search/1: of `search --json`
    Search(SEARCH = "crosstalk.search/1") => of::<report::SearchReport>;
    /// crosstalk.import/1: of `import --json`
    Import(IMPORT = "crosstalk.import/1") => of::<report::ImportReport>;
    /// crosstalk.export/1: of `export --format json`
    Export(EXPORT = "crosstalk.export/1") => of::<report::ExportReport>;
    /// crosstalk.poll/1: of `poll status`, `poll collate` and `poll close` with --json
    Poll(POLL = crosstalk_protocol::poll::POLL_SCHEMA) => of::<report::PollReport>;
    /// crosstalk.config/1: of `config show --json`
    Config(CONFIG = "crosstalk.config/1") => of::<report::ConfigReport>;
    /// crosstalk.agents/1: of `agents --json`
    Agents(AGENTS = "crosstalk.agents/1") => of::<report::AgentsReport>;
    /// crosstalk.names/1: of `name --json`
    Names(NAMES = "crosstalk.names/1") => of::<report::NamesReport>;
    /// crosstalk.resolve/1: of `address resolve --json`
    Resolve(RESOLVE = "crosstalk.resolve/1") => of::<report::ResolveReport>;
    /// crosstalk.redact/1: of `redact --json`
    Redact(REDACT = form::REDACT) => of::<form::RedactReport>;
    /// crosstalk.email/1: of `email read --json`
    Email(EMAIL = "crosstalk.email/1") => of::<report::EmailReport>;
    /// crosstalk.email-test/1: of `email test --json`
    EmailTest(EMAIL_TEST = "crosstalk.email-test/1") => of::<report::ServeCheckReport>;
    /// crosstalk.tokens/1: of `token list --json`
    Tokens(TOKENS = "crosstalk.tokens/1") => of::<report::TokensReport>;
    /// crosstalk.relays/1: of `relay list --json`
    Relays(RELAYS = "crosstalk.relays/1") => of::<report::RelaysReport>;
    /// crosstalk.relay-inbox/1: of `inbox --relay --json`
    RelayInbox(RELAY_INBOX = "crosstalk.relay-inbox/1") => of::<report::RelayInboxReport>;
    /// crosstalk.listen/1: of `listen --json`, a line for each message
    Listen(LISTEN = "crosstalk.listen/1") => of::<MessageView>;
    /// crosstalk.status/1: of `status --json`
    Status(STATUS = "crosstalk.status/1") => of::<MessageStatus>;
    /// crosstalk.approvals/1: of `approve --json`
    Approvals(APPROVALS = "crosstalk.approvals/1") => of::<report::ApprovalsReport>;
    /// crosstalk.approval/1: of `approve ID --json` and `refuse --json`
    Approval(APPROVAL = "crosstalk.approval/1") => of::<Approval>;
    /// crosstalk.dead/1: of `dead --json`
    Dead(DEAD = "crosstalk.dead/1") => of::<report::DeadReport>;
    /// crosstalk.consents/1: of `consent list --json`
    Consents(CONSENTS = "crosstalk.consents/1") => of::<report::ConsentsReport>;
    /// crosstalk.consent/1: of `consent show --json`
    Consent(CONSENT = "crosstalk.consent/1") => of::<ConsentRecord>;
    /// crosstalk.consent-check/1: of `consent check --json`
    ConsentCheck(CONSENT_CHECK = "crosstalk.consent-check/1") => of::<report::ConsentCheckReport>;
    /// crosstalk.fsck/1: of `fsck --json`
    Fsck(FSCK = "crosstalk.fsck/1") => of::<report::FsckReport>;
    /// crosstalk.serve-check/1: of `serve --check --json`
    ServeCheck(SERVE_CHECK = "crosstalk.serve-check/1") => of::<report::ServeCheckReport>;
    /// crosstalk.audit-trace/1: of `audit trace --json`
    AuditTrace(AUDIT_TRACE = "crosstalk.audit-trace/1") => of::<report::TraceReport>;
    /// crosstalk.audit-log/1: of `audit log --json`, a line for each entry
    AuditLog(AUDIT_LOG = "crosstalk.audit-log/1") => of::<report::LogEntryReport>;
    /// crosstalk.audit-verify/1: of `audit verify --json`
    AuditVerify(AUDIT_VERIFY = "crosstalk.audit-verify/1") => of::<report::AuditReport>;
    /// crosstalk.conform/1: of `conform URL --json`
    Conform(CONFORM = crosstalk_conform::relay::SCHEMA) => of::<crosstalk_conform::relay::RelaySummary>;
    /// crosstalk.conform-program/1: of `conform --program CMD --json`
    ConformProgram(CONFORM_PROGRAM = crosstalk_conform::program::SCHEMA) => of::<crosstalk_conform::program::ProgramSummary>;
    /// crosstalk.demo/1: of `demo --json`
    Demo(DEMO = "crosstalk.demo/1") => of::<report::DemoReport>;
}

/// The schema of a type whose values are printed under a name.
fn of<T: JsonSchema>(name: &str) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let settings = settings.with_transform(RecursiveTransform(join_lines));
    let mut schema = settings
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".into(), name.into());
    let mut schema = schema.to_value();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("schema".into(), json!({"const": name}));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut)
        && !required.contains(&"schema".into())
    {
        required.push("schema".into());
    }
    schema
}

/// Doc comments are wrapped for the source; a description is one line.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
