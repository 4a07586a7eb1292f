"""Gateway: an OpenAI-compatible server through which systems under test and peers ask the model of their arm.

It listens on a port of 127.0.0.1 and takes requests with its key, which is random and stands in no file of a run. A
request is answered by the model of the message under way that it belongs to (`OpenCall`), or of the job in its path.
"""

import asyncio
import base64
import hmac
import json
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skg_bench.asking.chat_requests import ChatRequest, chat_reply
from skg_bench.asking.http_server import LOOPBACK, HttpReply, HttpRequest, LocalServer, json_reply
from skg_bench.asking.wire import ChatChoice
from skg_bench.core.errors import UsageError
from skg_bench.core.texts import EmbedTexts

ModelAnswer = Callable[[ChatRequest], Awaitable[ChatChoice]]
JobAnswer = Callable[[ChatRequest], Awaitable[HttpReply]]
MODEL_NAME = "skg-bench"  # listed name of the model; requests may give any other name
_SCALE = 4000.0  # of vectors on the embedding grid
_PSEUDONYM = re.compile(r"user-[0-9a-f]{16}")  # of users of a run (core/assistant.py: `who`)
_MOST_TEXTS = 2048  # of one request for vectors, as OpenAI's


@dataclass(slots=True)
class OpenCall:
    """A message of a user, while the system under test is to answer it."""

    user: str
    words: str
    model: ModelAnswer
    requests: list[ChatRequest] = field(default_factory=list)
    trouble: Exception | None = None  # of the model


