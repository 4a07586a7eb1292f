"""The baseline file: the figures that a gate compares with, what may block, and how much worse is too much.

One line a user, so that a change of results is a readable diff. It is json (FORMAT 3):

    format, arm
    metrics: name -> {role, better, margin, share or beyond or floor}, see `rules`; a person edits them
    budget: how many margins may be lost since the anchor, and since the last release
    world: part -> digest, see `panel_world`; a run of another world is refused
    made: {commit, dirty, versions, packages, overrides, config, compositions, data, code}   of the run, as in its
          manifest; packages: name -> {version, commit, dirty} of each that adds components
    digests: {events, and every column of the turn log}
    counts: names of panel.PANEL_COUNTS, in the order in which each user's totals stand; `never` and `oracle` are the
            utility of the anchors
    anchor: {made, digests, counts, users} of the run from which drift is measured; null: that of the file itself.
            `--update` leaves it where it is, `--update --move-anchor` makes it that of the new run
    users: id -> [turns, totals, outcomes]

`outcomes`: four bits a turn (answered from the skillbook, answered wrongly, and two for the rating before the first
hit), first all of the one and then all of the next, packed (numpy.packbits), compressed (zlib) and written in base 64.
So flips can be named, harm to few be measured and worlds be told apart without the old run.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skg_bench.analysis.gate.against import same_bits
from skg_bench.analysis.gate.panel import EVENTS_DIGEST, Panel, needed_counts, paired, possible_counts
from skg_bench.analysis.gate.panel_world import differing, world_parts
from skg_bench.analysis.gate.rules import NEVER_ANCHOR, ORACLE_ANCHOR, Rule, declared
from skg_bench.core.domain import ANSWERS, domain_of
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, json_file
from skg_bench.core.grid import Bool
from skg_bench.core.shapes import shaped

FORMAT = 3
BUDGET = 2.0
_BITS = 4  # a turn
_KEYS = ("format", "arm", "metrics", "budget", "world", "made", "digests", "counts", "anchor", "users")
_MOST_TURNS = 10_000_000  # of a user


@dataclass(frozen=True)
class _Made:
    """How the run came about, as its manifest says."""

    commit: str | None
    dirty: str | None
    versions: Mapping[str, Any] | None
    packages: Mapping[str, Mapping[str, Any]]
    overrides: Sequence[str] | None
    data: Mapping[str, Any] | None
    code: str | None
    config: Mapping[str, Any]
    compositions: Mapping[str, Any]


@dataclass(frozen=True)
class Baseline:
    """A panel, the one from which drift is measured, and the policy of the gate."""

    panel: Panel
    anchor: Panel  # `panel` itself until it is updated
    rules: tuple[Rule, ...]
    budget: float

    @property
    def drifts(self) -> bool:
        """Is the anchor another panel?"""
        return not same_bits(self.anchor, self.panel)


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file.

    Raises UsageError when there is none, when it is corrupt or of another format, when a metric's role or direction is
    missing, and when its anchor is of another world.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no baseline file; write one with `skg-bench gate --baseline {path} --update RUN`")
    again = f"take it from version control again, or delete it and write it with `--baseline {path} --update RUN`"
    try:
        content = json_file(path)
    except UsageError as error:
        raise UsageError(f"{error}; it is corrupt: {again}") from error
    try:
        if content["format"] != FORMAT:
            raise UsageError(f"{path} has format {content['format']!r}, this version reads {FORMAT}; {again}")
        if unknown := [key for key in content if key not in _KEYS]:
            why = f"which no verdict would read; valid are {', '.join(_KEYS)}"
            raise UsageError(f"{path} has the unknown key {unknown[0]!r}, {why}")
        panel = _read(content["arm"], content)
        rules = declared(content.get("metrics"), path, panel.domain)
        anchor = panel if content["anchor"] is None else _read(content["arm"], content["anchor"])
        budget: float = shaped(float, content["budget"], "budget")
        baseline, world = Baseline(panel, anchor, rules, float(budget)), world_parts(panel)
        changed = [part for part in world if content["world"].get(part) != world[part]]
        world_parts(anchor)
    except (*FAULTS, zlib.error) as error:
        raise UsageError(f"{path} is corrupt ({type(error).__name__}: {error}); {again}") from error
    if changed:
        raise UsageError(f"{path} is corrupt: world.{changed[0]} is not the digest of what it declares; {again}")
    if not 1 <= baseline.budget < float("inf"):
        raise UsageError(f"{path}: budget={baseline.budget!r} must be 1 or more: margins that may be lost in all")
    check_anchor(anchor, panel, str(path))
    return baseline


def check_anchor(anchor: Panel, panel: Panel, path: str) -> None:
    """Raises UsageError when drift from `anchor` to `panel` has no meaning: other users, or another world."""
    again = f"write both from one run: `skg-bench gate --baseline {path} --update --move-anchor RUN`"
    try:
        paired(anchor, panel, f"the anchor in {path}")
    except UsageError as error:
        raise UsageError(f"{error}; {again}") from error
    if keys := differing(anchor, panel):
        shown = "\n  ".join(keys)
        raise UsageError(f"the anchor in {path} is of another world; it differs in\n  {shown}\n{again}")


def _read(arm: str, content: Mapping[str, Any]) -> Panel:
    names, users = list(content["counts"]), dict(content["users"])
    made = dict(content["made"])
    shaped(_Made, {key: value for key, value in made.items() if key not in ("domain", "imported")}, "made")
    imported = shaped(Sequence[str], made.get("imported", []), "made.imported")
    domain = domain_of(made) if "domain" in made else ANSWERS
    digests: Mapping[str, str] = shaped(Mapping[str, str], content["digests"], "digests")
    outcomes = [_unpacked(packed, turns) for turns, _, packed in users.values()]
    totals = np.array([total for _, total, _ in users.values()], np.float64).reshape(len(users), len(names))
    hit, wrong, low, high = (np.concatenate([outcome[column] for outcome in outcomes]) for column in range(_BITS))
    turns = np.array([turns for turns, _, _ in users.values()], np.int64)
    counts = {name: totals[:, at] for at, name in enumerate(names)}
    start = np.cumsum(turns) - turns
    every = np.ones(len(hit), np.bool_)
    for name, mask in (("turn", every), ("hit", hit), ("wrong", wrong), ("wrong_hit", hit & wrong)):
        if name in counts and not np.array_equal(np.add.reduceat(mask.astype(np.float64), start), counts[name]):
            raise ValueError(f"totals of {name} are not those of the outcomes")
    if not (
        np.isfinite(totals).all()
        and set(names) <= set(possible_counts(domain))
        and EVENTS_DIGEST in digests
        and ({"turn"} if imported else {"turn", NEVER_ANCHOR, ORACLE_ANCHOR}) <= set(names)
    ):
        raise ValueError("totals or digests are not such")
    ids = np.array([int(user) for user in users], np.int64)
    if not (np.diff(ids) > 0).all():
        raise ValueError("users are not in order")
    rated = (low + 2 * high.astype(np.uint8)).astype(np.uint8)
    return Panel(arm, ids, turns, counts, hit, wrong, rated, dict(digests), made)


def baseline_text(baseline: Baseline) -> str:
    """Text of the file."""
    panel, anchor = baseline.panel, baseline.anchor
    names = needed_counts((rule.metric for rule in baseline.rules), panel)
    head = {
        "format": FORMAT, "arm": panel.arm, "metrics": {rule.metric: rule.declared() for rule in baseline.rules},
        "budget": baseline.budget, "world": world_parts(panel), **_head(panel, names),
    }  # fmt: skip
    opened = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    held = _anchor(anchor, [name for name in names if name in anchor.counts]) if baseline.drifts else "null"
    return f'{opened},\n "anchor": {held},\n "users": {{\n{_users(panel, names)}\n }}\n}}\n'


def _anchor(panel: Panel, names: list[str]) -> str:
    opened = json.dumps(_head(panel, names), indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    return f'{opened},\n "users": {{\n{_users(panel, names)}\n }}\n }}'


def _head(panel: Panel, names: list[str]) -> dict[str, Any]:
    return {"made": panel.made, "digests": dict(panel.digests), "counts": names}


def _users(panel: Panel, names: list[str]) -> str:
    totals = np.stack([panel.counts[name] for name in names], axis=1)
    ends = np.cumsum(panel.turns)
    lines = []
    for row, user in enumerate(panel.users.tolist()):
        span = slice(int(ends[row] - panel.turns[row]), int(ends[row]))
        numbers = [int(x) if x == int(x) else x for x in totals[row].tolist()]
        rated = panel.rated[span]
        packed = _packed([panel.hit[span], panel.wrong[span], rated % 2 == 1, rated > 1])
        lines.append(f'  "{user}": {json.dumps([int(panel.turns[row]), numbers, packed])}')
    return ",\n".join(lines)


def _packed(columns: list[npt.NDArray[np.bool_]]) -> str:
    return base64.b64encode(zlib.compress(np.packbits(np.concatenate(columns)).tobytes(), 9)).decode()


def _unpacked(packed: str, turns: int) -> list[Bool]:
    if type(turns) is not int or not 1 <= turns <= _MOST_TURNS:
        raise ValueError(f"a user has {turns!r} turns")
    size = -(-_BITS * turns // 8)
    unpack = zlib.decompressobj()  # which stops where a few bytes would become gigabytes
    bits = np.frombuffer(unpack.decompress(base64.b64decode(packed, validate=True), size + 1), np.uint8)
    if bits.size != size or not unpack.eof:
        raise ValueError("outcomes are not of as many turns as said")
    return np.split(np.unpackbits(bits, count=_BITS * turns).astype(np.bool_), _BITS)
