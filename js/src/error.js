/** A failure: what happened, what to do about it, and the code of the error taxonomy. */
export class CrosstalkError extends Error {
  name = "CrosstalkError";

  /**
   * @param {string} message what happened
   * @param {object} details `code`, and where they are known `rule`, `help`, `line`, `column`; of a request to a relay also
   *   `status`, `retryAfter` in seconds, and `temporary`: whether another attempt may work
   */
  constructor(message, { code, rule, help, line, column, status, retryAfter, temporary = false, cause }) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, { code, rule, help, line, column, status, retryAfter, temporary });
  }
}