class Gateway:
    """Serves from `listen` to `close`, on the event loop that called `listen`."""

    def __init__(self, embed: EmbedTexts, key: str | None = None) -> None:
        self.key = f"sk-{secrets.token_hex(24)}" if key is None else key
        self.address = ""  # known once it is open
        self.unclear: list[str] = []  # reasons of refused requests that fit no message, or several
        self.trouble: UsageError | None = None  # of the embedder
        self._embed, self._server = embed, LocalServer(self._handle)
        self._open: list[OpenCall] = []
        self._jobs: dict[str, JobAnswer] = {}
        self._by_words: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def listen(self, port: int = 0) -> None:
        """Begin to listen; 0: on a free port. Raises UsageError where the port cannot be had."""
        try:
            number = await self._server.listen(port)
        except OSError as error:
            raise UsageError(
                f"the gateway cannot listen on {LOOPBACK}:{port} ({error}); name a port that is free, or null for any"
            ) from error
        self.address = f"http://{LOOPBACK}:{number}/v1"

    def close(self) -> None:
        """Stop listening, and hang up."""
        self._server.close()

    @asynccontextmanager
    async def call(self, user: str, words: str, model: ModelAnswer) -> AsyncIterator[OpenCall]:
        """A message under way. Two messages with the same words wait for one another: many systems pass on neither the
        field `user` nor headers, and then only the words show which message a request belongs to.
        """
        async with self._by_words[words]:
            call = OpenCall(user, words, model)
            self._open.append(call)
            try:
                yield call
            finally:
                self._open.remove(call)

    def open_job(self, name: str, answer: JobAnswer) -> str:
        """Address whose requests are answered by `answer`. May be called from any thread."""
        self._jobs[name] = answer
        return f"{self.address}/{name}"

    def end_job(self, name: str) -> None:
        """Refuse requests of a job from now on."""
        self._jobs.pop(name, None)

    # ------------------------------------------------------------------------------------------------- requests

    async def _handle(self, request: HttpRequest) -> HttpReply:
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(given.encode(), self.key.encode()):
            return http_refusal(401, "this gateway takes requests with the key of its run only")
        match request.method, request.path.removeprefix("/v1"):
            case "POST", "/chat/completions":
                return await self._chat(request.body)
            case "POST", path if path.endswith("/chat/completions"):
                return await self._of_job(path.split("/")[1], request.body)
            case "POST", "/embeddings":
                return self._embeddings(request.body)
            case "GET", "/models":
                return json_reply({"object": "list", "data": [{"id": MODEL_NAME, "object": "model", "created": 0}]})
            case _, path:
                return http_refusal(
                    404, f"{request.method} {path[:100]}: there are chat/completions, embeddings and models"
                )

    async def _of_job(self, name: str, body: bytes) -> HttpReply:
        if (answer := self._jobs.get(name)) is None:
            return http_refusal(404, f"no job {name[:100]!r} is under way")
        match _request(body):
            case ChatRequest() as request:
                return await answer(request)
            case refused:
                return refused

    async def _chat(self, body: bytes) -> HttpReply:
        match _request(body):
            case ChatRequest() as request:
                return await self._of_message(request)
            case refused:
                return refused

    async def _of_message(self, request: ChatRequest) -> HttpReply:
        match self._whose(request):
            case str(reason):
                self.unclear.append(reason)
                return http_refusal(409, reason)
            case OpenCall() as call:
                call.requests.append(request)
                try:
                    choice = await call.model(request)
                except Exception as error:  # noqa: BLE001  raised where the message is answered
                    call.trouble = error
                    return http_refusal(500, "the model of the run failed")
                return chat_reply(request, choice)

    def _whose(self, request: ChatRequest) -> OpenCall | str:
        """The message under way that a request belongs to, or the reason that none or several fit."""
        if not self._open:
            return "a request came while no message was under way"
        if _PSEUDONYM.fullmatch(request.user or "") and all(call.user != request.user for call in self._open):
            return f"a request came for {request.user}, whose message is answered"
        last, every = request.last_words, request.all_words
        rules: Sequence[Callable[[OpenCall], bool]] = (
            lambda call: call.user == request.user and call.words in every,
            lambda call: call.words == last,
            lambda call: call.words in last,
            lambda call: call.words in every,
            lambda call: call.user == request.user,
        )
        for rule in rules:
            fitting = [call for call in self._open if rule(call)]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                longest = sorted(fitting, key=lambda call: len(call.words))[-2:]
                if longest[1].words != longest[0].words and longest[0].words in longest[1].words:
                    return longest[1]  # "add milk" is part of "please add milk"
                return f"{len(fitting)} messages under way fit the request {last[:80]!r}"
        if len(self._open) == 1:
            return self._open[0]
        return f"none of {len(self._open)} messages under way fits the request {last[:80]!r}"

    def _embeddings(self, body: bytes) -> HttpReply:
        try:
            request = json.loads(body)
            texts = _texts(request)
        except (RecursionError, ValueError) as error:
            return http_refusal(400, f"no request for vectors: {error}")
        try:
            vectors = self._embed(texts).astype(np.float32) / np.float32(_SCALE)
        except UsageError as error:
            self.trouble = error
            return http_refusal(400, str(error))
        packed = request.get("encoding_format") == "base64"
        rows = [
            {"object": "embedding", "index": i, "embedding": _written(row, packed)} for i, row in enumerate(vectors)
        ]
        tokens = sum(map(len, texts)) // 4
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return json_reply({"object": "list", "data": rows, "model": str(request.get("model", "")), "usage": usage})


def _request(body: bytes) -> ChatRequest | HttpReply:
    """The request, or its refusal."""
    try:
        request = ChatRequest.of(body)
        _ = request.key
    except ValueError as error:
        return http_refusal(400, f"no chat completion: {error}")
    return request


def _texts(request: Any) -> list[str]:
    value = request.get("input") if isinstance(request, Mapping) else None
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("input must be a text, or a list of texts; lists of tokens are not read")
    if len(texts) > _MOST_TEXTS:
        raise ValueError(f"{len(texts)} texts; at most {_MOST_TEXTS} are taken at once")
    return texts


def _written(vector: np.ndarray, packed: bool) -> Any:
    if packed:  # as OpenAI's own client asks for
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(x) for x in vector]


def http_refusal(status: int, message: str) -> HttpReply:
    """The error of a request in OpenAI's words."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_reply({"error": {"message": message, "type": kind, "param": None, "code": str(status)}}, status)
