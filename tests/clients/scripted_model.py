"""A model on loopback that answers by a script, in the APIs of Anthropic, OpenAI (responses and chat)
and Gemini: it asks for a search, then for the events that were found, and then says "done".

The requests that offer our tools are kept. Requests for anything else (titles, checks) get a short text.
"""

import contextlib
import http.server
import itertools
import json
import threading

FINAL_TEXT = "done"

# Clients join the parts of an answer by its id.
ANSWER_NUMBERS = itertools.count(1)


class Conversation:
    """What the model was asked and what it does next."""

    # The text that ends a turn.
    final_text = FINAL_TEXT
    # What the model thinks before it calls a tool, as the API seals it; None if it thinks nothing.
    sealed_thought = None

    def __init__(self, search, details):
        # The names of the tools as the client offers them end in these.
        self.search, self.details = search, details
        self.requests = []
        # The text of each tool result, in order.
        self.results = []
        self.tools = {}

    def accepts(self, tools):
        """Whether a request is of the conversation, and not of a side task of the client."""
        return any(name.endswith("search_events") for name in tools)

    def next_call(self, tools, results):
        """The tool and the arguments of the next call; None when there is nothing more to ask."""
        self.tools = tools
        self.results = results
        if not results:
            return self.offered("search_events"), self.search
        if len(results) == 1:
            found = read_answer(results[0])["data"]["matches"]
            return self.offered("get_event_details"), self.details([match["event_id"] for match in found])
        return None

    def offered(self, tool):
        return next(name for name in self.tools if name.endswith(tool))


def read_answer(text):
    """The answer of a tool in the text of a result, which a client may put into words of its own."""
    start = text.index('{"status"')
    return json.JSONDecoder().raw_decode(text[start:])[0]


def joined_text(content):
    """The text of a content: a text, or a list of blocks with texts."""
    if isinstance(content, str):
        return content
    return "".join(joined_text(block.get("text", "")) for block in content or [])


# Anthropic: POST /v1/messages


def anthropic(conversation, request):
    tools = {tool["name"]: tool.get("input_schema", {}) for tool in request.get("tools", [])}
    results = []
    for message in request["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else []:
            if block["type"] == "tool_result":
                results.append(joined_text(block["content"]))
    call = plan(conversation, tools, results, request)
    number = next(ANSWER_NUMBERS)
    blocks = []
    if call is not None and conversation.sealed_thought:
        blocks.append({"type": "thinking", "thinking": "A plan.", "signature": conversation.sealed_thought})
    if call is None:
        blocks.append({"type": "text", "text": conversation.final_text})
    else:
        blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]})
    stop = "end_turn" if call is None else "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": request["model"], "usage": usage}
    if not request.get("stream"):
        return "application/json", json.dumps({**message, "content": blocks, "stop_reason": stop})
    events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
    for index, block in enumerate(blocks):
        empty, deltas = anthropic_deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return stream(events, named=True)


def anthropic_deltas(block):
    """How a stream begins a block, and what it adds."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "tool_use":
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    deltas = [
        {"type": "thinking_delta", "thinking": block["thinking"]},
        {"type": "signature_delta", "signature": block["signature"]},
    ]
    return {**block, "thinking": "", "signature": ""}, deltas


# OpenAI: POST /v1/responses


def responses(conversation, request):
    tools = {}
    for tool in request.get("tools", []):
        if tool["type"] == "function":
            tools[tool["name"]] = tool["parameters"]
        for inner in tool.get("tools", []):
            tools[f"{tool['name']}\0{inner['name']}"] = inner.get("parameters", {})
    results = []
    for item in request["input"]:
        if item["type"] == "function_call_output":
            results.append(joined_text(item["output"]))
    call = plan(conversation, tools, results, request)
    number = next(ANSWER_NUMBERS)
    items = []
    if call is not None and conversation.sealed_thought:
        summary = [{"type": "summary_text", "text": "A plan."}]
        sealed = conversation.sealed_thought
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": sealed})
    if call is None:
        content = [{"type": "output_text", "text": conversation.final_text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content})
    else:
        namespace, _, name = call[0].rpartition("\0")
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": f"call_{number}",
                "name": name,
                "arguments": json.dumps(call[1]),
                **({"namespace": namespace} if namespace else {}),
            }
        )
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = f"resp_{number}"
    events = [{"type": "response.created", "response": {"id": response}}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": {"id": response, "output": items, "usage": usage}})
    return stream(events, named=True)


# OpenAI: POST /v1/chat/completions


def chat(conversation, request):
    tools = {tool["function"]["name"]: tool["function"]["parameters"] for tool in request.get("tools", [])}
    results = [joined_text(message["content"]) for message in request["messages"] if message["role"] == "tool"]
    call = plan(conversation, tools, results, request)
    if call is None:
        delta = {"role": "assistant", "content": conversation.final_text}
    else:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        delta = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"call_{len(results)}", "type": "function", "function": function}],
        }
    reason = "stop" if call is None else "tool_calls"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 0, "model": request["model"]}
    if not request.get("stream"):
        choice = {"index": 0, "message": delta, "finish_reason": reason}
        return "application/json", json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    chunks = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
    kind, text = stream(chunks)
    return kind, text + "data: [DONE]\n\n"


# Gemini: POST /v1beta/models/MODEL:generateContent and :streamGenerateContent


def gemini(conversation, request):
    tools = {}
    for group in request.get("tools", []):
        for tool in group.get("functionDeclarations", []):
            tools[tool["name"]] = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
    results = []
    for content in request["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                results.append(joined_text(part["functionResponse"]["response"].get("output", "")))
    call = plan(conversation, tools, results, request)
    if call is None:
        parts = [{"text": conversation.final_text}]
    else:
        parts = [{"functionCall": {"name": call[0], "args": call[1]}}]
        if conversation.sealed_thought:
            parts[0]["thoughtSignature"] = conversation.sealed_thought
            parts.insert(0, {"text": "A plan.", "thought": True})
    answer = {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
    return answer


def plan(conversation, tools, results, request):
    """The next call, if the request is of the conversation and not of a side task of the client."""
    if not conversation.accepts(tools):
        return None
    conversation.requests.append(request)
    return conversation.next_call(tools, results)


def stream(events, named=False):
    """Server-sent events."""
    lines = []
    for event in events:
        head = f"event: {event['type']}\n" if named else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n")
    return "text/event-stream", "".join(lines)


def answer(conversation, path, request):
    """The type and the text of the answer to a request."""
    if path.endswith("/count_tokens") or path.endswith(":countTokens"):
        return "application/json", json.dumps({"input_tokens": 1, "totalTokens": 1})
    if path.endswith("/messages"):
        return anthropic(conversation, request)
    if path.endswith("/responses"):
        return responses(conversation, request)
    if path.endswith("/chat/completions"):
        return chat(conversation, request)
    if path.endswith(":streamGenerateContent"):
        return stream([gemini(conversation, request)])
    if path.endswith(":generateContent"):
        return "application/json", json.dumps(gemini(conversation, request))
    return None


@contextlib.contextmanager
def serve(conversation):
    """The model at an address on loopback."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            try:
                answered = answer(conversation, self.path.split("?")[0], json.loads(body or b"{}"))
            except Exception as error:
                conversation.requests.append({"error": repr(error), "path": self.path})
                answered = None
            self.reply(*(("application/json", "{}") if answered is None else answered), 404 if answered is None else 200)

        def do_GET(self):
            self.reply("application/json", json.dumps({"data": [], "models": []}), 200)

        def do_HEAD(self):
            self.reply("application/json", "", 200)

        def reply(self, kind, text, status):
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
