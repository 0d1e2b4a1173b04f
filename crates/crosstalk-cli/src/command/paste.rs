//! The commands that take messages from a chat, and the clipboard: `paste`, `watch`, `prompt` and `clip`.

use crate::console::{Console, DIM, YELLOW, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{Input, is_piped};
use crate::report::PasteReport;
use crate::schema::PASTE;
use crate::service::clipboard::{Choice, Clipboard, ClipboardError, hold};
use crate::service::compose::Content;
use crate::service::deliver::SendOptions;
use crate::service::dns::DnsOptions;
use crate::service::intake::TextIntake;
use crate::service::recipient::resolve_typed;
use crate::service::reply;
use crate::service::workspace::Workspace;
use clap::{Args, ValueEnum};
use crosstalk_envelope::Diagnostic;
use crosstalk_protocol::store::{Record, Wait};
use crosstalk_protocol::{Assistant, primer_of};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// Read messages from the clipboard, files or stdin: verify, thread and keep them
///
/// Finds every envelope in the text and lists its repairs. Pins a key that comes with a message at first contact, unless the
/// settings say otherwise. Recognises a message that is here already. --as-reply-to files a plain answer without an envelope, and
/// moves a message that is here already. An answer with unknown ids is filed with the only message that waits for its sender.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk paste                     # from the clipboard\n  crosstalk paste chat.txt\n  pbpaste | crosstalk paste\n  crosstalk paste --as-reply-to last  # a plain answer to what you sent last\n  crosstalk paste --as-reply-to 01K74V6V --from claude  # to a poll\n  crosstalk paste --accept-truncated  # an answer that was cut off\n\nExit codes: 0 kept, or filed already; 11 its consent is missing or not enough; 12 no message that can be read; 14 another message has this id;\n23 to 25 kept, but don't act on it (crosstalk verify --help). Of several, the largest one."
)]
pub(crate) struct Paste {
    /// Files to read; `-` is stdin. Without one: stdin if something is piped in, else the clipboard
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the clipboard, even if something is piped in
    #[arg(long, conflicts_with = "files")]
    clipboard: bool,
    /// The text answers this message: its id or the beginning of it; alone or `last`, the latest one without an answer, of
    /// those to the one whom --from names
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    as_reply_to: Option<String>,
    /// The sender of the answer: one of those who were asked, or the chat that signed with another name
    #[arg(long, value_name = "NAME", requires = "as_reply_to")]
    from: Option<String>,
    /// Keep a message whose id another one has under an id of its own
    #[arg(long)]
    new_id: bool,
    /// Keep a message that may be cut off; it is shown as truncated from then on
    #[arg(long)]
    accept_truncated: bool,
    /// Show texts that are folded because of a content warning
    #[arg(long)]
    unfold: bool,
    /// List each repair, also several of one kind
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON of the form crosstalk.paste/1
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    look: DnsOptions,
}

impl Paste {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let inputs = self.inputs(console, &workspace)?;
        let mut intake = TextIntake::new(&workspace, &self.look, self.unfold);
        intake.new_id = self.new_id;
        intake.accept_truncated = self.accept_truncated;
        intake.verbose = self.verbose;
        intake.may_ask = true;
        intake.from = self
            .from
            .as_deref()
            .map(|name| resolve_typed(&workspace.config, name));
        intake.quiet = self.json;
        let mut exit = Exit::SUCCESS;
        for input in &inputs {
            let one = match &self.as_reply_to {
                Some(reference) => intake.keep_answer(console, input, reference)?,
                None => intake.keep(console, input)?,
            };
            exit = exit.worst(one);
        }
        if self.json {
            let (messages, errors) = (intake.messages, intake.errors);
            console.report(PASTE, &PasteReport { messages, errors })?;
        }
        Ok(exit)
    }
}

