"""Learning jobs of another program: the line that it gets, its requests to the model, and how each job ends.

The program has one job at a time. Its requests to `/chat/completions` wait until the thread of the job hands them to
the arm's model, so that they are recorded, played, counted and stopped as all others.
"""

import asyncio
import json
import time
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import sha256
from queue import Empty
from typing import Any

import numpy as np

from skg_bench.asking.arrivals import CompletionsByPlace, ask_each
from skg_bench.asking.asking import Completion, End, Prompt, TextModel
from skg_bench.asking.chat_requests import PEER, ChatRequest, chat_reply
from skg_bench.asking.gateway import Gateway, http_refusal
from skg_bench.asking.http_server import HttpReply
from skg_bench.asking.loop import asking_loop
from skg_bench.asking.structured import structured_answer
from skg_bench.asking.wire import ChatChoice
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.draws import Purpose, fold
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I16
from skg_bench.curator.shared.learning_job import LearningJob, Proposal
from skg_bench.curator.shared.peer_process import PeerProcess
from skg_bench.skillbook.ace.book import to_dict
from skg_bench.skillbook.conversion import to_ace
from skg_bench.skillbook.proposals import Batches

_SHOWN = 200  # characters of a line in an error
_ANSWER: Mapping[str, Any] = {
    "type": "object",
    "properties": {"job": {"type": "string"}, "operations": {"type": "array"}, "error": {"type": "string"}},
    "required": ["job"],
    "oneOf": [{"required": ["operations"]}, {"required": ["error"]}],
}
_FIRST: Mapping[str, Any] = {"type": "object", "properties": {"peer": {"type": "string"}}, "required": ["peer"]}


