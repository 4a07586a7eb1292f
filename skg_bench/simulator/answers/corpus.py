"""A corpus of assistant requests: intents with wordings and slot values, and one-off messages.

Format: `intents/*.yaml` (intent, kind, effect, ttl_hours, asked, hours, weekdays, follows, slot, answer, wordings) and
`one_offs.txt` (one message a line; none are needed with `simulator.one_off_share=0`). Without an `effect` what goes
stale is looked up, and all else is an answer. `asked` is how often an intent is asked, relative to one without it. The
built-in corpus lies in two folders, `data/corpus` and `data/more`; any folder of the same format can take its place,
and a `Source` reads another format.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as defaulting
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import LONGEST_TEXT, stamp, text_of
from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.package import DATA
from skg_bench.simulator.yaml_files import yaml_of

STABLE, SLOT, STALE = 0, 1, 2  # how long an answer holds: for ever; for its slot values; for its time to live
CORPUS_KINDS = ("stable", "slot", "stale")
ANSWER, LOOK_UP, ACT = 0, 1, 2  # what an intent asks for: knowledge; what some service knows; that something is done
EFFECTS = ("answer", "look-up", "act")
MOST_HOURS = 1_000_000  # hours that an answer holds, and weight of an hour
_CELLS = 2**28  # of a table of wordings by request type, or of intents by intents
_WEEKDAYS = {"any": (1.0, 1.0), "workdays": (1.0, 0.15), "weekend": (0.15, 1.0)}  # weight on workdays, at weekends
_REQUIRED = ("intent", "kind", "hours", "weekdays", "follows", "answer", "wordings")
_KNOWN = {*_REQUIRED, "effect", "ttl_hours", "asked", "slot"}
_ONE_OFFS = "one_offs.txt"
BUILT_IN = (DATA / "corpus", DATA / "more")  # folders: our first 120 intents, and 180 further ones


@dataclass(frozen=True, slots=True)
class Corpus:
    """All messages that can be said, and what they are about. N messages, T request types, I intents."""

    messages: tuple[str, ...]  # [N] texts; a message's index is its text id
    intents: tuple[str, ...]  # [I]
    types: tuple[str, ...]  # [T] "intent" or "intent|slot value"
    answers: tuple[str, ...]  # [T]
    wordings: I32  # [T, W] text ids, padded with -1
    n_wordings: I32  # [T]
    intent: I32  # [T] intent of each request type
    kind: I32  # [I] STABLE, SLOT or STALE
    effect: I32  # [I] ANSWER, LOOK_UP or ACT
    ttl: I64  # [I] seconds that an answer holds: that of an act 0, as its text does nothing; else the largest int64
    hour_weight: F64  # [I, 24] relative rate by local hour, times how often it is asked
    day_weight: F64  # [I, 2] relative rate on workdays, at weekends
    follows: Bool  # [I, I] follows[a, b]: intent a is often asked right after b
    one_offs: I32  # [M] text ids of messages that nobody asks twice: the last M
    digest: str  # hash of messages and labels, hex
    source: str | None = None  # file, or data set with its commit, of rows that were published; None: of our format
    left_out: Mapping[str, Any] = defaulting(default_factory=dict)  # of them, as in core/record.py


@dataclass(frozen=True, slots=True)
class Intent:
    """Intent that several requests have in common."""

    name: str
    kind: int  # STABLE, SLOT or STALE
    ttl_hours: float | None  # for how long an answer holds; of STALE only
    effect: int  # ANSWER, LOOK_UP or ACT


@dataclass(frozen=True, slots=True)
class Request:
    """A request type, and all that people say for it."""

    name: str  # "intent" or "intent|slot value"
    intent: int  # index
    answer: str
    wordings: Sequence[str]


@runtime_checkable
class Source(Protocol):
    """Another way to a corpus than the built-in one's format."""

    def load(self) -> Corpus:
        """The corpus; raises UsageError for what is wrong with its files."""
        ...


CorpusNames = str | Source | Sequence[str] | None
"""Values of `simulator.corpus`: a folder or name, a source, several folders or names; None: the built-in one."""


def load_corpus(path: str | Path | None = None) -> Corpus:
    """The corpus in folder `path`, or the built-in one.

    Raises UsageError for a missing folder, an intent without wordings, unknown fields or values, and duplicates.
    """
    folders = (Path(path),) if path else BUILT_IN
    return _load(folders, tuple(stamp(file) for folder in folders for file in (*_intents(folder), folder / _ONE_OFFS)))


def with_one_offs(corpus: Corpus, share: float, source: CorpusNames) -> Corpus:
    """The corpus from `source`, for users of whose messages this share are one-offs.

    Raises UsageError where they need some, and it has none.
    """
    if share > 0 and not len(corpus.one_offs):
        raise UsageError(
            f"simulator.corpus={source} has no one-offs, messages that nobody asks twice, and "
            f"simulator.one_off_share={share:g} of messages are such: set simulator.one_off_share=0, or add one-offs "
            "(one_offs.txt of a folder; messages out of scope of a file in CLINC150's format)"
        )
    return corpus


