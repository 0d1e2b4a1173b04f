"""An agent that answers questions from its inbox, one after the other, and survives its own crashes.

python worker.py http://127.0.0.1:8799 ADDRESS [TOKEN]

A message is acknowledged after it is answered. If the program ends in between, it gets the message again at its next start.
"""

import sys

from ai_crosstalk import Relay, parse, reply


def answer(question: str) -> str:
    """The work. A real agent asks a model here."""
    return f"You asked: {question}"


def main(url: str, address: str, token: str | None = None) -> None:
    with Relay(url, token) as relay, relay.stream(address) as messages:
        for message in messages:
            if message["intent"] == "REQUEST":
                [question] = parse(message["envelope"], "strict")["envelopes"]
                relay.send(reply(message["envelope"], answer(question["body"])))
            relay.acknowledge(address, message["id"])
            print("done:", message["id"], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
