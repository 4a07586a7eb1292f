"""An OpenAI-compatible server on this machine that answers from a script, and that can have a bad day.

By itself: python -m tests.llm.server --port 8000 --script learner
"""

import argparse
import json
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from skg_bench.asking.asking import Prompt
from skg_bench.asking.prompts import PROMPTS, load_prompt
from skg_bench.asking.scripts import SCRIPTS

Day = Literal[
    "good", "429", "500", "400", "401", "402", "404", "broken", "html", "empty", "error", "nonsense", "wrong schema",
    "cut", "refused", "filtered", "filtered prompt", "no json_schema", "no response_format", "no usage", "redirect",
    "moved",
]  # fmt: skip
STATUS = {"429": 429, "500": 500, "400": 400, "401": 401, "402": 402, "404": 404, "redirect": 302, "moved": 301}
ELSEWHERE = "http://elsewhere.invalid/v1"


class Server:
    """Serves from its making to `close`, or in a `with`. `times`: the day is bad for so many requests, then good; None:
    for all. `seconds`: time that an answer takes. `after`: the header Retry-After of a 429. `together`: requests wait
    until so many are under way, however long a loaded machine takes to send them.
    """

    def __init__(
        self,
        day: Day = "good",
        *,
        script: str = "learner",
        times: int | None = None,
        seconds: float = 0.0,
        after: str = "0",
        port: int = 0,
        certificate: Path | None = None,
    ) -> None:
        self.day, self.script, self.times, self.seconds, self.after = day, script, times, seconds, after
        self.requests = 0
        self.seen: Counter[str] = Counter()  # requests by the hash of their body
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []  # headers Authorization
        self.connections = 0
        self.most_at_once = 0
        self.together = 0
        self.met = threading.Event()  # `together` were under way
        self._at_once = 0
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", port), _handler(self))
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        self.address = f"{scheme}://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take no more connections, and hang up on those that there are."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()

    def begin(self, body: dict[str, Any], key: str | None) -> Day:
        """Count a request; the day that it meets."""
        with self._lock:
            self.requests += 1
            self.seen[sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()] += 1
            self.bodies.append(body)
            self.keys.append(key)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            if self._at_once == self.together:
                self.met.set()
            return self.day if self.times is None or self.requests <= self.times else "good"

    def end(self) -> None:
        """A request is answered."""
        with self._lock:
            self._at_once -= 1

    def response(self, day: Day, body: dict[str, Any], key: str | None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content."""
        form = body.get("response_format", {}).get("type")
        if day == "filtered prompt":
            return 400, {}, _error("The prompt was filtered", "content_filter")
        if (day == "no json_schema" and form == "json_schema") or (day == "no response_format" and form is not None):
            return 400, {}, _error(f"'response_format' of type {form!r} is not supported")
        if day in STATUS:
            location = {"redirect": f"{ELSEWHERE}/chat/completions", "moved": "/v2/chat/completions"}.get(day)
            headers = {"Location": location} if location else {"Retry-After": self.after} if day == "429" else {}
            return STATUS[day], headers, _error(f"status {STATUS[day]}, you sent {key}")
        if day == "html":
            return 200, {"Content-Type": "text/html"}, b"<html><body>Welcome\x1b[31m to nginx</body></html>"
        if day in ("empty", "error"):
            return 200, {}, b"" if day == "empty" else _error("the model is loading")
        return 200, {}, json.dumps(self._completion(day, body)).encode()

    def _completion(self, day: Day, body: dict[str, Any]) -> dict[str, Any]:
        text = answer(self.script, body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if day == "refused":
            message |= {"content": None, "refusal": "I will not."}
        message |= {"nonsense": {"content": "Sure! Here you are."}, "wrong schema": {"content": '{"colour": 1}'}}.get(
            day, {}
        )
        if day == "cut":
            message["content"] = text[: len(text) // 2]
        finish = {"cut": "length", "filtered": "content_filter"}.get(day, "stop")
        tokens_in, tokens_out = (
            sum(len(m["content"]) for m in body["messages"]) // 5,
            len(message["content"] or "") // 5,
        )
        usage = {
            "prompt_tokens": tokens_in,
            "prompt_tokens_details": {"cached_tokens": tokens_in // 2},
            "completion_tokens": tokens_out,
        }
        completion = {"model": body["model"], "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
        return completion if day == "no usage" else {**completion, "usage": usage}


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *values: Any) -> None:
        self.open: set[Any] = set()
        super().__init__(*values)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for request in list(self.open):
            with suppress(OSError):  # the client was faster
                request.shutdown(socket.SHUT_RDWR)  # so that the thread which reads from it ends, too
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and content leave together

        def setup(self) -> None:
            super().setup()
            server.connections += 1

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            key = self.headers["Authorization"]
            day = server.begin(body, key)
            if server.together:
                server.met.wait(30)
            time.sleep(server.seconds)
            status, headers, content = server.response(day, body, key)
            server.end()
            if self.path != "/v1/chat/completions":
                status, headers, content = 404, {}, _error(f"no path {self.path}")
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if day == "broken" else content)
            self.close_connection = self.close_connection or day == "broken"

        def log_message(self, *values: Any) -> None:
            """Nothing: tests read what was counted."""

    return Handler


def answer(script: str, messages: list[dict[str, str]]) -> str:
    """By the rules of a script. The role is that of the prompt file whose words the system message begins with; without
    one, the answer repeats the user's words.
    """
    system, user = messages[0]["content"], messages[1]["content"]
    for role, rule in SCRIPTS[script].items():
        if role != "peer" and system.startswith(_system(role)):  # a peer's prompts are its own, and no file of ours
            return rule(Prompt(role, system, user, None, 0, 1))
    return f"You said: {user}"


def _system(role: str) -> str:
    data = next(line for line in (PROMPTS / f"{role}.md").read_text("utf-8").splitlines() if line.startswith("data:"))
    return load_prompt(role, None, tuple(name.strip() for name in data.removeprefix("data:").split(","))).system


def _error(words: str, code: str | None = None) -> bytes:
    return json.dumps({"error": {"message": words, "code": code}}).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--script", choices=list(SCRIPTS), default="learner")
    parser.add_argument("--day", choices=get_args(Day), default="good")
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args()
    with Server(options.day, script=options.script, seconds=options.seconds, port=options.port) as server:
        print(server.address, flush=True)  # noqa: T201  whoever started this waits for it
        threading.Event().wait()


if __name__ == "__main__":
    main()