def _intents(folder: Path) -> list[Path]:
    return sorted((folder / "intents").glob("*.yaml"))


@lru_cache(maxsize=4)
def _load(folders: tuple[Path, ...], _stamps: tuple[object, ...]) -> Corpus:
    rows, one_offs, places = list[dict[str, Any]](), list[str](), dict[str, str]()
    for folder in folders:
        files = _intents(folder)
        if not files:
            raise UsageError(f"{folder} is no corpus: it needs intents/*.yaml, and one_offs.txt (see data/corpus)")
        for file in files:
            for position, row in enumerate(_read(file), 1):
                place = f"{file}: intent {position}"
                if (first := places.setdefault(row["intent"], place)) != place:
                    raise UsageError(f"{place}: {row['intent']!r} is also the name of {first}; rename one of them")
                rows.append(row)
        file = folder / _ONE_OFFS
        one_offs += [line.strip() for line in text_of(file).splitlines() if line.strip()] if file.is_file() else []
    try:
        return _compile(rows, one_offs)
    except UsageError as error:
        raise UsageError(f"{' and '.join(map(str, folders))}: {error}") from error


def _read(file: Path) -> list[dict[str, Any]]:
    document = yaml_of(file)
    rows = document.get("intents") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UsageError(f"{file} has no list `intents`; write one as in data/corpus/intents")
    for position, row in enumerate(rows, 1):
        _check(row, f"{file}: intent {position}")
    return rows


def _check(row: Any, place: str) -> None:
    name = row.get("intent", "an intent without a name") if isinstance(row, dict) else repr(row)

    def fail(what: str) -> None:
        raise UsageError(f"{place}, {name}: {what}")

    if not isinstance(row, dict):
        fail(f"each intent is a mapping with the fields {', '.join(_REQUIRED)}")
    for field in _REQUIRED:
        if field not in row:
            fail(f"field `{field}` is missing")
    if unknown := sorted(set(row) - _KNOWN, key=str):
        fail(f"unknown fields {unknown}; known are {sorted(_KNOWN)}")
    if row["kind"] not in CORPUS_KINDS:
        fail(f"kind={row['kind']!r}, valid are {', '.join(CORPUS_KINDS)}")
    if (row["kind"] == "stale") != ("ttl_hours" in row):
        fail("`ttl_hours` belongs to kind stale, and to no other")
    if row["kind"] == "stale" and not _above_zero(row["ttl_hours"]):
        fail(f"ttl_hours={row['ttl_hours']!r}, must be a number above 0, at most {MOST_HOURS:,}")
    if not _above_zero(row.get("asked", 1)):
        fail(f"asked={row['asked']!r}, must be a number above 0, at most {MOST_HOURS:,}; 1 is as often as others")
    if row.get("effect", "answer") not in EFFECTS:
        fail(f"effect={row['effect']!r}, valid are {', '.join(EFFECTS)}")
    if row["weekdays"] not in tuple(_WEEKDAYS):
        fail(f"weekdays={row['weekdays']!r}, valid are {', '.join(_WEEKDAYS)}")
    if not _texts(row["wordings"]):
        fail("it has no wordings; give a list of at least one text, better 12 or more (quote numbers)")
    if not isinstance(row["answer"], str) or not isinstance(row["intent"], str):
        fail("`intent` and `answer` must be texts; quote them")
    if not isinstance(row["follows"], list) or not all(isinstance(name, str) for name in row["follows"]):
        fail(f"follows={row['follows']!r} must be a list of intents, [] if there are none")
    _check_hours(row["hours"], fail)
    _check_slot(row, fail)


def _check_hours(hours: Any, fail: Callable[[str], None]) -> None:
    for span, weight in hours.items() if isinstance(hours, dict) else [(hours, None)]:
        first, _, last = str(span).partition("-")
        numbers = first.isdecimal() and last.isdecimal() and len(first) <= 2 >= len(last)
        if not (numbers and int(first) < int(last) <= 24 and _above_zero(weight)):
            valid = f"FROM-TO: WEIGHT, 0 <= FROM < TO <= 24, weight above 0, at most {MOST_HOURS:,}; or {{}}"
            fail(f"hours: {span}: {weight!r}; valid is {valid}")


def _check_slot(row: dict[str, Any], fail: Callable[[str], None]) -> None:
    slot = row.get("slot")
    if row["kind"] == "slot" and not slot:
        fail("kind slot needs a `slot` with its values")
    if not slot:
        return
    if not isinstance(slot, dict) or len(slot) != 1 or not _texts([*slot]) or not _texts(next(iter(slot.values()))):
        fail("`slot` takes one name with a non-empty list of texts (quote numbers)")
    for wording in row["wordings"]:
        if "{" + next(iter(slot)) + "}" not in wording:
            fail(f"wording {wording!r} lacks the slot {{{next(iter(slot))}}}")


