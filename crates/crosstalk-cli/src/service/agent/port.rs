//! The tools of the MCP server over the store of this machine. Messages take the same way as those of the command line.

use super::fetch::{self, FetchState};
use super::{identity, is_known, known, mailbox};
use crate::clock;
use crate::console::Console;
use crate::failure::Failure;
use crate::report::HandedReport;
use crate::service::compose::Content;
use crate::service::deliver::SendOptions;
use crate::service::lookup::{self, veiled};
use crate::service::poll::{self, KeptPoll};
use crate::service::recipient::resolve_typed;
use crate::service::reply::answers_go_to;
use crate::service::workspace::Workspace;
use crosstalk_envelope::{Address, Explanation, Intent};
use crosstalk_mcp::{
    AgentDirectory, AgentMessage, AgentPort, AgentThread, ChangeWatch, KnownAgent, McpCaller,
    MessageDraft, News, PollDraft, PollProgress, PortFuture, PortSource, PostedMessage, Receiver,
    known_client,
};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::poll::PollKind;
use crosstalk_protocol::store::{
    Page, Record, ReferenceMatch, Side, ThreadFilter, Way, is_same_party,
};
use crosstalk_store::{AgentFacts, AgentFolder, HeldAgent, SqliteStore};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How often a waiting agent looks whether another process has stored something: reading a counter in shared memory.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// The most messages of a thread that are shown at once: the latest.
const SHOWN: usize = 200;

/// Where an agent works, and under which name.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    /// The profile of the settings.
    pub(crate) profile: Option<String>,
    /// The address that the person chose.
    pub(crate) address: Option<String>,
    /// The folder in which the client started this process.
    pub(crate) folder: PathBuf,
}

/// Gives the one client of this process its address, when it says who it is.
#[derive(Debug)]
pub(crate) struct LocalSource {
    project: Project,
    port: OnceCell<Arc<LocalPort>>,
}

impl LocalSource {
    pub(crate) fn new(project: Project) -> Self {
        Self {
            project,
            port: OnceCell::new(),
        }
    }
}

impl PortSource for LocalSource {
    fn open<'f>(&'f self, caller: McpCaller<'f>) -> PortFuture<'f, Arc<dyn AgentPort>> {
        Box::pin(async move {
            let port = self.port.get_or_try_init(|| async {
                let (project, client) = (self.project.clone(), caller.client.to_owned());
                let claimed = blocking(move || LocalPort::claim(project, &client)).await?;
                Ok::<_, Explanation>(Arc::new(LocalPort {
                    claimed: Arc::new(claimed),
                }))
            });
            let port: Arc<dyn AgentPort> = port.await?.clone();
            Ok(port)
        })
    }
}

/// The port of an address that this process holds.
#[derive(Debug)]
struct LocalPort {
    claimed: Arc<Claimed>,
}

#[derive(Debug)]
struct Claimed {
    address: String,
    profile: Option<String>,
    held: Mutex<HeldAgent>,
    /// How the relay answers.
    fetching: Arc<FetchState>,
    told: Mutex<ShownNews>,
    /// Where the store is, and the store as it was opened to look for what is new.
    store: PathBuf,
    reader: Mutex<Option<SqliteStore>>,
}

/// What the agent was told in this session.
#[derive(Debug, Default)]
struct ShownNews {
    /// The ids of messages that it was shown.
    shown: HashSet<String>,
    /// Why messages may be missing.
    trouble: Option<String>,
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Explanation> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Failure::into_explanation),
        Err(_) => Err(Explanation::new(
            "the work was broken off",
            "call the tool again",
        )),
    }
}

/// The settings and the store for one call.
struct Desk<'c> {
    claimed: &'c Claimed,
    console: Console,
    workspace: Workspace,
}

