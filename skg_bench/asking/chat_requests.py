"""Requests to a chat completion as they came, and the bodies of their answers in OpenAI's words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from skg_bench.asking.asking import Prompt
from skg_bench.asking.http_server import HttpReply, json_reply
from skg_bench.asking.recorded_asks import canonical_json
from skg_bench.asking.wire import ChatChoice, words_of

_DELIVERY = ("stream", "stream_options", "user", "metadata")  # fields that do not change the answer
# Fields that the run sets: the model, its sampling, and the length of answers. A request has one answer.
_SETTINGS = ("model", "temperature", "top_p", "max_tokens", "max_completion_tokens", "n")
_CHARACTERS = 4  # a token; rule of thumb for English
_PIECE = 24  # characters of an answer in one event of a stream

PEER = "peer"
"""Role of prompts that another process has written."""


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

    def prompt(self, draw: int, limit: int, *, recorded: bool, redacted: bool) -> Prompt:
        """The request as a raw prompt, whose answer has at most `limit` tokens, and no more than it asks for."""
        raw = {name: value for name, value in self.body.items() if name not in (*_DELIVERY, *_SETTINGS)}
        wanted = (self.body.get(name) for name in ("max_tokens", "max_completion_tokens"))
        least = min([limit, *(most for most in wanted if type(most) is int and most > 0)])
        frame = {name: value for name, value in raw.items() if name != "messages"}
        system = json.dumps(frame, ensure_ascii=False, indent=1) if frame else ""
        return Prompt(PEER, system, _all_said(self.messages), None, draw, least, recorded, redacted, raw)

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


def _all_said(messages: Sequence[Mapping[str, Any]]) -> str:
    """Words of messages, and arguments of their calls of tools, a paragraph each."""
    parts = list[str]()
    for message in messages:
        calls = message.get("tool_calls")
        functions = (
            [call.get("function") for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        )
        called = [str(each.get("arguments", "")) for each in functions if isinstance(each, Mapping)]
        parts += [text for text in (words_of(message), *called) if text]
    return "\n\n".join(parts)


def chat_reply(request: ChatRequest, choice: ChatChoice, usage: tuple[int, int] | None = None) -> HttpReply:
    """The answer in the form that the request asks for: JSON, or a stream of server-sent events. `usage`: tokens in and
    out; None: they are estimated.
    """
    characters = len(choice.text if choice.message.get("tool_calls") else words_of(choice.message))
    tokens_in, tokens_out = usage or (len(request.all_words) // _CHARACTERS, characters // _CHARACTERS)
    counts = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    named = {"id": f"chatcmpl-{request.key.hex()[:24]}", "created": 0, "model": str(request.body.get("model", ""))}
    if request.body.get("stream") is True:
        options = request.body.get("stream_options")
        wanted = isinstance(options, Mapping) and options.get("include_usage") is True
        events = _events({**named, "object": "chat.completion.chunk"}, choice, counts if wanted else None)
        return HttpReply(200, tuple(events), "text/event-stream; charset=utf-8", (("Cache-Control", "no-cache"),))
    message = {"role": "assistant", "content": None, **choice.message}
    answer = {"index": 0, "message": message, "finish_reason": choice.finish, "logprobs": None}
    return json_reply({**named, "object": "chat.completion", "choices": [answer], "usage": counts})


def _events(named: Mapping[str, Any], choice: ChatChoice, usage: Mapping[str, int] | None) -> Iterator[bytes]:
    words = words_of(choice.message)
    pieces = [words[at : at + _PIECE] for at in range(0, len(words), _PIECE)]
    calls = [{"index": i, **call} for i, call in enumerate(choice.message.get("tool_calls", ()))]
    deltas: list[Mapping[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces)]
    for delta in [*deltas, *([{"tool_calls": calls}] if calls else [])]:
        yield _event({**named, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**named, "choices": [{"index": 0, "delta": {}, "finish_reason": choice.finish}]})
    if usage is not None:
        yield _event({**named, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
