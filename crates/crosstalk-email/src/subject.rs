//! The subject of a mail that carries an envelope: `[AI Crosstalk] <context> - <intent>` (MAI-040).

/// The beginning of each subject.
pub const SUBJECT_TAG: &str = "[AI Crosstalk]";

/// The longest subject, in characters.
const SUBJECT_CHARS: usize = 200;
/// The longest context in a subject, in characters.
const CONTEXT_CHARS: usize = 120;

/// The subject of an envelope. With `text`, from `?subject=` of the address, that follows the tag instead of context and
/// intent. The result is one line without control characters, whatever the arguments have in them.
///
/// ```
/// use crosstalk_email::mail_subject;
/// assert_eq!(mail_subject("api design", "REQUEST", None), "[AI Crosstalk] api design - REQUEST");
/// assert_eq!(mail_subject("c", "NOTE", Some("Your plan")), "[AI Crosstalk] Your plan");
/// assert_eq!(mail_subject("a\r\nBcc: x@y", "NOTE", None), "[AI Crosstalk] a Bcc: x@y - NOTE");
/// ```
pub fn mail_subject(context: &str, intent: &str, text: Option<&str>) -> String {
    // A long context is cut before the intent would be.
    let context: String = one_line(context).chars().take(CONTEXT_CHARS).collect();
    let behind = match text.map(one_line).filter(|text| !text.is_empty()) {
        // The tag stands once, also where the address brings it along.
        Some(text) => one_line(text.strip_prefix(SUBJECT_TAG).unwrap_or(&text)),
        None => format!("{} - {}", context.trim_end(), one_line(intent)),
    };
    let subject = format!("{SUBJECT_TAG} {behind}");
    subject
        .chars()
        .take(SUBJECT_CHARS)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The context and the intent of a subject that [`mail_subject`] wrote, also behind `Re:` and the like.
///
/// ```
/// use crosstalk_email::context_of_subject;
/// assert_eq!(context_of_subject("AW: Re: [AI Crosstalk] api - v2 - REQUEST"), Some(("api - v2", "REQUEST")));
/// assert_eq!(context_of_subject("[AI Crosstalk] Your plan"), None);
/// ```
pub fn context_of_subject(subject: &str) -> Option<(&str, &str)> {
    let (_, behind) = subject.split_once(SUBJECT_TAG)?;
    let (context, intent) = behind.trim().rsplit_once(" - ")?;
    let is_intent = !intent.is_empty()
        && intent
            .chars()
            .all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-'));
    is_intent.then_some((context, intent))
}

/// The text on one line: every run of white space and control characters is a space.
fn one_line(text: &str) -> String {
    let is_gap =
        |c: char| c.is_control() || c.is_whitespace() || matches!(c, '\u{2028}' | '\u{2029}');
    let words = text.split(is_gap).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
