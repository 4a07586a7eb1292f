"""Requests to a chat completion as they came, and the bodies of their answers in OpenAI's words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from skg_bench.asking.http_server import HttpReply, json_reply
from skg_bench.asking.recorded_asks import canonical_json

_DELIVERY = ("stream", "stream_options", "user", "metadata")  # who asks, and how the answer is sent: not what it is
_CHARACTERS = 4  # a token; rule of thumb for English
_PIECE = 24  # characters of an answer in one event of a stream


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, raw: `messages`, `tools`, `tool_choice`, `response_format`, `seed` and all else that came."""

    body: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]

    @staticmethod
    def of(content: bytes) -> "ChatRequest":
        """A request from its body. Raises ValueError for what is none."""
        try:
            body = json.loads(content)
        except RecursionError as error:
            raise ValueError("JSON of too many levels") from error
        messages = body.get("messages") if isinstance(body, dict) else None
        if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
            raise ValueError("a chat completion needs messages, a list of objects with role and content")
        return ChatRequest(body, messages)

    @property
    def key(self) -> bytes:
        """SHA-256 of the canonical body: of all that decides the answer. Raises ValueError for NaN and infinity."""
        return sha256(canonical_json({k: v for k, v in self.body.items() if k not in _DELIVERY})).digest()

    @property
    def user(self) -> str | None:
        """Field `user`, if it was sent on."""
        user = self.body.get("user")
        return user if isinstance(user, str) else None

    @property
    def last_words(self) -> str:
        """Words of the last message of a user; empty: there is none."""
        return next((words_of(each) for each in reversed(self.messages) if each.get("role") == "user"), "")

    @property
    def all_words(self) -> str:
        """Words of all messages."""
        return "\n".join(map(words_of, self.messages))


def words_of(message: Mapping[str, Any]) -> str:
    """Words of a message, whose content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def chat_reply(request: ChatRequest, words: str) -> HttpReply:
    """The answer in the form that the request asks for: JSON, or a stream of server-sent events."""
    tokens_in, tokens_out = len(request.all_words) // _CHARACTERS, len(words) // _CHARACTERS
    usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    named = {"id": f"chatcmpl-{request.key.hex()[:24]}", "created": 0, "model": str(request.body.get("model", ""))}
    if request.body.get("stream") is True:
        options = request.body.get("stream_options")
        wanted = isinstance(options, Mapping) and options.get("include_usage") is True
        events = _events({**named, "object": "chat.completion.chunk"}, words, usage if wanted else None)
        return HttpReply(200, tuple(events), "text/event-stream; charset=utf-8", (("Cache-Control", "no-cache"),))
    message = {"role": "assistant", "content": words}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return json_reply({**named, "object": "chat.completion", "choices": [choice], "usage": usage})


def _events(named: Mapping[str, Any], words: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
    pieces = [words[at : at + _PIECE] for at in range(0, len(words), _PIECE)]
    deltas: list[Mapping[str, str]] = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]
    for delta in deltas:
        yield _event({**named, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**named, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage is not None:
        yield _event({**named, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
