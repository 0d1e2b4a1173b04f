/** A failure: what happened, what to do about it, and the code of the error taxonomy. */
export class CrosstalkError extends Error {
  name = "CrosstalkError";

  /**
   * @param {string} message what happened
   * @param {object} details `code`, and where they are known `rule`, `help`, `line`, `column`; of a request to a relay also
   *   `status`, `retryAfter` in seconds, and `temporary`: whether another attempt may work. A fact that is not known is null.
   */
  constructor(message, details) {
    const { code, rule, help, line, column, status, retryAfter, temporary = false, cause } = details;
    super(message, cause === undefined ? undefined : { cause });
    const facts = { code, rule, help: help || null, line, column, status, retryAfter };
    for (const [name, value] of Object.entries(facts)) this[name] = value ?? null;
    this.temporary = temporary;
  }
}