impl LocalPort {
    fn claim(project: Project, client: &str) -> Result<Claimed, Failure> {
        let mut console = Console::muted(project.profile.clone());
        let workspace = Workspace::open(&mut console)?;
        let folder = identity::project_folder(&project.folder);
        let word = identity::client_word(client);
        let held = match &project.address {
            Some(address) => identity::claim_named(&workspace, address, &word, &folder)?,
            None => identity::claim(&mut console, &workspace, &word, &folder)?,
        };
        let address = held.facts().address.clone();
        Ok(Claimed {
            fetching: fetch::start(project.profile.clone(), &address),
            told: Mutex::default(),
            address,
            profile: project.profile,
            held: Mutex::new(held),
            store: workspace.home().store(),
            reader: Mutex::default(),
        })
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> PortFuture<'_, T> {
        let claimed = self.claimed.clone();
        Box::pin(blocking(move || {
            let mut console = Console::muted(claimed.profile.clone());
            let workspace = Workspace::open(&mut console)?;
            work(&mut Desk {
                claimed: &claimed,
                console,
                workspace,
            })
        }))
    }
}

impl Claimed {
    /// The new messages. A waiting agent asks after every change of the store, so this reads no settings, and the store stays open.
    fn news(&self, limit: usize) -> Result<News, Failure> {
        // Single positions are only needed after the first message that is new.
        const SINGLE: usize = 100;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match reader.take() {
            Some(store) => store,
            None => SqliteStore::open(&self.store)?,
        };
        let trouble = self.fetching.trouble();
        let facts = self.held().facts().clone();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Messages that were shown come after new ones. After a failure, the next look opens the store again.
        let most = limit.saturating_add(told.shown.len());
        let (found, more) = mailbox::unread(&store, &facts, most)?;
        *reader = Some(store);
        drop(reader);
        if facts.read.len() > SINGLE {
            let first = found.first().map(|record| record.seq);
            self.held().update(|facts| facts.compact(first))?;
        }
        let shown = |record: &Record| AgentMessage::of(record, &self.address, false);
        let unread: Vec<AgentMessage> = found.iter().map(shown).collect();
        told.shown.retain(|id| unread.iter().any(|m| m.id == *id));
        let mut news = News::of(unread, limit, |message| told.shown.contains(&message.id));
        news.more |= more;
        news.is_new |= trouble.is_some() && trouble != told.trouble;
        told.shown
            .extend(news.messages.iter().map(|m| m.id.clone()));
        told.trouble.clone_from(&trouble);
        news.trouble = trouble;
        Ok(news)
    }

