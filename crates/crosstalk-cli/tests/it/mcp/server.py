"""Tools on the official Python SDK, over stdio or over HTTP on a port that it prints."""

import socket
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("weather")


@server.tool()
def forecast(city: str, days: int = 1) -> str:
    """The weather of the next days."""
    if city == "Atlantis":
        raise ToolError("there is no such city")
    return f"{city}: rain for {days} days"


@server.tool()
def coast(city: str) -> dict[str, float]:
    """How far the sea is."""
    return {"kilometres": 0.5}


@server.tool()
def about(text: str, context: Context) -> str:
    """What the call says beside its arguments."""
    meta = context.request_context.meta or {}
    return "\n".join(f"{key}={value}" for key, value in sorted(meta.items())) + "\n" + text


if sys.argv[1] == "stdio":
    server.run()
else:
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(json_response=sys.argv[1] == "json", stateless_http=sys.argv[1] == "json")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
