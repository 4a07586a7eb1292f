"""Probe of an assistant of somebody else: some 130 requests before any run, and what they show of it from outside.

Each thing is asked of users of its own, so that no question disturbs another one. All requests are sent twice, the
second time to a new instance: what comes back then has to be the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from time import perf_counter
from typing import Any, Literal

from skg_bench.assistant.python.contract import AskedModel
from skg_bench.assistant.python.outside import ObjectSource, Outside
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.spoken import answer_words, references
from skg_bench.core.texts import EmbedTexts

Whose = Literal["new", "earlier", "leaked", "unknown", "wordless"]

_LEVELS = (0.96, 0.91, 0.86, 0.81, 0.76, 0.71, 0.66, 0.61, 0.56, 0.51)  # cosines, tried from the highest on
_HALVINGS = 2  # between the lowest cosine that found an answer and the next one
_GAPS = (timedelta(minutes=10), timedelta(hours=2), timedelta(days=1), timedelta(weeks=1))
_GAP_WORDS = ("10 minutes", "2 hours", "a day", "a week")
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ProbedSystem:
    """A new instance of a system, without memory."""

    source: ObjectSource
    embed: EmbedTexts
    seeded: Callable[[int | None], None] | None  # sets the seed of the next requests; None: it is told no seed
    told_time: bool  # does it see the users' clock?


@dataclass(frozen=True, slots=True)
class ProbeTexts:
    """Messages that a probe sends."""

    apart: Sequence[str]  # no two are near one another
    pair: Callable[[float], tuple[str, str, float]]  # two messages of about this cosine, and their cosine


@dataclass(frozen=True, slots=True)
class Seen:
    """Answer to a request, as seen from outside."""

    whose: Whose
    of: int  # number of the request whose answer it is; -1: of none
    calls: int  # of the model
    reminded: int  # different earlier answers that stood in its prompts
    seconds: float

    @property
    def told(self) -> tuple[Whose, int, int, int]:
        """All but the time it took."""
        return self.whose, self.of, self.calls, self.reminded


@dataclass(frozen=True, slots=True)
class Near:
    """Messages that find the answer to another one."""

    hit: float | None  # lowest cosine that found it; None: none did
    missed: float | None  # highest cosine below it that did not; None: all did


@dataclass(frozen=True, slots=True)
class SystemProbe:
    """Findings about a system."""

    seen: Sequence[Seen]
    first: Seen  # for a message
    again: Seen  # for the same words a minute later
    other: Seen  # for the same words of another user
    near: Near | None  # None: not even equal words find an answer
    remembered: int | None  # answers that were found again, of those of one user; None: none is
    more: bool  # could it remember more than these? To ask for them again may push others out
    sent: int  # messages whose answers it could remember
    forgets: tuple[str | None, str | None] | None  # remembers for, has forgotten after; None: not seen
    seed: bool | None  # does another seed make another request? None: it is told none, or remembers nothing
    unlike: int | None = None  # first request with another outcome in a second play; None: none

    @property
    def own_ms(self) -> tuple[float, float]:
        """Milliseconds of a request: in the middle, and of the slowest of twenty."""
        times = sorted(1_000 * each.seconds for each in self.seen)
        return median(times), times[min(len(times) - 1, int(0.95 * len(times)))]


def probe(system: Callable[[], ProbedSystem], texts: ProbeTexts, memory: int) -> SystemProbe:
    """Sees what a system does, and whether it does so twice. `memory`: how many answers it may have to remember.

    Raises UsageError where the system fails, with the number of the request.
    """
    first, again = (_played(system(), texts, memory) for _ in range(2))
    pairs = enumerate(zip(first.seen, again.seen, strict=False))
    unlike = next((at for at, (seen, repeated) in pairs if seen.told != repeated.told), None)
    if unlike is None and len(first.seen) != len(again.seen):
        unlike = min(len(first.seen), len(again.seen))
    return replace(first, seen=[*first.seen, *again.seen], unlike=unlike)


def leaks_between_users(system: ProbedSystem, texts: ProbeTexts) -> bool:
    """Does a second user get the answer to the first one's message?

    Raises UsageError where the system fails.
    """
    asking = _Asking(system.source, system.embed)
    asking.ask("first", texts.apart[0])
    return asking.ask("second", texts.apart[0]).whose == "leaked"


class _Asking:
    """One instance, asked one request after the other."""

    def __init__(self, source: ObjectSource, embed: EmbedTexts) -> None:
        self._outside, self._name, self._embed = Outside(source), source.name, embed
        self._objects: dict[str, Any] = {}
        self._users: list[str] = []
        self.now: datetime = FIRST_MONDAY
        self.seen: list[Seen] = []

    def ask(self, user: str, message: str) -> Seen:
        """Answer that comes back, a minute after the request before."""
        self.now += _MINUTE
        if user not in self._objects:
            (self._objects[user],) = self._outside.start(1).made
        number = len(self.seen)
        self._users.append(user)
        model = AskedModel(lambda _prompt: answer_words(message, _key(number)), self._embed)
        begun = perf_counter()
        try:
            (words,) = self._outside.words([self._objects[user]], [user], [self.now], [message], [model])
        except RowError as error:
            where = f"request {number + 1} of the probe, {message[:80]!r}"
            raise UsageError(f"{error.component or self._name}, {where}: {error.what}") from error
        seconds = perf_counter() - begun
        whose, origin = self._whose(user, words)
        quoted = {self._number(key) for prompt in model.prompts for key in references(prompt)} - {-1, number}
        self.seen.append(Seen(whose, origin, len(model.prompts), len(quoted), seconds))
        return self.seen[-1]

    def _whose(self, user: str, words: str) -> tuple[Whose, int]:
        keys = references(words)
        if not keys:
            return "wordless", -1
        origin = self._number(keys[-1])
        if origin < 0:
            return "unknown", -1
        if origin == len(self.seen):
            return "new", origin
        return "earlier" if self._users[origin] == user else "leaked", origin

    def _number(self, key: int) -> int:
        number = key ^ _key(0)
        return number if number < len(self._users) else -1


def _key(number: int) -> int:
    """Key of the answer to a request."""
    return 0x5EED_0000_0000_0000 ^ number


def _played(system: ProbedSystem, texts: ProbeTexts, memory: int) -> SystemProbe:
    asking, message = _Asking(system.source, system.embed), texts.apart[0]
    first, again = asking.ask("one", message), asking.ask("one", message)
    other = asking.ask("two", message)
    remembers = again.whose == "earlier"
    near = _near(asking, texts) if remembers else None
    forgets = _forgets(asking, texts.apart[1:]) if remembers and system.told_time else None
    seed = _seed(asking, system, texts.apart[len(_GAPS) + 1]) if remembers else None
    messages = texts.apart[-memory:]
    remembered, more = _remembered(asking, messages) if remembers else (None, False)
    return SystemProbe(asking.seen, first, again, other, near, remembered, more, len(messages), forgets, seed)


def _near(asking: _Asking, texts: ProbeTexts) -> Near:
    """Tries the levels from the highest on, each as a user of its own, and halves the last step."""
    tried: dict[float, bool] = {}

    def tries(level: float) -> None:
        message, variant, cosine = texts.pair(level)
        user = f"near {len(tried)}"
        asking.ask(user, message)
        tried[cosine] = asking.ask(user, variant).of == len(asking.seen) - 2

    def nearest() -> Near:
        hits = [cosine for cosine, hit in tried.items() if hit]
        hit = min(hits) if hits else None
        misses = [cosine for cosine, hit_there in tried.items() if not hit_there and (hit is None or cosine < hit)]
        return Near(hit, max(misses) if misses else None)

    for level in _LEVELS:
        tries(level)
    for _ in range(_HALVINGS):
        match nearest():
            case Near(float(hit), float(missed)):
                tries((hit + missed) / 2)
    return nearest()


def _forgets(asking: _Asking, messages: Sequence[str]) -> tuple[str | None, str | None]:
    """Asks the same after longer and longer times of the user's clock."""
    begun = asking.now
    for message in messages[: len(_GAPS)]:
        asking.ask("later", message)
    kept: list[bool] = []
    for message, gap in zip(messages, _GAPS, strict=False):
        asking.now = max(asking.now, begun + gap)
        kept.append(asking.ask("later", message).whose == "earlier")
    lost = next((at for at, each in enumerate(kept) if not each), len(kept))
    return _GAP_WORDS[lost - 1] if lost else None, _GAP_WORDS[lost] if lost < len(kept) else None


def _seed(asking: _Asking, system: ProbedSystem, message: str) -> bool | None:
    if system.seeded is None:
        return None
    system.seeded(1)
    asking.ask("seeded", message)
    system.seeded(2)
    changed = asking.ask("seeded", message).whose != "earlier"
    system.seeded(None)
    return changed


def _remembered(asking: _Asking, messages: Sequence[str]) -> tuple[int, bool]:
    """Answers that are found again: all messages are asked, then again from the newest on until an answer is gone. Of
    another user that message is the first to be asked again: are there more, if nothing was asked in between?
    """
    for message in messages:
        asking.ask("many", message)
    for at, message in enumerate(reversed(messages)):
        if asking.ask("many", message).whose != "earlier":
            for each in messages:
                asking.ask("many more", each)
            return at, asking.ask("many more", message).whose == "earlier"
    return len(messages), False
