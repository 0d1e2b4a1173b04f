"""Asks several addresses at the same time and prints each answer as it comes.

python ask_many.py http://127.0.0.1:8799 "Which endpoint stays?" ADDRESS…
"""

import asyncio
import sys

from ai_crosstalk import AsyncRelay, CrosstalkError


async def ask(relay: AsyncRelay, address: str, question: str) -> str:
    try:
        sent = await relay.send(
            {
                "sender": "ASKER",
                "receiver": address,
                "user": "asker",
                "context": "a question for many",
                "intent": "REQUEST",
                "body": question,
            },
            wait=60,
        )
    except CrosstalkError as error:
        return f"{address}: {error.code}: {error}"
    answer = sent["answer"]
    return f"{address}: {answer['body'] if answer else 'no answer'}"


async def main(url: str, question: str, *addresses: str) -> None:
    async with AsyncRelay(url) as relay:
        for answer in asyncio.as_completed([ask(relay, address, question) for address in addresses]):
            print(await answer)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