impl Paste {
    /// The texts to take messages from: files, stdin, or the clipboard.
    fn inputs(&self, console: &mut Console, workspace: &Workspace) -> Result<Vec<Input>, Failure> {
        if !self.files.is_empty() {
            let files = self.files.iter();
            return files.map(|f| Input::read(f, console)).collect();
        }
        if !self.clipboard && is_piped() {
            let input = Input::read(Path::new("-"), console)?;
            // The pipe is empty: the person meant the clipboard.
            if !input.is_empty() {
                return Ok(vec![input]);
            }
        }
        let mut clipboard = workspace.clipboard()?;
        Ok(vec![Input::of_text("clipboard", clipboard.read()?)])
    }
}

/// How often the clipboard is looked at.
const INTERVAL: Duration = Duration::from_millis(300);

/// Follow the clipboard: keep each message as soon as it is copied
///
/// Copy an answer in the chat, and the command verifies, threads, keeps and shows it. It keeps only text with an envelope in it,
/// and ignores everything else that you copy. With --reply, your editor opens for each message that waits for you, and the answer
/// goes back on the clipboard. Ends with Ctrl-C.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk watch\n  crosstalk watch --reply\n  crosstalk watch --once        # ends after the next message\n\nExit codes: 0 with --once, as of crosstalk paste; 1 if there is no clipboard."
)]
pub(crate) struct WatchClipboard {
    /// End after the first message
    #[arg(long)]
    once: bool,
    /// Open the editor for each message that waits for you; the answer goes on the clipboard
    #[arg(long)]
    reply: bool,
    /// Keep messages that may be cut off; they are shown as truncated from then on
    #[arg(long)]
    accept_truncated: bool,
    /// Show texts that are folded because of a content warning
    #[arg(long)]
    unfold: bool,
    #[command(flatten)]
    delivery: SendOptions,
    #[command(flatten)]
    look: DnsOptions,
}

impl WatchClipboard {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, Failure> {
        let workspace = Workspace::open(console)?;
        let mut clipboard = workspace.follow_clipboard();
        let mut is_told = false;
        let mut trouble = None;
        loop {
            let look = clipboard.look();
            if clipboard.has_looked() && !is_told {
                // A text that is there already was copied before; only later ones count.
                console.talk(&styled(DIM, "Watching the clipboard; Ctrl-C ends it.\n"))?;
                is_told = true;
            }
            let text = match look {
                Ok(text) => text,
                // Nothing will ever come from there.
                Err(
                    fault @ (ClipboardError::Off
                    | ClipboardError::WriteOnly
                    | ClipboardError::Setting(_)),
                ) => return Err(fault.into()),
                Err(fault @ ClipboardError::Missing(_)) if !is_told => return Err(fault.into()),
                // Nothing was copied yet.
                Err(ClipboardError::Empty) => {
                    sleep(INTERVAL);
                    continue;
                }
                Err(fault) => {
                    // An image, or a display or program that does not answer: told once, and tried again.
                    let fault = Failure::from(fault).to_string();
                    if trouble.as_ref() != Some(&fault) {
                        let word = styled(YELLOW, "note");
                        console.talk(&format!("{word}: {fault}\n"))?;
                        trouble = Some(fault);
                    }
                    sleep(INTERVAL);
                    continue;
                }
            };
            trouble = None;
            if let Some(text) = text.filter(|text| text.contains("[[")) {
                let mut intake = TextIntake::new(&workspace, &self.look, self.unfold);
                // One's own messages come by as they are copied.
                intake.skips_known = true;
                intake.accept_truncated = self.accept_truncated;
                let exit = intake.keep(console, &Input::of_text("clipboard", text))?;
                console.flush()?;
                if self.reply {
                    self.answer(console, &workspace, &intake.kept)?;
                }
                if self.once && !intake.kept.is_empty() {
                    return Ok(exit);
                }
            }
            sleep(INTERVAL);
        }
    }

    /// Opens the editor for what waits for an answer. An answer that is not written does not end the watch.
    fn answer(
        &self,
        console: &mut Console,
        workspace: &Workspace,
        records: &[Record],
    ) -> Result<(), Failure> {
        for record in records.iter().filter(|r| r.wait == Wait::Me) {
            let content = Content::default();
            if let Err(fault) = reply::answer(console, workspace, record, &content, &self.delivery)
            {
                console.failure(&fault)?;
            }
        }
        Ok(())
    }
}

