"""Reads a paste from standard input, says who wrote each message, and prints the text that can be relied on.

python check_paste.py alice@example.com=ed25519:pk=… < paste.txt
"""

import sys

from ai_crosstalk import CrosstalkError, TrustedKey, lint, verify


def main() -> int:
    keys: list[TrustedKey] = []
    for word in sys.argv[1:]:
        id, _, key = word.partition("=")
        keys.append({"id": id, "key": key})
    paste = sys.stdin.buffer.read()
    try:
        verdict = verify(paste, keys=keys)
    except CrosstalkError as error:
        sys.exit(f"{error}. {error.help}")
    print(verdict["sentence"])
    if verdict["envelope"] is not None:
        print(verdict["envelope"], end="")
        return 0
    for finding in lint(paste)["diagnostics"]:
        if finding["severity"] == "error":
            print(f"line {finding['line']}: {finding['message']}; {finding['help']}")
    print(verdict["next"])
    return 1


if __name__ == "__main__":
    sys.exit(main())
