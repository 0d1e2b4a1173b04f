"""A scripted model: it answers the first request of a client with a call of a tool, and each result with the next call.

The script is a JSON list of [tool, arguments] on standard input, and the last line is what the model says in the end. It prints the
port it listens on, and then every result that the client sent back, one JSON text a line.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = json.loads(sys.stdin.readline())


def results(messages):
    """What came back from tools so far."""
    found = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            found += [part for part in content if part.get("type") == "tool_result"]
    return found


def reply(request):
    tools = {tool["name"] for tool in request.get("tools", [])}
    done = results(request.get("messages", []))
    if not any(name.startswith("mcp__crosstalk__") for name in tools):
        return {"type": "text", "text": "Fine."}
    for result in done[-1:]:
        print(json.dumps(result), flush=True)
    if len(done) < len(SCRIPT) - 1:
        tool, arguments = SCRIPT[len(done)]
        id = f"toolu_{len(done)}"
        return {"type": "tool_use", "id": id, "name": f"mcp__crosstalk__{tool}", "input": arguments}
    return {"type": "text", "text": SCRIPT[-1]}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self):
        self.send(b"", "text/plain")

    def do_GET(self):
        self.send(b"{}", "application/json")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        if "count_tokens" in self.path:
            return self.send(b'{"input_tokens": 10}', "application/json")
        if "/messages" not in self.path:
            return self.send(b"{}", "application/json")
        block = reply(request)
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": request.get("model", "m"),
            "content": [block], "stop_reason": stop, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not request.get("stream"):
            return self.send(json.dumps(message).encode(), "application/json")
        empty = dict(block, input={}) if stop == "tool_use" else dict(block, text="")
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if stop == "tool_use"
            else {"type": "text_delta", "text": block["text"]}
        )
        events = [
            {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        self.send(body.encode(), "text/event-stream")


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
