"""Requests to `/chat/completions`, and their responses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FORMS = (
    "json_schema",
    "json_object",
    "text",
)  # of answers that must fit a schema; the first that a server takes is used
CHARACTERS = 4  # a token; rule of thumb for English, where a server counts none
_LARGEST = 10**8  # tokens of a prompt or an answer: what is more is no count. Our choice, ten times the longest prompt
_LONGEST = 100  # characters of a model's name
_USAGE = ("prompt_tokens", "completion_tokens")
_SAID = ("content", "tool_calls", "refusal")  # fields of a message that an answer has

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChatChoice:
    """An answer as chat completions have it: words, calls of tools, or both."""

    message: Mapping[str, Any]  # content, tool_calls and refusal, as far as there are such
    finish: str = "stop"

    @staticmethod
    def of(text: str) -> "ChatChoice":
        """A choice from its JSON; words alone where that is none, as of a model that knows no tools."""
        try:
            fields = json.loads(text)
            return ChatChoice(fields["message"], fields["finish_reason"])
        except (ValueError, KeyError, TypeError):
            return in_chat(text)

    @property
    def text(self) -> str:
        """The choice as JSON: what a completion of a raw prompt says."""
        return json.dumps({"finish_reason": self.finish, "message": self.message}, ensure_ascii=False)


def in_chat(words: str) -> ChatChoice:
    """An answer of words alone."""
    return ChatChoice({"content": words})


def words_of(message: Message) -> str:
    """Words of a message, whose content is a text or a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """An answer of the server."""

    text: str
    refused: bool  # by the model, or by a filter
    cut: bool  # by the limit of tokens
    tokens_in: int  # cached ones included
    tokens_cached: int
    tokens_out: int
    estimated: bool  # are some of these not the server's?
    model: str  # as the server names it


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any], form: str) -> list[Message]:
    """The messages, with the schema in words where the server is not given it as such."""
    if form == "json_schema":
        return list(messages)
    words = f"{messages[0]['content']}\n\nThe JSON schema of answers:\n{json.dumps(schema, ensure_ascii=False)}"
    return [{**messages[0], "content": words}, *messages[1:]]


def response_format(role: str, schema: Mapping[str, Any], form: str) -> dict[str, Any]:
    """The field `response_format`; empty where the server takes none."""
    if form == "text":
        return {}
    if form == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": form, form: {"name": role, "schema": schema, "strict": True}}}


def chat_answer(content: bytes, messages: Sequence[Message], *, whole: bool = False) -> ChatAnswer:
    """An answer from the body of a response; `whole`: its text is the JSON of the choice, calls of tools included.
    Tokens that the server does not count are estimated.

    Raises ValueError for a body that is no chat completion.
    """
    try:
        body = json.loads(content)
    except RecursionError as error:
        raise ValueError("JSON of too many levels") from error
    try:
        choice = body["choices"][0]
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError("it has no choices[0].message") from error
    if not isinstance(text, str | None):
        raise ValueError("choices[0].message.content is no text")  # noqa: TRY004  the server's, not the caller's
    finish = choice.get("finish_reason")
    text = (text or "").encode(errors="replace").decode()  # half a surrogate pair could be written to no file
    if whole:
        kept = {name: message[name] for name in _SAID if message.get(name) is not None}
        text = ChatChoice(kept, finish if isinstance(finish, str) else "stop").text.encode(errors="replace").decode()
    usage = _mapping(body.get("usage"))
    estimates = sum(len(words_of(message)) for message in messages) // CHARACTERS, len(text) // CHARACTERS
    counts = [_count(usage.get(name), estimate) for name, estimate in zip(_USAGE, estimates, strict=True)]
    tokens_in, tokens_out = (estimates[i] if count is None else count for i, count in enumerate(counts))
    return ChatAnswer(
        text,
        bool(refusal) or finish == "content_filter",
        finish == "length",
        tokens_in,
        min(_count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"), 0) or 0, tokens_in),
        tokens_out,
        None in counts,
        _name(body.get("model")),
    )


def _name(value: Any) -> str:
    """A name that any file can hold."""
    return value[:_LONGEST].encode(errors="replace").decode() if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any, estimate: int) -> int | None:
    """A number of tokens; None: the server gives none, or one that cannot be, such as 0 for many words."""
    return value if type(value) is int and min(estimate, 1) <= value <= _LARGEST else None
