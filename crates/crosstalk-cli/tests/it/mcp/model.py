"""A scripted model: it answers the first request of a client with a call of a tool, and each result with the next call.

It speaks the APIs of three vendors: messages of Claude, responses of Codex, contents of Gemini. The script is a JSON list of [tool,
arguments] on standard input, and the last line is what the model says in the end. It prints the port it listens on, and then every
result that the client sent back, one JSON text a line.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPT = json.loads(sys.stdin.readline())


def step(has_tools, done):
    """The next call of a tool as (tool, arguments, number), or what the model says."""
    # Clients ask a model other things beside, such as a title.
    if not has_tools:
        return "Fine."
    for result in done[-1:]:
        print(json.dumps(result), flush=True)
    if len(done) < len(SCRIPT) - 1:
        return (*SCRIPT[len(done)], len(done))
    return SCRIPT[-1]


def events(items):
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in items).encode()


def claude(request):
    found = []
    for message in request.get("messages", []):
        if isinstance(message.get("content"), list):
            found += [part for part in message["content"] if part.get("type") == "tool_result"]
    names = {tool["name"] for tool in request.get("tools", [])}
    next_step = step(any(name.startswith("mcp__crosstalk__") for name in names), found)
    if isinstance(next_step, str):
        stop, block = "end_turn", {"type": "text", "text": next_step}
        empty, delta = dict(block, text=""), {"type": "text_delta", "text": next_step}
    else:
        tool, arguments, number = next_step
        stop = "tool_use"
        block = {"type": stop, "id": f"toolu_{number}", "name": f"mcp__crosstalk__{tool}", "input": arguments}
        empty, delta = dict(block, input={}), {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": request.get("model", "m"),
        "content": [block], "stop_reason": stop, "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not request.get("stream"):
        return json.dumps(message).encode(), "application/json"
    return events([
        {"type": "message_start", "message": dict(message, content=[], stop_reason=None)},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]), "text/event-stream"


def codex(request):
    found = [item for item in request.get("input", []) if item.get("type") == "function_call_output"]
    next_step = step(any(tool.get("name") == "mcp__crosstalk" for tool in request.get("tools", [])), found)
    if isinstance(next_step, str):
        content = [{"type": "output_text", "text": next_step}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        tool, arguments, number = next_step
        item = {
            "type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
            "namespace": "mcp__crosstalk", "name": tool, "arguments": json.dumps(arguments),
        }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return events([
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
    ]), "text/event-stream"


def gemini(request, is_stream):
    parts = [part for content in request.get("contents", []) for part in content.get("parts", [])]
    found = [part for part in parts if "functionResponse" in part]
    tools = [tool.get("functionDeclarations", []) for tool in request.get("tools", [])]
    names = [one["name"] for some in tools for one in some]
    next_step = step("mcp_crosstalk_send" in names, found)
    if isinstance(next_step, str):
        part = {"text": next_step}
    else:
        part = {"functionCall": {"name": f"mcp_crosstalk_{next_step[0]}", "args": next_step[1]}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    answer = json.dumps({"candidates": [candidate], "usageMetadata": usage})
    if is_stream:
        return f"data: {answer}\r\n\r\n".encode(), "text/event-stream"
    return answer.encode(), "application/json"


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
        self.send(b'{"models": []}', "application/json")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
        if "count_tokens" in self.path:
            self.send(b'{"input_tokens": 10}', "application/json")
        elif "/messages" in self.path:
            self.send(*claude(request))
        elif "/responses" in self.path:
            self.send(*codex(request))
        elif "enerateContent" in self.path:
            self.send(*gemini(request, "stream" in self.path))
        else:
            self.send(b"{}", "application/json")


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_port, flush=True)
server.serve_forever()