@dataclass(frozen=True, slots=True)
class PeerSettings:
    """Command of a program, and limits of each of its jobs."""

    command: Sequence[str]
    name: str | None  # that its first line must have; None: any
    makes: str | None  # command that installs it
    starts: float  # seconds until it is ready
    seconds: float  # of silence in a job, while none of its requests waits
    asks: int  # of one job at most
    answer_tokens: int
    batches: Batches


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request that waits for the model."""

    job: str
    request: ChatRequest
    reply: Future[HttpReply]


@dataclass(slots=True)
class _UnderWay:
    """A job, and its requests so far."""

    name: str
    job: LearningJob
    fresh: bool  # does the program have its first job?
    calls: list[Completion] = field(default_factory=list)
    times: Counter[bytes] = field(default_factory=Counter)  # repetitions of each request, by its key

    def prompt(self, request: ChatRequest, limit: int) -> Prompt:
        """The request with a draw of its own for each user, event, turn, request, and time that it is repeated."""
        nth = self.times[request.key]
        self.times[request.key] += 1
        draw = fold(np.full(1, self.job.key, np.uint64), int(Purpose.REFLECT))
        for part in (self.job.turn, int.from_bytes(request.key[:4]), nth):
            draw = fold(draw, part)
        job = self.job
        return request.prompt(int(draw[0]) >> 1, limit, recorded=job.recorded, redacted=job.redacted)


class _GoneError(Exception):
    """Raised if the program ended between two jobs; this job starts it anew."""


class _Parts:
    """Program and gateway, which have to be closed."""

    def __init__(self) -> None:
        self.peer: PeerProcess | None = None
        self.gateway: Gateway | None = None

    def close(self) -> None:
        """Ends program and gateway; may be called from any thread."""
        self.end_peer()
        if self.gateway is not None:
            asking_loop().call_soon_threadsafe(self.gateway.close)

    def end_peer(self) -> None:
        """Ends the program; the next job starts it anew."""
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.close()


class PeerJobs:
    """A program for the jobs of one process. It starts with the first job, and ends with the last reference to this."""

    def __init__(self, settings: PeerSettings, llm: TextModel) -> None:
        self._settings, self._llm, self._parts = settings, llm, _Parts()
        self.close = weakref.finalize(self, self._parts.close)

    def proposal(self, job: LearningJob) -> Proposal:
        """The program's proposal. If the program fails, it is stopped, and the proposal has the reason.

        Raises UsageError if the program cannot be started, and where the model raises it.
        """
        gateway, fresh = self._gateway(), self._parts.peer is None
        peer = self._parts.peer or self._started(gateway)
        name = sha256(f"{job.key} {job.turn}".encode()).hexdigest()[:16]  # in each run the same, as errors may show it

        async def answer(request: ChatRequest) -> HttpReply:
            reply: Future[HttpReply] = Future()
            peer.events.put(_Ask(name, request, reply))
            return await asyncio.wrap_future(reply)

        address = gateway.open_job(name, answer)
        try:
            peer.send(_line(name, address, gateway.key, job))
            return self._outcome(peer, _UnderWay(name, job, fresh))
        except _GoneError:
            self._parts.end_peer()
            return self.proposal(job)
        except BaseException:
            self._parts.end_peer()  # else it would wait for an answer for ever
            raise
        finally:
            gateway.end_job(name)

    def _outcome(self, peer: PeerProcess, under_way: _UnderWay) -> Proposal:
        until = time.monotonic() + self._settings.seconds
        while True:
            try:
                event = peer.next(until)
            except TimeoutError:
                words = f"the peer was silent for curator.seconds={self._settings.seconds:g}"
                return self._failed(under_way, "timeout", words)
            match event:
                case _Ask() as ask if ask.job == under_way.name:
                    if len(under_way.calls) == self._settings.asks:
                        words = f"the peer asked more than curator.asks={self._settings.asks} times"
                        return self._failed(under_way, "error", words)
                    self._answer(peer, ask, under_way)
                    until = time.monotonic() + self._settings.seconds
                case _Ask() as ask if ask.reply.set_running_or_notify_cancel():
                    ask.reply.set_result(http_refusal(404, "its job is over"))
                case None if not under_way.fresh and not under_way.calls:
                    raise _GoneError
                case None:
                    return self._failed(under_way, "error", "the peer ended in the middle of the job")
                case bytes() as line:
                    return self._read(line, under_way)

    def _answer(self, peer: PeerProcess, first: _Ask, under_way: _UnderWay) -> None:
        """Hand a request, and all others that wait, to the model. Other events keep their order."""
        asks, others = [first], list[Any]()
        while len(asks) + len(under_way.calls) < self._settings.asks:
            try:
                event = peer.events.get_nowait()
            except Empty:
                break
            (asks if isinstance(event, _Ask) and event.job == first.job else others).append(event)
        for event in others:
            peer.events.put(event)
        asks = [ask for ask in asks if ask.reply.set_running_or_notify_cancel()]  # others have hung up
        limit = self._settings.answer_tokens
        prompts = [under_way.prompt(ask.request, limit) for ask in asks]
        calls: dict[int, Completion] = {}

        def done(answers: CompletionsByPlace) -> None:
            calls.update(answers)
            for place, completion in answers.items():
                asks[place].reply.set_result(_reply(asks[place].request, completion))

        try:
            ask_each(self._llm, prompts, done)
        finally:
            for place, ask in enumerate(asks):
                if place not in calls:
                    ask.reply.set_result(http_refusal(402, "the model of the run cannot be asked"))
            under_way.calls += [call for _, call in sorted(calls.items())]

    def _read(self, line: bytes, under_way: _UnderWay) -> Proposal:
        """The proposal in a line."""
        answer, wrong = structured_answer(line.decode(errors="replace"), _ANSWER)
        if wrong:
            shown = self._without_secrets(line.decode(errors="replace"), under_way.name)[:_SHOWN].strip()
            reason = f"the peer wrote {shown!r} in place of an answer; it must print to standard error"
            return self._failed(under_way, "error", reason)
        if answer["job"] != under_way.name:
            return self._failed(under_way, "error", "the peer answered another job, or answered twice")
        calls = _by_number(under_way.calls)
        if (error := answer.get("error")) is not None:
            if under_way.calls and under_way.calls[-1].end != "ok":
                return Proposal(None, self._settings.batches, calls)  # the end of the last call is the reason
            shown = self._without_secrets(error, under_way.name)[:_SHOWN]
            return Proposal(None, self._settings.batches, {**calls, PEER: _failure("error", shown)})
        batch = {"operations": answer["operations"]} if answer["operations"] else None
        return Proposal(batch, self._settings.batches, calls, answer.get("reasoning"))

    def _failed(self, under_way: _UnderWay, end: End, reason: str) -> Proposal:
        """Proposal of a job that failed. Stops the program, whose next line could belong to this job."""
        self._parts.end_peer()
        calls = {**_by_number(under_way.calls), PEER: _failure(end, reason)}
        return Proposal(None, self._settings.batches, calls)

    def _started(self, gateway: Gateway) -> PeerProcess:
        settings = self._settings
        peer = self._parts.peer = PeerProcess.start(settings.command, settings.makes)
        try:
            line = peer.next(time.monotonic() + settings.starts)
        except TimeoutError:
            trouble = f"it said nothing within curator.starts={settings.starts:g} s"
        else:
            first, wrong = structured_answer((line or b"").decode(errors="replace"), _FIRST)
            if not wrong and settings.name in (None, first["peer"]):
                return peer
            shown = repr((line or b"")[:_SHOWN].decode(errors="replace").strip())
            wanted = json.dumps({"peer": settings.name or "NAME"})
            trouble = "it ended" if line is None else f"its first line is {shown}, and {wanted} was expected"
        words = peer.last_words({gateway.key: "{key}"})
        self._parts.end_peer()
        remedy = "" if settings.makes is None else f". To install it: {settings.makes}"
        raise UsageError(f"curator.command does not start: {trouble}; {words}{remedy}")

    def _gateway(self) -> Gateway:
        if self._parts.gateway is None:
            gateway = Gateway(_no_vectors)
            asyncio.run_coroutine_threadsafe(gateway.listen(), asking_loop()).result()
            self._parts.gateway = gateway
        return self._parts.gateway

    def _without_secrets(self, text: str, name: str) -> str:
        """The text without key and address, which differ from run to run."""
        gateway = self._gateway()
        return text.replace(gateway.key, "{key}").replace(f"{gateway.address}/{name}", "{address}")


def _line(name: str, address: str, key: str, job: LearningJob) -> bytes:
    book = to_dict(to_ace(job.book, "v2", FIRST_MONDAY).book)
    return json.dumps({"job": name, "address": address, "key": key, **job.data, "skillbook": book}).encode() + b"\n"


def _reply(request: ChatRequest, completion: Completion) -> HttpReply:
    """The answer, or a refusal that clients do not retry, as the run has retried already."""
    if completion.end != "ok":
        return http_refusal(424, f"the model gave no answer: {completion.reason or completion.end}")
    return chat_reply(request, ChatChoice.of(completion.text), (completion.tokens_in, completion.tokens_out))


def _by_number(calls: Sequence[Completion]) -> dict[str, Completion]:
    return {f"{PEER} {number}": call for number, call in enumerate(calls, 1)}


def _failure(end: End, reason: str) -> Completion:
    """Failure of the program itself, which costs nothing more."""
    return Completion("", None, end, 0, 0, 0, 0.0, 0.0, reason)


def _no_vectors(texts: Sequence[str]) -> I16:
    raise UsageError(f"{len(texts)} texts: this gateway gives no vectors; a peer brings its own embedder")
