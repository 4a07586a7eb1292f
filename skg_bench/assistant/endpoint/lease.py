"""A system while users of one rollout ask it, its gateway, and the object that each user has of it."""

import asyncio
import json
import os
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from skg_bench.asking.chat_requests import ChatRequest
from skg_bench.asking.gateway import MODEL_NAME, Gateway, OpenCall
from skg_bench.asking.http_client import BrokenExchangeError, HttpAnswer, LocalClient
from skg_bench.asking.loop import asking_loop
from skg_bench.asking.wire import ChatChoice, chat_answer, in_chat
from skg_bench.assistant.endpoint.served_system import ServedSystem, Start, with_words
from skg_bench.assistant.endpoint.system_state import Kept, StateByFolder, StateByRequests, SystemState
from skg_bench.assistant.python.contract import Model
from skg_bench.assistant.python.outside import OutsideFault
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16
from skg_bench.core.spoken import references
from skg_bench.core.texts import EmbedTexts

T = TypeVar("T")
_CHAT = "/v1/chat/completions"
_BY_USER: Mapping[str, Any] = {"user": "{user}"}
_LAST = 1.0  # seconds to see whether a system that hung up has ended
_SHOWN = 200  # characters of an answer, in an error


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """How a system is reached and asked."""

    url: str | None  # of one that runs
    start: Start | None  # of one that is started
    body: Mapping[str, Any]
    frozen: Mapping[str, Any]
    at_once: int
    seconds: float
    time: str | None
    port: int  # of the gateway; 0: a free one
    key_from: str | None  # variable of the environment with the gateway's key; None: a random one
    state: SystemState  # how its memory is copied


class _Parts:
    """Parts that have to be closed."""

    def __init__(self) -> None:
        self.embedder: EmbedTexts | None = None
        self.system: ServedSystem | None = None
        self.gateway: Gateway | None = None
        self.client: LocalClient | None = None

    def embed(self, texts: Sequence[str]) -> I16:
        """Vectors of the run's embedder."""
        if self.embedder is None:
            raise UsageError("the system asks for vectors before the first message")
        return self.embedder(texts)

    def close(self) -> None:
        """Ends system and gateway; may be called from any thread."""
        if self.system is not None:
            self.system.close()
        loop = asking_loop()
        for part in (self.gateway, self.client):
            if part is not None:
                loop.call_soon_threadsafe(part.close)


