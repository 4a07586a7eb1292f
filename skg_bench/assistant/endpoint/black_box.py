"""A system behind an address as an assistant: the component that the configuration names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from skg_bench.asking.sending import is_loopback
from skg_bench.assistant.endpoint.lease import BoxSettings, BoxUser, Lease
from skg_bench.assistant.endpoint.served_system import Start
from skg_bench.assistant.endpoint.system_state import StateByFolder, StateByRequests, system_state
from skg_bench.assistant.python.component import check_finite_numbers
from skg_bench.assistant.python.outside import Objects, Outside
from skg_bench.assistant.python.probing import ProbedSystem
from skg_bench.core.assistant import Experience, Message, Reply
from skg_bench.core.errors import UsageError, install_hint
from skg_bench.core.feedback import KnownFeedback
from skg_bench.core.package import files_named
from skg_bench.core.reach import NO_REACH, Reach, Reaches
from skg_bench.core.sharing import Shares, check_shares
from skg_bench.core.texts import EmbedTexts

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True)
class BlackBox:
    """Plays a system that speaks OpenAI's chat API, and whose own model is the run's, behind the gateway."""

    url: str | None
    command: Sequence[str] | None
    files: Mapping[str, str]
    ready: str
    starts: float
    body: Mapping[str, Any]
    frozen: Mapping[str, Any]
    shares: Shares
    at_once: int
    seconds: float
    time: str | None
    port: int | None
    key_from: str | None
    state: Mapping[str, str]
    controls: bool
    sees_truth: ClassVar[bool] = False
    name: ClassVar[str] = "the system of assistant=endpoint"
    remedy: ClassVar[str] = (
        "Let it keep users apart by what assistant.body sends of them (LiteLLM: cache: {namespace: '{user}'}), keep no "
        "memory where its next instance finds it, and leave out what depends on a clock"
    )
    reaches: ClassVar[Reaches] = {
        "url": Reach(("network",)),
        "command": Reach(("code",)),
        "files": Reach(("writes", "code"), harmless=({},)),
        "ready": NO_REACH,
        "body": NO_REACH,
        "frozen": NO_REACH,
        "shares": NO_REACH,
        "time": NO_REACH,
        "port": Reach(("network",)),
        "key_from": Reach(("environment",)),
        "state": NO_REACH,
    }
    beside: ClassVar[tuple[str, ...]] = ("at_once", "seconds", "starts", "port", "key_from")

    def __post_init__(self) -> None:
        if self.url is not None and self.command is not None:
            raise _none_to_ask("both")
        self._check_place()
        check_shares(self.shares)
        check_finite_numbers("assistant.body", self.body)
        check_finite_numbers("assistant.frozen", self.frozen)
        self._check_state()
        for name, low in (("seconds", 0), ("starts", 0), ("at_once", 1)):
            value = getattr(self, name)
            if not low <= value < float("inf") or value == 0:
                raise UsageError(f"assistant.{name}={value} must be {'above 0' if low == 0 else 'at least 1'}")
        if self.time is not None and not _NAME.fullmatch(self.time):
            raise UsageError(f"assistant.time={self.time!r} must be the name of a header, such as X-Time, or null")
        try:
            import h11  # noqa: F401
        except ImportError as error:
            raise UsageError(f"assistant=endpoint needs {error.name}: {install_hint('llm')}") from error

    def _check_state(self) -> None:
        match system_state(self.state):
            case StateByFolder() if self.url is not None:
                raise UsageError(
                    f"assistant.state={dict(self.state)} is of a system that is started; one that runs has two "
                    "paths that give and take its memory: assistant.state={save: /memory, load: /memory}"
                )

    def _check_place(self) -> None:
        if self.url is not None:
            if not re.fullmatch(r"http://[\w.:\[\]-]+(/v1)?/?", self.url, re.ASCII):
                raise UsageError(
                    f"assistant.url={self.url!r} must be http://, a host and a port, such as http://127.0.0.1:4000, "
                    "and nothing or /v1 behind them: requests go to /v1/chat/completions there"
                )
            if not is_loopback(self.url):
                raise UsageError(
                    f"assistant.url={self.url!r} must be that of a system on this machine, such as "
                    "http://127.0.0.1:4000: its model is behind a port of this machine, too"
                )
            if self.shares != "user":
                raise UsageError(
                    f"assistant.shares={self.shares}: each instance begins without memory, and a system that runs "
                    "already has some, at the latest after a stop; let each be started: assistant.command=[...]"
                )
            if self.port is None or self.key_from is None:
                raise UsageError(
                    "a system that runs has to know its model beforehand: give the port of the gateway, "
                    "assistant.port=4001 (its address is http://127.0.0.1:4001/v1), and the variable with its key, "
                    "assistant.key_from=GATEWAY_KEY"
                )
            if self.controls:
                raise UsageError(
                    "a system that runs already would remember the users of controls; take assistant.controls=false "
                    "(the page then says so), or let each play start one: assistant.command=[...]"
                )
        if self.key_from is not None and not _VARIABLE.fullmatch(self.key_from):
            raise UsageError(
                "assistant.key_from must be the name of an environment variable, in capitals such as GATEWAY_KEY, or "
                "null; what is given is none. Never write a key itself there"
            )
        if self.command is not None and (not self.command or any("{key}" in word for word in self.command)):
            raise UsageError(
                "assistant.command must be a list of words, and {key} is filled into files only: words of a command "
                "can be read by all users of this machine"
            )

    @property
    def programs(self) -> Sequence[Path]:
        return files_named(self.command or ())

    @cached_property
    def _settings(self) -> BoxSettings:
        if self.url is None and self.command is None:
            raise _none_to_ask("neither")
        start = None if self.command is None else Start(self.command, self.files, self.ready, self.starts)
        return BoxSettings(
            self.url,
            start,
            self.body,
            self.frozen,
            self.at_once,
            self.seconds,
            self.time,
            self.port or 0,
            self.key_from,
            system_state(self.state),
        )

    @cached_property
    def _outside(self) -> Outside:
        return Outside(_Source(Lease(self._settings)), one_clock=self.shares != "user")

    def __getstate__(self) -> dict[str, Any]:
        """Another process starts the system itself."""
        return {key: value for key, value in vars(self).items() if key not in ("_outside", "_settings")}

    def start(self, n: int) -> Objects:
        """Objects of `n` users of a system that has no memory of them; it starts with the first message."""
        return Outside(_Source(Lease(self._settings))).start(n)

    def probed(self, embed: EmbedTexts) -> ProbedSystem:
        """A new instance for a probe; `embed` gives the vectors for which it asks."""
        lease = Lease(self._settings)
        lease.at(embed, frozen=False)
        return ProbedSystem(_Source(lease), embed, lease.seeded, self.time is not None)

    def answer(self, query: Message, state: Objects) -> tuple[Objects, Reply]:
        """Words of the system for each user."""
        lease: Lease = state.made[0].lease
        lease.at(query.texts.embed, frozen=query.frozen)
        kept = lease.saved() if query.frozen and not self.frozen else None
        later, reply = self._outside.answer(replace(query, frozen=False), state)
        if kept is not None:
            lease.put_back(kept)
        return later, reply

    def learn(self, seen: Experience, feedback: KnownFeedback, state: Objects) -> Objects:
        """The objects: what users say reaches no system."""
        return state

    def shared(self, state: Objects) -> Objects:
        """The state of one more user, who asks the same system."""
        return self._outside.shared(state)

    def unfrozen(self) -> str | None:
        """Reason why its memory cannot be frozen, None: it can."""
        match system_state(self.state):
            case StateByRequests():
                return None
        if self.frozen:
            return None
        return (
            "assistant.frozen is empty; say what body of a request lets the system read and not store, or two paths "
            "that give and take its memory: assistant.state={save: /memory, load: /memory}"
        )

    def saved(self, state: Objects) -> Mapping[str, Any] | None:
        """The memory, None: only the system knows what it remembers, so users that are at work begin anew."""
        return None if not self.state else {"who": state.who, "memory": state.made[0].lease.saved()}

    def loaded(self, data: Any, n: int) -> Objects:
        """Objects of `n` users of a new system with a memory that was `saved`.

        Raises ValueError where nothing could be saved, so that users of a checkpoint that says otherwise begin anew.
        """
        if not self.state:
            raise ValueError("a system of somebody else has no memory that could be saved")
        made = Outside(_Source(Lease(self._settings, data["memory"]))).start(n)
        made.who = data["who"]
        return made


def _none_to_ask(given: str) -> UsageError:
    return UsageError(
        f"assistant=endpoint was given {given} of url and command; give one: assistant.url=http://127.0.0.1:4000 of a "
        "system that runs, or assistant.command=[...] of one that is started for each arm"
    )


@dataclass(frozen=True)
class _Source:
    lease: Lease
    name: str = BlackBox.name

    def made(self) -> BoxUser:
        """Object of a user."""
        return BoxUser(self.lease)
