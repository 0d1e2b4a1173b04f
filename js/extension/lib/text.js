// Texts of others, as they are shown and quoted.

/** A text without what reorders or hides; line breaks and tabs stay. */
export function plain(text) {
  return String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/gu, "\ufffd");
}