def _above_zero(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value <= MOST_HOURS


def _texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and len(v) <= LONGEST_TEXT for v in value)


def fill(wording: str, slot: str, value: str) -> str:
    """A wording with its slot filled; who writes without capitals writes the value without them too."""
    return wording.replace("{" + slot + "}", value.lower() if wording == wording.lower() else value)


def _compile(rows: list[dict[str, Any]], one_offs: list[str]) -> Corpus:
    index = {row["intent"]: i for i, row in enumerate(rows)}
    requests: list[Request] = []
    hour_weight = np.ones((len(rows), 24))
    follows = np.zeros((len(rows), len(rows)), np.bool_)
    for i, row in enumerate(rows):
        for span, weight in row["hours"].items():
            first, last = (int(h) for h in str(span).split("-"))
            hour_weight[i, first:last] = float(weight)
        hour_weight[i] *= float(row.get("asked", 1))
        for before in row["follows"]:
            if before not in index:
                raise UsageError(f"{row['intent']}: follows unknown intent {before!r}")
            follows[i, index[before]] = True
        if not row.get("slot"):
            requests.append(Request(row["intent"], i, row["answer"], row["wordings"]))
            continue
        slot, values = next(iter(row["slot"].items()))
        for value in values:
            wordings = [fill(wording, slot, value) for wording in row["wordings"]]
            requests.append(Request(f"{row['intent']}|{value}", i, fill(row["answer"], slot, value), wordings))
    return assembled(
        requests,
        one_offs,
        intents=[_intent(row) for row in rows],
        hour_weight=hour_weight,
        day_weight=np.array([_WEEKDAYS[row["weekdays"]] for row in rows]),
        follows=follows,
        described=[repr(sorted(row.items(), key=str)) for row in rows],
    )


def _intent(row: dict[str, Any]) -> Intent:
    kind = CORPUS_KINDS.index(row["kind"])
    effect = EFFECTS.index(row["effect"]) if "effect" in row else LOOK_UP if kind == STALE else ANSWER
    return Intent(row["intent"], kind, row.get("ttl_hours"), effect)


def assembled(
    requests: Sequence[Request],
    one_offs: Sequence[str],
    *,
    intents: Sequence[Intent],
    hour_weight: F64,
    day_weight: F64,
    follows: Bool,
    described: Sequence[str],
) -> Corpus:
    """The corpus of these; `described` are texts that its hash takes in besides messages and names.

    Raises UsageError for a message that occurs twice: its text id would not say what it is about.
    """
    messages: list[str] = []
    widest = max(len(request.wordings) for request in requests)
    if (cells := max(len(requests) * widest, len(intents) ** 2)) > _CELLS:
        raise UsageError(
            f"the corpus has {len(intents):,} intents and {len(requests):,} request types of up to {widest:,} "
            f"wordings, a table of {cells:,} cells; at most {_CELLS:,} are taken: leave out some"
        )
    padded = np.full((len(requests), widest), -1, np.int32)
    for row, request in zip(padded, requests, strict=True):
        row[: len(request.wordings)] = np.arange(len(messages), len(messages) + len(request.wordings))
        messages += request.wordings
    n_typed = len(messages)
    messages += one_offs
    if len(set(messages)) < len(messages):
        owners: dict[str, list[str]] = {}
        for name, text in [(r.name, text) for r in requests for text in r.wordings] + [
            ("one-offs", t) for t in one_offs
        ]:
            owners.setdefault(text, []).append(name)
        twice = [text for text, listed in owners.items() if len(listed) > 1]
        raise UsageError(
            f"{len(twice)} messages occur twice, first {twice[0]!r}, of {' and of '.join(owners[twice[0]])}; every "
            "message must be unique"
        )
    types, names = tuple(request.name for request in requests), tuple(intent.name for intent in intents)
    digest = blake2b(digest_size=16)
    for part in (*messages, *types, *names, *described):
        digest.update(part.encode() + b"\0")
    return Corpus(
        messages=tuple(messages),
        intents=names,
        types=types,
        answers=tuple(request.answer for request in requests),
        wordings=padded,
        n_wordings=np.array([len(request.wordings) for request in requests], np.int32),
        intent=np.array([request.intent for request in requests], np.int32),
        kind=np.array([intent.kind for intent in intents], np.int32),
        effect=np.array([intent.effect for intent in intents], np.int32),
        ttl=np.array([_seconds(intent) for intent in intents], np.int64),
        hour_weight=hour_weight,
        day_weight=day_weight,
        follows=follows,
        one_offs=np.arange(n_typed, len(messages), dtype=np.int32),
        digest=digest.hexdigest(),
    )


def _seconds(intent: Intent) -> int:
    """Seconds for which a stored answer holds."""
    if intent.effect == ACT:
        return 0
    return int(np.iinfo(np.int64).max) if intent.ttl_hours is None else int(float(intent.ttl_hours) * 3600)
