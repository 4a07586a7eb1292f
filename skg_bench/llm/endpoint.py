"""Any server that speaks OpenAI's chat completions: a provider's, or one on this machine."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from skg_bench.asking.asking import Completion, Prices, Prompt
from skg_bench.asking.environment import offline
from skg_bench.core.errors import UsageError
from skg_bench.core.reach import NO_REACH, Reach, Reaches

_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+(/[!-~]*)?", re.ASCII)
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Endpoint:
    """Asks a model of any OpenAI-compatible server, many prompts at once.

    The key is read from the environment when it is needed, and stands nowhere else.
    """

    address: str
    model: str
    key_from: str | None
    temperature: float
    top_p: float
    seconds: float
    in_flight: int
    tries: int
    usd_per_million_in: float | None
    usd_per_million_cached: float | None
    usd_per_million_out: float | None
    sends_recorded: bool
    # how an answer is fetched, not what it is
    beside: ClassVar[Sequence[str]] = ("address", "key_from", "in_flight", "sends_recorded")
    reaches: ClassVar[Reaches] = {
        "address": Reach(("network",), harmless=()),
        "key_from": Reach(("environment",)),
        "model": NO_REACH,
    }

    def __post_init__(self) -> None:
        _check_address(self.address)
        if self.key_from is not None and not _NAME.fullmatch(self.key_from):
            raise UsageError(  # the value is not shown, as it may be a key
                "curator.llm.key_from must be the name of an environment variable, in capitals such as "
                "OPENAI_API_KEY, or null; the value given is no such name. Never write a key itself there"
            )
        if not self.model:
            raise UsageError("curator.llm.model is empty; name a model of the server")
        for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("seconds", 0, 86_400)):
            value = getattr(self, name)
            if not (low <= value <= high) or (value == 0 and name != "temperature"):
                raise UsageError(
                    f"curator.llm.{name}={value} must be {'from' if name == 'temperature' else 'above'} 0 to {high}"
                )
        for name in ("in_flight", "tries"):
            if getattr(self, name) < 1:
                raise UsageError(f"curator.llm.{name}={getattr(self, name)} must be at least 1")
        if (self.usd_per_million_in is None) != (self.usd_per_million_out is None):
            raise UsageError(
                "give both curator.llm.usd_per_million_in and curator.llm.usd_per_million_out, or null for "
                "both: unknown"
            )
        for name in ("usd_per_million_in", "usd_per_million_cached", "usd_per_million_out"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"curator.llm.{name}={value} must be finite and not negative, or null: unknown")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The model and how it samples."""
        return {"model": self.model, "temperature": float(self.temperature), "top_p": float(self.top_p)}

    @property
    def prices(self) -> Prices | None:
        """Prices of the yaml. Without a price for cached tokens, they cost as much as others."""
        if self.usd_per_million_in is None or self.usd_per_million_out is None:
            return None
        cached = self.usd_per_million_in if self.usd_per_million_cached is None else self.usd_per_million_cached
        return Prices(self.usd_per_million_in, cached, self.usd_per_million_out)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Answers in order."""
        answers: dict[int, Completion] = {}
        self.each(prompts, answers.update)
        return [answers[place] for place in range(len(prompts))]

    def each(self, prompts: Sequence[Prompt], done: Callable[[Mapping[int, Completion]], None]) -> None:
        """See asking.asking.Streaming. Until the server has answered once, the first prompt of a call goes alone: a
        wrong key, a wrong address and a form that the server refuses then cost one request, not `in_flight`.
        """
        from skg_bench.asking.exchange import Exchange
        from skg_bench.asking.loop import each_answer
        from skg_bench.asking.sending import ChatServer, check_libraries, contact
        from skg_bench.asking.structured import check_schema

        if not prompts:
            return
        if offline():
            raise UsageError(
                f"OFFLINE is set, and {self.address} would be asked; curator.llm=recorded plays recordings"
            )
        check_libraries()
        self._check_recorded(prompts)
        for role, schema in {(prompt.role, id(prompt.schema)): prompt.schema for prompt in prompts}.items():
            if schema is not None:
                check_schema(role[0], json.dumps(schema, sort_keys=True))
        key, known = self._key(), contact(self.address, self.model)

        async def answer(prompt: Prompt) -> Completion:
            server = ChatServer(self.address, self.model, key, self.tries, self.seconds / 2)
            return await Exchange(prompt, server, known, self._options(prompt), self.prices).completion(self.seconds)

        unsure = not known.answered or (prompts[0].schema is not None and not known.form_taken)
        each_answer(prompts, answer, done, width=self.in_flight, first_alone=unsure)

    def _options(self, prompt: Prompt) -> Mapping[str, Any]:
        # the seed makes a sample of its own for each draw; at temperature 0 there is nothing to draw
        seed = {"seed": prompt.draw % _LARGEST_SEED} if self.temperature > 0 else {}
        return {**self.settings, **seed}

    def _key(self) -> str | None:
        if self.key_from is None:
            return None
        key = os.environ.get(self.key_from, "").strip()
        if not key:
            raise UsageError(
                f"curator.llm.key_from={self.key_from}: that environment variable is not set; put the key of "
                f"{self.address} there, or set curator.llm.key_from=null for a server that wants none"
            )
        if not (key.isascii() and key.isprintable()):
            raise UsageError(
                f"the environment variable {self.key_from} (curator.llm.key_from) holds no key: it has odd characters"
            )
        return key

    def _check_recorded(self, prompts: Sequence[Prompt]) -> None:
        from skg_bench.asking.sending import is_loopback

        if any(prompt.recorded for prompt in prompts) and not self.sends_recorded and not is_loopback(self.address):
            raise UsageError(
                f"prompts hold messages of a recorded log, which people wrote, and "
                f"curator.llm.address={self.address} is "
                "another machine; ask a model on this one, or set curator.llm.sends_recorded=true if they may "
                "be sent there"
            )


def _check_address(address: str) -> None:
    """The address is not shown where it may hold a secret."""
    try:
        parts = urlsplit(address)
        secret = parts.username is not None or parts.query or parts.fragment
        fits = _ADDRESS.fullmatch(address) and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        secret, fits = None, False
    if secret:
        raise UsageError(
            "curator.llm.address holds a user, a query or a fragment, which is where secrets stand; valid is "
            "scheme://host/path, with the key in the environment variable that curator.llm.key_from names"
        )
    if not fits or address.endswith(("/", "/chat/completions")):
        raise UsageError(
            f"curator.llm.address={address!r} must be what stands before /chat/completions, such as http://127.0.0.1:8000/v1"
        )