class Lease:
    """A system for the users of one rollout. It is started with the first message, and ends when nobody holds the lease
    any more, at the end of the process at last.
    """

    def __init__(self, settings: BoxSettings, kept: Kept | None = None) -> None:
        """`kept`: the memory with which the system begins."""
        self.settings, self.frozen, self._kept = settings, False, kept
        self.seed: int | None = None  # of the requests; None: they have none
        self.requests = 0  # to the gateway
        self._parts = _Parts()
        self._starting: asyncio.Task[tuple[Gateway, LocalClient]] | None = None
        self._slots = asyncio.Semaphore(settings.at_once)
        self.close = weakref.finalize(self, self._parts.close)

    def at(self, embed: EmbedTexts, *, frozen: bool) -> None:
        """A turn begins; `frozen`: nothing of it may be remembered."""
        self._parts.embedder, self.frozen = embed, frozen

    def seeded(self, seed: int | None) -> None:
        """The next requests have this seed."""
        self.seed = seed

    def saved(self) -> Kept | None:
        """The memory of the system, None: it has not begun.

        Raises UsageError where it is not to be had.
        """
        return self._kept if self._starting is None else self._run(self._saved())

    def put_back(self, kept: Kept) -> None:
        """Lets the system remember this alone."""
        self._run(self._put_back(kept))

    def _run(self, call: Coroutine[object, object, T]) -> T:
        """Outcome of a call on the loop of the requests. Raises UsageError for whatever is wrong with the system."""
        try:
            return asyncio.run_coroutine_threadsafe(call, asking_loop()).result()
        except (BrokenExchangeError, OSError) as error:
            raise UsageError(f"the memory of the system cannot be copied: {error}; {self._how()}") from error

    async def _saved(self) -> Kept:
        gateway, client = await self._started()
        match self.settings.state, self._parts.system:
            case StateByRequests() as state, _:
                return await state.saved(client, _headers(gateway.key))
            case StateByFolder() as state, ServedSystem(folder=folder):
                return state.saved(folder)
        raise UsageError("assistant.state is empty; say how the memory of the system is copied")

    async def _put_back(self, kept: Kept) -> None:
        gateway, client = await self._started()
        match self.settings.state:
            case StateByRequests() as state:
                await state.load_into(client, _headers(gateway.key), kept)

    async def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the system for a message. Raises OutsideFault for whatever is wrong with the system."""

        async def answered(request: ChatRequest) -> ChatChoice:
            return in_chat(model(request.messages))

        async with self._slots:
            gateway, client = await self._started()
            async with gateway.call(user, message, answered) as call:
                response = await self._posted(client, gateway.key, user, time, message)
        self._check(gateway, call)
        words = self._words(response, message, gateway.key)
        self.requests += len(call.requests)
        if not self.requests and not references(words):
            raise OutsideFault(
                f"it answers without asking its model, which stands at {gateway.address} (in files: {{upstream}}, with "
                f"the key {{key}}); it said {words[:_SHOWN]!r}"
            )
        return words

    async def _posted(self, client: LocalClient, key: str, user: str, time: datetime, message: str) -> HttpAnswer:
        settings = self.settings
        more = {**(settings.body or _BY_USER), **(settings.frozen if self.frozen else {})}
        more |= {} if self.seed is None else {"seed": self.seed}
        body = {"model": MODEL_NAME, "messages": [{"role": "user", "content": message}], **_for_user(more, user)}
        headers = _headers(key)
        if settings.time is not None:
            headers[settings.time] = time.isoformat()
        try:
            async with asyncio.timeout(settings.seconds):
                return await client.request("POST", _CHAT, json.dumps(body).encode(), headers)
        except TimeoutError:
            raise OutsideFault(f"no answer came within assistant.seconds={settings.seconds:g}; {self._how()}") from None
        except BrokenExchangeError as error:
            if self._parts.system is not None:
                await self._parts.system.until_ended(_LAST)
            raise OutsideFault(f"{error}; {self._how()}") from error

    def _check(self, gateway: Gateway, call: OpenCall) -> None:
        """Raises what went wrong behind the system's back."""
        if call.trouble is not None:
            raise call.trouble
        if gateway.trouble is not None:
            raise UsageError(f"the system asks for vectors that the run's embedder does not have: {gateway.trouble}")
        if gateway.unclear:
            raise OutsideFault(
                f"it asked its model, and nobody knows for whom: {gateway.unclear[0]}; let it ask before it answers, "
                "and send on the field `user` or the message as it is, or take assistant.at_once=1"
            )
        keys = [request.key for request in call.requests]
        if len(set(keys)) < len(keys):
            raise OutsideFault("it asked its model twice with the same request; turn off that it tries again")

    def _words(self, response: HttpAnswer, message: str, key: str) -> str:
        begins = response.body[:_SHOWN].decode(errors="replace").replace(key, "{key}")
        if response.status != 200:
            raise OutsideFault(f"it answered HTTP {response.status}: {begins!r}; {self._how()}")
        try:
            return chat_answer(response.body, [{"role": "user", "content": message}]).text
        except ValueError as error:
            raise OutsideFault(f"its answer is no chat completion ({error}); it begins {begins!r}") from error

    def _how(self) -> str:
        return (
            f"see what runs at {self.settings.url}" if self._parts.system is None else self._parts.system.last_words()
        )

    async def _started(self) -> tuple[Gateway, LocalClient]:
        """Gateway and client of the system, which is started at the first time."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
        return await asyncio.shield(self._starting)  # one start for all users, whatever comes of it

    async def _start(self) -> tuple[Gateway, LocalClient]:
        parts, address = self._parts, self.settings.url
        gateway = parts.gateway = Gateway(parts.embed, _key(self.settings.key_from))
        await gateway.listen(self.settings.port)
        if (start := self.settings.start) is not None:
            parts.system = ServedSystem.start(start, gateway.address, gateway.key, self._fill)
            await parts.system.until_ready(start)
            address = parts.system.address
        client = parts.client = LocalClient(str(address).removesuffix("/").removesuffix("/v1"))
        match self.settings.state:
            case StateByRequests() as state if self._kept is not None:
                await state.load_into(client, _headers(gateway.key), self._kept)
        return gateway, client

    def _fill(self, folder: Path) -> None:
        match self.settings.state:
            case StateByFolder() as state:
                state.load_into(folder, self._kept or {})


@dataclass(frozen=True, slots=True)
class BoxUser:
    """A user's object: what `assistant=python` plays."""

    lease: Lease

    async def answer(self, user: str, time: datetime, message: str, model: Model) -> str:
        """Words of the system."""
        return await self.lease.answer(user, time, message, model)


def _headers(key: str) -> dict[str, str]:
    return {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}


def _for_user(value: Any, user: str) -> Any:
    """A value of the configuration, with the user's name for `{user}`."""
    match value:
        case str():
            return with_words(value, {"{user}": user})
        case list():
            return [_for_user(inner, user) for inner in value]
        case Mapping():
            return {key: _for_user(inner, user) for key, inner in value.items()}
        case _:
            return value


def _key(key_from: str | None) -> str | None:
    if key_from is None:
        return None
    if not (key := os.environ.get(key_from, "")):
        raise UsageError(f"assistant.key_from={key_from}: that variable of the environment is not set")
    return key
