"""Probe of an outside assistant: messages for it, and what was seen in words."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from skg_bench.app.building import build
from skg_bench.app.compose import composer
from skg_bench.app.outside_costs import keep_time
from skg_bench.app.overrides import parse
from skg_bench.app.progress import console
from skg_bench.app.table_blocks import show_table
from skg_bench.app.targets import class_of, described_components
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.endpoint import BlackBox
from skg_bench.assistant.python import Python
from skg_bench.assistant.python.probing import Near, ProbedSystem, ProbeTexts, SystemProbe, leaks_between_users, probe
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import F32
from skg_bench.core.texts import Embedding, Texts

_READ = 3_000  # messages of the world among which pairs are looked for
_APART = 0.35  # cosine that messages apart have at most, if there are enough of them
_SEED = "does the seed matter"  # of a system that is told one
_LEAST = 8  # messages apart, beside those whose answers are to be remembered


@dataclass(frozen=True)
class _Subject:
    """A system, and what is sent to it."""

    name: str
    keep_time: Callable[[float], None]  # milliseconds of a message, for `--dry-run`
    made: Callable[[], ProbedSystem]
    by_user: Callable[[], ProbedSystem] | None  # told users by the field `user` alone; None: it is anyhow
    texts: ProbeTexts


def show_probe(overrides: Sequence[str], memory: int, *, plain: bool) -> None:
    """SystemProbe the assistant that the overrides name, and print a table, or JSON.

    Raises UsageError for an assistant of ours, for bad overrides, and where the system fails.
    """
    subject = _subject(overrides, memory)
    seen = probe(subject.made, subject.texts, memory)
    subject.keep_time(seen.own_ms[0])
    alone = None if subject.by_user is None else leaks_between_users(subject.by_user(), subject.texts)
    rows = _rows(seen, alone)
    screen = console()
    if plain:
        screen.out(json.dumps({"assistant": subject.name, **_figures(seen, alone), "words": dict(rows)}, indent=1))
        return
    screen.print(f"{subject.name}, {len(seen.seen)} requests:", soft_wrap=True, markup=False)
    show_table(screen, ["question", "what was seen"], rows)


def _subject(overrides: Sequence[str], memory: int) -> _Subject:
    root = composer().root(parse(list(overrides)))
    path, chain, _ = next(iter(described_components("assistant", root["assistant"])))
    if class_of(path, "assistant", chain) not in (Python, BlackBox):
        raise _ours()
    assistant = build("assistant", root["assistant"], COMMAND_LINE)
    world, embedder = (build(seam, root[seam], COMMAND_LINE) for seam in ("simulator", "embedder"))
    vectors = embedder.embed(world.messages)
    texts = Texts(world.messages, world.names, Embedding(lambda: vectors, embedder))
    keep = partial(keep_time, root["assistant"], assistant)
    messages = _messages(list(world.messages), vectors.astype(np.float32), memory + _LEAST)
    match assistant:
        case Python():
            source = assistant.source
            return _Subject(assistant.name, keep, lambda: ProbedSystem(source, texts.embed, None, True), None, messages)
        case BlackBox():
            plain = replace(assistant, body={})
            alone = (lambda: plain.probed(texts.embed)) if assistant.body and assistant.url is None else None
            return _Subject(assistant.name, keep, lambda: assistant.probed(texts.embed), alone, messages)
    raise _ours()


def _ours() -> UsageError:
    return UsageError(
        "probe looks at an assistant of your own from outside; name one: assistant=python "
        "assistant.file=my.py:ExactCache, or assistant=endpoint assistant.url=http://127.0.0.1:4000"
    )


def _messages(every: Sequence[str], vectors: F32, n: int) -> ProbeTexts:
    """Messages for a probe, `n` of them apart.

    Raises UsageError where the world has too few.
    """
    _, first = np.unique(every, return_index=True)
    first = np.sort(first)[:_READ]
    unit = vectors[first] / np.maximum(np.linalg.norm(vectors[first], axis=1, keepdims=True), 1e-9)
    cosines = unit @ unit.T
    if len(first) < n:
        raise UsageError(f"the world has {len(first)} messages, and the probe needs {n}; take a smaller --memory")
    upper = np.triu_indices(len(first), 1)
    values = cosines[upper]

    def pair(level: float) -> tuple[str, str, float]:
        at = int(np.abs(values - level).argmin())
        return every[first[upper[0][at]]], every[first[upper[1][at]]], round(float(values[at]), 4)

    return ProbeTexts([every[first[at]] for at in _apart(cosines, n)], pair)


def _apart(cosines: F32, n: int) -> list[int]:
    """Places of `n` messages of which no two are near; the limit rises until there are enough."""
    for limit in np.arange(_APART, 1.01, 0.05):
        chosen: list[int] = []
        highest = np.full(len(cosines), -1.0, np.float32)
        while len(chosen) < n and (free := np.flatnonzero(highest < limit)).size:
            chosen.append(int(free[0]))
            highest = np.maximum(highest, cosines[free[0]])
            highest[free[0]] = 2.0
        if len(chosen) == n:
            return chosen
    raise UsageError(f"the messages of this world are too much alike for a probe of {n}; take a smaller --memory")


# ------------------------------------------------------------------------------------------------------ in words


def _rows(seen: SystemProbe, alone: bool | None) -> list[tuple[str, str]]:
    middle, slow = seen.own_ms
    reminded = max(each.reminded for each in seen.seen)
    none = "none that have a reference" if _wordless(seen) else "none"
    return [
        (
            "asks its model",
            f"{_times(seen.first.calls)} for a new message, {_times(seen.again.calls)} when it comes again",
        ),
        ("gives an answer again", _again(seen)),
        ("whose answers come back", _whose(seen, alone)),
        ("earlier answers in its prompts", f"yes, up to {reminded} at once" if reminded else none),
        ("how many it remembers", _many(seen)),
        ("does time matter", _time(seen)),
        *([(_SEED, "yes: another seed finds no answer" if seen.seed else "no")] if seen.seed is not None else []),
        ("the same twice", _twice(seen)),
        ("time of its own", f"{middle:.1f} ms a request; one in twenty takes {slow:.1f} ms or more"),
    ]


def _times(n: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(n, f"{n} times")


def _again(seen: SystemProbe) -> str:
    match seen.again.whose, seen.near:
        case "earlier", Near(None, _):
            return "for equal words alone"
        case "earlier", Near(float(hit), None):
            return f"for equal words, and for all that were tried, down to a cosine of {hit:.2f}"
        case "earlier", Near(float(hit), float(missed)):
            return f"for equal words, and near ones: found at a cosine of {hit:.3f}, not at {missed:.3f}"
        case "wordless", _:
            return "not known: its words have no reference, [answer ...], so nobody can judge them"
        case "leaked" | "unknown", _:
            return "another one than it was given for these words"
    return "never: each message has a new answer"


def _whose(seen: SystemProbe, alone: bool | None) -> str:
    leaks = sum(each.whose == "leaked" for each in seen.seen)
    strange = sum(each.whose == "unknown" for each in seen.seen)
    if leaks:
        return f"LEAK: another user's, at {leaks} of {len(seen.seen)} requests"
    if strange:
        return f"answers that nobody gave, at {strange} of {len(seen.seen)} requests"
    if count := _wordless(seen):
        return f"not known: at {count} of {len(seen.seen)} requests its words have no reference"
    by = {
        None: "",
        True: "; the field `user` alone would not keep users apart, assistant.body does",
        False: "; the field `user` alone does so, too",
    }
    return f"the user's own alone{by[alone]}"


def _wordless(seen: SystemProbe) -> int:
    return sum(each.whose == "wordless" for each in seen.seen)


def _many(seen: SystemProbe) -> str:
    if seen.remembered is None and _wordless(seen):
        return "not known: its words have no reference"
    if seen.remembered is None:
        return "not seen: it gives none again" if any(each.reminded for each in seen.seen) else "none"
    if seen.remembered == seen.sent:
        return f"all of {seen.sent}; --memory tries more"
    if seen.more:
        return f"the last {seen.remembered} of {seen.sent} at least; asking for an answer again pushes out older ones"
    return f"the last {seen.remembered} of {seen.sent}"


def _time(seen: SystemProbe) -> str:
    match seen.forgets:
        case None:
            if seen.remembered is None and _wordless(seen):
                return "not known: its words have no reference"
            return "not seen: it gives none again" if seen.remembered is None else "not seen: it is not told the time"
        case (str(kept), None):
            return f"not within {kept}: after that time it still remembers"
        case (None, str(lost)):
            return f"yes: after {lost} of the user's time it has forgotten"
        case (kept, lost):
            return f"yes: it remembers for {kept} of the user's time, and has forgotten after {lost}"


def _twice(seen: SystemProbe) -> str:
    if seen.unlike is None:
        return f"yes: {len(seen.seen) // 2} requests were sent to two new instances"
    return f"NO: request {seen.unlike + 1} came back otherwise from a second instance"


def _figures(seen: SystemProbe, alone: bool | None) -> Mapping[str, Any]:
    middle, slow = seen.own_ms
    return {
        "requests": len(seen.seen),
        "calls_new": seen.first.calls,
        "calls_again": seen.again.calls,
        "again": seen.again.whose,
        "near": None if seen.near is None else asdict(seen.near),
        "leaks": sum(each.whose == "leaked" for each in seen.seen),
        "leaks_by_user_alone": alone,
        "reminded": max(each.reminded for each in seen.seen),
        "remembered": seen.remembered,
        "remembers_more": seen.more,
        "remembered_of": seen.sent,
        "remembers_for": seen.forgets and seen.forgets[0],
        "forgotten_after": seen.forgets and seen.forgets[1],
        "seed_matters": seen.seed,
        "same_twice": seen.unlike is None,
        "median_ms": round(middle, 3),
        "slow_ms": round(slow, 3),
    }