    fn held(&self) -> MutexGuard<'_, HeldAgent> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk<'_> {
    fn store(&mut self) -> Result<SqliteStore, Failure> {
        self.workspace.store(&mut self.console)
    }

    fn address(&self) -> &str {
        &self.claimed.address
    }

    fn shown(&self, record: &Record) -> AgentMessage {
        AgentMessage::of(record, self.address(), false)
    }

    /// The message or the thread that an id means, as far as this agent may read it. What it may not read does not exist for it.
    fn find(&mut self, reference: &str) -> Result<Vec<Record>, Failure> {
        let store = self.store()?;
        let records = match store.find(reference.trim())? {
            ReferenceMatch::Message(id) => store.message(&id)?.into_iter().collect(),
            ReferenceMatch::Thread(id) => lookup::whole(&store, &id)?,
            ReferenceMatch::Nothing | ReferenceMatch::Several(_) => Vec::new(),
        };
        let address = self.address().to_owned();
        let readable = records.into_iter().map(veiled);
        let mut readable: Vec<Record> = readable
            .filter(|record| !record.text.is_empty() && mailbox::may_read(record, &address))
            .collect();
        if readable.len() > SHOWN {
            readable.drain(..readable.len() - SHOWN);
        }
        match readable.is_empty() {
            true => Err(Failure::failed(format!(
                "no message or thread of yours has the id {reference}"
            ))
            .help("check lists new messages with their ids")),
            false => Ok(readable),
        }
    }

    fn message(&mut self, id: &str) -> Result<Record, Failure> {
        let found = self.find(id)?;
        let last = found.into_iter().next_back();
        last.ok_or_else(|| Failure::failed("the message is gone"))
    }

    /// Marks messages as read. It is on disk when this returns.
    fn mark(&self, records: &[Record]) -> Result<(), Failure> {
        let mut held = self.claimed.held();
        let seqs: Vec<u64> = records
            .iter()
            .filter(|r| !held.facts().has_read(r.seq))
            .map(|r| r.seq)
            .collect();
        if seqs.is_empty() {
            return Ok(());
        }
        let now = clock::now().to_string();
        Ok(held.update(|facts| {
            facts.mark(seqs);
            facts.last_seen = now;
        })?)
    }

    /// The receiver that an agent names: a name of the settings, the person, an address, or the client of another agent.
    fn receiver(&self, typed: &str) -> Result<Receiver, Failure> {
        let typed = typed.trim();
        let config = &self.workspace.config;
        let resolved = resolve_typed(config, typed);
        let is_own_name = config.names().get(typed).is_some();
        let meant = match is_own_name {
            true => resolved.as_str(),
            false => typed,
        };
        let is_person = self.workspace.mine()?.has(meant);
        let has_relay = config.relay_for(meant).is_some();
        // A name that a relay may know.
        let is_name = Address::split(meant).is_name() && has_relay;
        let is_client = known_client(meant).is_some_and(|word| word.eq_ignore_ascii_case(meant));
        if is_person || (is_name && !is_client) {
            return Ok(Receiver {
                address: resolved,
                note: String::new(),
            });
        }
        let known = known(&self.workspace)?;
        let folder = AgentFolder::new(self.workspace.home());
        let seen = |facts: &AgentFacts| KnownAgent {
            is_live: folder.is_live(&facts.address),
            address: facts.address.clone(),
            client: facts.client.clone(),
            project: facts.project.clone(),
        };
        let own = seen(self.claimed.held().facts());
        let directory = AgentDirectory {
            own: &own,
            agents: known.iter().map(seen).collect(),
            has_relay,
        };
        let first = |client: &str| identity::first_name(&known, client, Path::new(&own.project));
        let found = directory.resolve(meant, first);
        found.map_err(|why| Failure::usage(why.what).help(why.help))
    }

    fn post(
        &mut self,
        content: &Content,
        receivers: &[String],
        answered: Option<&Record>,
    ) -> Result<PostedMessage, Failure> {
        let address = self.address().to_owned();
        let written = content.write(
            &mut self.console,
            &self.workspace,
            (&address, receivers),
            answered,
        )?;
        let options = SendOptions::of_agent();
        let sent = written.post(&mut self.console, &self.workspace, &options)?;
        let (record, handed) = sent
            .into_iter()
            .next()
            .ok_or_else(|| Failure::failed("there is nothing to send"))?;
        let note = match handed {
            Some(handed) => {
                let is_here = is_known(&self.workspace, &record.receiver)?;
                handed_note(&record, &handed, is_here)?
            }
            None => String::new(),
        };
        Ok(PostedMessage {
            id: record.id,
            thread: record.thread,
            note,
        })
    }

    fn send(&mut self, draft: &MessageDraft) -> Result<PostedMessage, Failure> {
        let Receiver { address, note } = self.receiver(&draft.to)?;
        let continued = match &draft.thread {
            Some(thread) => Some(self.message(thread)?),
            None => None,
        };
        if let Some(record) = &continued {
            self.require_open(record)?;
        }
        let content = Content::of_agent(self.address(), &draft.text)
            .with_intent(draft.intent.as_deref())
            .with_context(draft.context.as_deref());
        let sent = self.post(&content, &[address], continued.as_ref())?;
        Ok(sent.with_note(&note))
    }

    fn require_open(&mut self, record: &Record) -> Result<(), Failure> {
        let thread = self.store()?.thread(&record.thread)?;
        match thread.and_then(|thread| thread.closed_at) {
            Some(at) => Err(Failure::denied(format!("the thread was closed on {at}"))
                .help("send a message without thread, which begins a new one")),
            None => Ok(()),
        }
    }

    fn reply(&mut self, id: &str, text: &str) -> Result<PostedMessage, Failure> {
        let answered = self.message(id)?;
        self.require_open(&answered)?;
        let receiver = match is_same_party(&answered.sender, self.address()) {
            true => answered.receiver.clone(),
            false => answers_go_to(&answered),
        };
        let content = Content::of_agent(self.address(), text);
        let sent = self.post(&content, &[receiver], Some(&answered))?;
        self.mark(&[answered])?;
        Ok(sent)
    }

    fn open_poll(&mut self, draft: &PollDraft) -> Result<PostedMessage, Failure> {
        let mut voters: Vec<String> = Vec::new();
        let mut notes = Vec::new();
        for typed in &draft.to {
            let Receiver {
                address: voter,
                note,
            } = self.receiver(typed)?;
            notes.push(note);
            if !voters.iter().any(|known| is_same_party(known, &voter)) {
                voters.push(voter);
            }
        }
        let Some((first, further)) = voters.split_first() else {
            return Err(Failure::usage("a poll needs voters")
                .help("name them in to, as [\"codex://code/web\", \"gemini://code/web\"]"));
        };
        let (kind, text) = poll::question(&draft.question, &draft.options)?;
        let options = serde_json::to_string(&draft.options).unwrap_or_default();
        let mut meta = vec![format!("poll.Type={}", kind.as_str())];
        if kind != PollKind::Open {
            meta.push(format!("poll.Options={options}"));
        }
        let content = Content::of_agent(self.address(), &text)
            .with_intent(Some("POLL"))
            .with_poll(meta, further.to_vec());
        let opened = self.post(&content, std::slice::from_ref(first), None)?;
        Ok(notes
            .iter()
            .fold(opened, |opened, note| opened.with_note(note)))
    }

    fn poll(&mut self, id: &str) -> Result<PollProgress, Failure> {
        self.find(id)?;
        let kept = KeptPoll::find(&mut self.console, &self.workspace, id)?;
        let kept = kept.ok_or_else(|| {
            Failure::failed(format!("{id} is no poll")).help("poll with a question opens one")
        })?;
        let collation = kept.collate(kept.closed_at())?;
        let is_over = kept.is_over(&collation);
        let shown = match is_over {
            true => collation,
            false => collation.while_open(),
        };
        let has_options = !shown.call().options.is_empty();
        let answers = self.find(&kept.thread)?;
        let is_answer = |r: &&Record| {
            r.parent.as_deref() == Some(kept.id.as_str())
                && !is_same_party(&r.sender, self.address())
        };
        let answers = answers.iter().filter(is_answer).map(|r| self.shown(r));
        let answers = match has_options {
            true => Vec::new(),
            false => answers.collect(),
        };
        let tally = shown.tally.0.iter();
        Ok(PollProgress {
            id: kept.id.clone(),
            is_open: !is_over,
            tally: tally.map(|(o, n)| (o.clone(), n.to_string())).collect(),
            missing: shown.missing.clone(),
            answers,
        })
    }

    fn ask_person(
        &mut self,
        question: &str,
        context: Option<&str>,
    ) -> Result<PostedMessage, Failure> {
        let person = self.workspace.config.sender()?;
        let content = Content::of_agent(self.address(), question)
            .with_intent(Some("ESCALATE"))
            .with_context(context);
        self.post(&content, &[person], None)
    }

    /// The answer of the person. One that was only pasted under the person's name does not count as theirs.
    fn answer_to(&mut self, id: &str) -> Result<Option<AgentMessage>, Failure> {
        let store = self.store()?;
        let Some(question) = store.message(id)? else {
            return Ok(None);
        };
        let records = lookup::everything(&store, &question.thread)?;
        let is_theirs = |record: &Record| {
            let was_written_here = record.way == Way::Sent && record.side == Side::Mine;
            is_same_party(&record.sender, &question.receiver)
                && (was_written_here
                    || record.way == Way::Relayed
                    || record.verdict == VerdictWord::Verified)
        };
        let mut answers = records.into_iter().filter(|record| {
            record.parent.as_deref() == Some(id)
                && !record.text.is_empty()
                && mailbox::is_to(record, &self.claimed.address)
                && is_theirs(record)
        });
        let Some(answer) = answers.next() else {
            return Ok(None);
        };
        let shown = self.shown(&answer);
        self.mark(&[answer])?;
        Ok(Some(shown))
    }

    fn settle(&mut self, id: &str) -> Result<(), Failure> {
        let mut store = self.store()?;
        let Some(question) = store.message(id)? else {
            return Ok(());
        };
        let is_own = is_same_party(&question.sender, self.address());
        if is_own && question.meaning == Some(Intent::Escalate) {
            store.dismiss(id)?;
        }
        Ok(())
    }

    fn threads(&mut self, limit: usize) -> Result<Vec<AgentThread>, Failure> {
        let filter = ThreadFilter {
            with: Some(self.address().to_owned()),
            ..ThreadFilter::default()
        };
        let threads = self.store()?.threads(&filter, Page::first(limit))?;
        let shown = threads.items.into_iter().map(|thread| AgentThread {
            id: thread.id,
            messages: thread.messages,
            last_at: thread.last_at,
        });
        Ok(shown.collect())
    }
}

/// What an agent should know about a message that went to a relay. An agent of this machine reads it in any case.
fn handed_note(record: &Record, handed: &HandedReport, is_here: bool) -> Result<String, Failure> {
    match (&handed.error, handed.taken) {
        (_, Some(true)) if handed.held => {
            Ok("A person has to approve it before it goes on.".to_owned())
        }
        (_, Some(true)) => Ok(String::new()),
        (error, _) => {
            let why = error.as_ref().map(|e| e.message.as_str());
            if is_here {
                return Ok(format!(
                    "{} gets it on this machine; do not send it again. The relay does not have it: {}",
                    record.receiver,
                    why.unwrap_or("it gave no answer")
                ));
            }
            Err(Failure::failed(format!(
                "the message is kept as {} and the relay does not have it: {}",
                record.id,
                why.unwrap_or("it gave no answer")
            ))
            .help(format!(
                "do not send it again; your person can hand it over with `crosstalk relay deliver {}`",
                record.id
            )))
        }
    }
}

impl AgentPort for LocalPort {
    fn address(&self) -> &str {
        &self.claimed.address
    }

