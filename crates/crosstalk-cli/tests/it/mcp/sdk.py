"""The official Python SDK against two servers, over stdio or over HTTP, in both lifecycles."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation


def stdio(binary, folder):
    os.makedirs(os.path.join(folder, ".git"), exist_ok=True)
    environment = {"CROSSTALK_HOME": os.environ["CROSSTALK_HOME"], "PATH": os.environ["PATH"]}
    return stdio_client(StdioServerParameters(command=binary, args=["mcp"], cwd=folder, env=environment))


def http(url, token):
    import httpx2

    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)
    return streamable_http_client(url, http_client=client)


async def converse(a, b, a_address, b_address):
    tools = await a.list_tools()
    names = [tool.name for tool in tools.tools]
    assert names == ["send", "check", "read", "reply", "poll", "ask_human"], names
    assert all(tool.annotations.destructive_hint is False for tool in tools.tools)
    empty = await b.call_tool("check", {})
    assert empty.structured_content == {"messages": [], "more": False}, empty
    waiting = asyncio.create_task(b.call_tool("check", {"wait_seconds": 300}))
    sent = await a.call_tool("send", {"to": b_address, "text": "Which port?"})
    assert not sent.is_error, sent
    id = sent.structured_content["id"]
    got = await waiting
    message = got.structured_content["messages"][0]
    assert message["id"] == id and message["from"] == a_address, message
    assert message["text"].startswith("~~~~"), message
    answer = await b.call_tool("reply", {"id": id, "text": "8080"})
    assert not answer.is_error, answer
    got = await a.call_tool("check", {"wait_seconds": 300})
    assert got.structured_content["messages"][0]["intent"] == "RESPOND", got
    read = await a.call_tool("read", {"id": sent.structured_content["thread"]})
    assert len(read.structured_content["messages"]) == 2, read
    failed = await a.call_tool("reply", {"id": "nothing", "text": "x"})
    assert failed.is_error, failed
    resources = await a.list_resources()
    assert len(resources.resources) >= 1, resources
    prompts = await a.list_prompts()
    assert [p.name for p in prompts.prompts] == ["primer", "summarise_thread"]


async def main():
    kind = sys.argv[1]
    for mode in ["legacy", "auto"]:
        if kind == "stdio":
            binary, folder = sys.argv[2], sys.argv[3]
            a = stdio(binary, os.path.join(folder, mode, "api"))
            b = stdio(binary, os.path.join(folder, mode, "web"))
            addresses = (f"claude://code/api", f"codex://code/web")
        else:
            url, first, second = sys.argv[2:5]
            a, b = http(url, first), http(url, second)
            addresses = (sys.argv[5], sys.argv[6])
        names = [Implementation(name="claude-code", version="1"), Implementation(name="codex", version="1")]
        async with Client(a, mode=mode, client_info=names[0]) as one:
            async with Client(b, mode=mode, client_info=names[1]) as two:
                if kind == "stdio" and mode == "auto":
                    # Folders of the same names as before: the addresses get a number.
                    addresses = ("claude://code/api-2", "codex://code/web-2")
                    await two.call_tool("check", {})
                await converse(one, two, *addresses)
                print(mode, one.protocol_version)


asyncio.run(main())