/// Print the text that teaches another AI to answer in envelopes
///
/// Paste it at the start of a chat, or where the chat keeps standing instructions. It has at most 1,400 characters.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  crosstalk prompt\n  crosstalk prompt --for chatgpt --copy")]
pub(crate) struct Prompt {
    /// The chat that it is for: chats differ in what they do to an answer
    #[arg(long = "for", value_enum, value_name = "WHO", default_value_t = PrimerReader::Any)]
    reader: PrimerReader,
    /// Put it on the clipboard as well
    #[arg(long)]
    copy: bool,
}

/// The AI that reads the text.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrimerReader {
    Claude,
    Chatgpt,
    Gemini,
    Any,
}

impl Prompt {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        // The text is of use also where the settings can't be read.
        let workspace = Workspace::open(console);
        let me = workspace.and_then(|workspace| workspace.config.sender());
        let me = me.unwrap_or_else(|_| "KALLE".to_owned());
        let assistant = match self.reader {
            PrimerReader::Claude => Assistant::Claude,
            PrimerReader::Chatgpt => Assistant::Chatgpt,
            PrimerReader::Gemini => Assistant::Gemini,
            PrimerReader::Any => Assistant::Any,
        };
        let text = primer_of(assistant, &me);
        console.data(&text)?;
        if self.copy {
            let copied = Workspace::open(console)?.clipboard()?.write(&text)?;
            console.talk(&format!("{}\n", copied.sentence()))?;
        }
        Ok(())
    }
}

group! {
    /// Copy a text to the clipboard, or show the one that is there
    #[command(
        after_help = "Examples:\n  crosstalk clip copy message.txt\n  crosstalk clip show | crosstalk verify"
    )]
    Clip {
        Copy(CopyText),
        Show(ShowClipboard),
    }
}

/// Copy a text as it is, and check that it is on the clipboard
///
/// It stays there after the command has ended. Over SSH, where the system has no clipboard, the command sends the text to the
/// terminal (OSC 52); terminals don't confirm it.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk clip copy message.txt\n  crosstalk sign message.txt | crosstalk clip copy"
)]
struct CopyText {
    /// The file to copy; `-` or none is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

/// Write the text on the clipboard to stdout
///
/// Into a file or a pipe it goes byte for byte; on a terminal, hidden characters are shown as `\u{…}`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  crosstalk clip show\n  crosstalk clip show | crosstalk verify"
)]
struct ShowClipboard {
    #[command(flatten)]
    which: Which,
}

#[derive(Args, Debug)]
struct Which {
    /// Which clipboard: auto, system, terminal or none; else CROSSTALK_CLIPBOARD says it
    #[arg(long, value_enum, value_name = "WHICH", hide_possible_values = true)]
    clipboard: Option<Choice>,
}

impl Which {
    fn open(&self) -> Result<Clipboard, Failure> {
        Ok(Clipboard::open(Choice::of(self.clipboard, None)?)?)
    }
}

impl CopyText {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        let mut clipboard = self.which.open()?;
        let file = self.file.unwrap_or_else(|| "-".into());
        let input = Input::read(&file, console)?;
        let text = input.text().map_err(|(_, fault)| refused(&fault))?;
        let copied = clipboard.write(text)?;
        console.talk(&format!("{}\n", copied.sentence()))
    }
}

impl ShowClipboard {
    fn run(self, console: &mut Console) -> Result<(), Failure> {
        console.text(&self.which.open()?.read()?)
    }
}

/// Hold the clipboard until something else is copied; the text comes on stdin
///
/// The commands that copy start it.
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "Example:\n  crosstalk clipboard-hold < message.txt"
)]
pub(crate) struct ClipboardHold {}

impl ClipboardHold {
    pub(super) fn run(self, console: &mut Console) -> Result<(), Failure> {
        let input = Input::read("-".as_ref(), console)?;
        let text = input
            .text()
            .map_err(|(_, fault)| refused(&fault))?
            .to_owned();
        drop(input);
        hold(text)?;
        Ok(())
    }
}

fn refused(fault: &Diagnostic) -> Failure {
    Failure::of_rule(fault.rule, &fault.message)
}