    fn send(&self, draft: MessageDraft) -> PortFuture<'_, PostedMessage> {
        self.run(move |desk| desk.send(&draft))
    }

    fn news(&self, limit: usize) -> PortFuture<'_, News> {
        let claimed = self.claimed.clone();
        Box::pin(blocking(move || claimed.news(limit)))
    }

    fn read(&self, id: String, marks: bool) -> PortFuture<'_, Vec<AgentMessage>> {
        self.run(move |desk| {
            let found = desk.find(&id)?;
            if marks {
                desk.mark(&found)?;
            }
            Ok(found.iter().map(|record| desk.shown(record)).collect())
        })
    }

    fn reply(&self, id: String, text: String) -> PortFuture<'_, PostedMessage> {
        self.run(move |desk| desk.reply(&id, &text))
    }

    fn open_poll(&self, draft: PollDraft) -> PortFuture<'_, PostedMessage> {
        self.run(move |desk| desk.open_poll(&draft))
    }

    fn poll(&self, id: String) -> PortFuture<'_, PollProgress> {
        self.run(move |desk| desk.poll(&id))
    }

    fn ask_person(
        &self,
        question: String,
        context: Option<String>,
    ) -> PortFuture<'_, PostedMessage> {
        self.run(move |desk| desk.ask_person(&question, context.as_deref()))
    }

    fn answer_to(&self, id: String) -> PortFuture<'_, Option<AgentMessage>> {
        self.run(move |desk| desk.answer_to(&id))
    }

    fn settle(&self, id: String) -> PortFuture<'_, ()> {
        self.run(move |desk| desk.settle(&id))
    }

    fn threads(&self, limit: usize) -> PortFuture<'_, Vec<AgentThread>> {
        self.run(move |desk| desk.threads(limit))
    }

    fn watch(&self) -> Box<dyn ChangeWatch> {
        let store = SqliteStore::open(&self.claimed.store).ok();
        let seen = store.as_ref().and_then(|s| s.data_version().ok());
        Box::new(StoreWatch { store, seen })
    }
}

/// Looks whether another connection has stored something.
struct StoreWatch {
    store: Option<SqliteStore>,
    seen: Option<i64>,
}

impl ChangeWatch for StoreWatch {
    fn changed(&mut self, within: Duration) -> futures_util::future::BoxFuture<'_, ()> {
        Box::pin(async move {
            let end = Instant::now() + within;
            while Instant::now() < end {
                let version = self.store.as_ref().and_then(|s| s.data_version().ok());
                if version != self.seen {
                    self.seen = version;
                    return;
                }
                let left = end.saturating_duration_since(Instant::now());
                tokio::time::sleep(LOOK_EVERY.min(left)).await;
            }
        })
    }
}
