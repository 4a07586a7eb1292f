"""Flips: events that one arm answered rightly and another wrongly, with the reason.

The reason is the link of the wrong arm's chain that failed (`cause` of the turn log, `assistant/pipeline/cause.py`);
where both arms asked the LLM, or a right skill was prompted in vain, it is the LLM.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Any

import numpy as np

from skg_bench.analysis.counts.columns import coded
from skg_bench.analysis.counts.tally import kept
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I32, I64, Bool
from skg_bench.core.types import CAUSES
from skg_bench.runfolder.run import RunTables
from skg_bench.runfolder.telling import telling_of

REASONS = {
    "none": "LLM",
    "novelty": "nothing to know",
    "capture": "not captured",
    "routing": "shortlist",
    "score": "score",
    "threshold": "threshold",
    "staleness": "stale",
    "wrong_source": "wrong source",
    "generality": "not general",
    "slot": "slot",
    "tool": "tool",
}
"""By the cause of the wrong arm's turn."""
_WORDS: Sequence[str] = (*(REASONS[cause] for cause in CAUSES), "cause not known")
DONE_COLUMNS = ("fallback_to_llm", "answer_correct", "cause")
_IMPORTED = ("logged_row", "logged_user", "logged_id")  # of results that were made elsewhere
TOLD_COLUMNS = ("time", "message", "matched_skill", "source_turn", "skill_score", "serving")


@dataclass(frozen=True, slots=True)
class Done:
    """Answers of an arm to N events, in the order (user, turn)."""

    run: RunTables
    arm: str
    user: I32  # [N]
    turn: I32  # [N]
    right: Bool  # [N]
    wrong: Bool  # [N] of an answer that nobody can judge, neither is known
    hit: Bool  # [N]
    cause: I32  # [N] index into CAUSES; their number: not known

    def at(self, rows: I64) -> "Done":
        """Answers to some of the events."""
        return Done(
            self.run, self.arm, self.user[rows], self.turn[rows], self.right[rows], self.wrong[rows], self.hit[rows],
            self.cause[rows],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flips:
    """Events, a subset of N, that one arm answered wrongly and the other rightly."""

    wrong: Done
    right: Done
    at: I64  # [n] rows
    cause: I32  # [n] of the reason; see `Done`

    def alone(self) -> "Flips":
        """The flips without the other events."""
        return Flips(self.wrong.at(self.at), self.right.at(self.at), np.arange(len(self.at)), self.cause)

    def reason(self, row: int) -> str:
        """Reason of one flip, by its place in `at`."""
        return _WORDS[int(self.cause[row])]

    def counts(self) -> dict[str, int]:
        """Counts by reason, the most frequent first."""
        counts = np.bincount(self.cause, minlength=len(_WORDS))
        order = np.argsort(-counts, kind="stable")
        return {_WORDS[c]: int(counts[c]) for c in order if counts[c]}


@dataclass(frozen=True, slots=True)
class Flip:
    """One of them, to be read."""

    user: int
    turn: int
    time: str
    message: str
    reason: str
    wrong: str  # what the wrong arm answered from
    right: str  # what the right arm answered from


def done(run: RunTables, arm: str, keep: Sequence[tuple[int, int]] | None = None) -> Done:
    """Read an arm. `keep`: (user id, number of first turns), ascending; None: all."""
    table = kept(run.turns(arm, DONE_COLUMNS), keep)
    code, vocabulary = coded(table["cause"])
    cause = np.array([*(CAUSES.index(word) for word in vocabulary), len(CAUSES)], np.int32)  # -1: the last
    right, fallback = table["answer_correct"], table["fallback_to_llm"].to_numpy()
    known = right.fill_null(False).to_numpy(), ~right.fill_null(True).to_numpy()
    return Done(run, arm, table["user"].to_numpy(), table["turn"].to_numpy(), *known, ~fallback, cause[code])


def flips(wrong: Done, right: Done) -> Flips:
    """Events that `wrong` got wrong and `right` got right.

    Raises UsageError when they are not of the same events.
    """
    if not (np.array_equal(wrong.user, right.user) and np.array_equal(wrong.turn, right.turn)):
        raise UsageError(
            f"{wrong.run.path}, arm {wrong.arm!r}, and {right.run.path}, arm {right.arm!r}, have other events; compare "
            "what both have"
        )
    at = np.flatnonzero(wrong.wrong & right.right)
    by_llm = ~wrong.hit[at] & ~right.hit[at] & (not telling_of(wrong.run.manifest).imported)
    return Flips(wrong, right, at, np.where(by_llm, CAUSES.index("none"), wrong.cause[at]))


def joined_flips(blocks: Sequence[Flips]) -> Flips:
    """Flips of users who come block by block, `alone`."""
    wrong, right = _joined([block.wrong for block in blocks]), _joined([block.right for block in blocks])
    cause = np.concatenate([block.cause for block in blocks])
    return Flips(wrong, right, np.arange(len(cause)), cause)


def _joined(blocks: Sequence[Done]) -> Done:
    names = ("user", "turn", "right", "wrong", "hit", "cause")
    columns = {name: np.concatenate([attrgetter(name)(block) for block in blocks]) for name in names}
    return Done(blocks[0].run, blocks[0].arm, **columns)


def examples(flipped: Flips, n: int) -> list[Flip]:
    """`n` of them: of each reason in turn, the most frequent first, and of as many users as there are."""
    if n == 0:
        return []
    rows = flipped.at[_pick(flipped, n)]
    users = sorted({int(flipped.wrong.user[row]) for row in rows})
    wrong, right = _told(flipped.wrong, users), _told(flipped.right, users)
    place = {row: i for i, row in enumerate(flipped.at.tolist())}
    out = []
    for row in rows.tolist():
        key = int(flipped.wrong.user[row]), int(flipped.wrong.turn[row])
        message, time = wrong[key]["message"], f"{wrong[key]['time']:%a %Y-%m-%d %H:%M}"
        if "logged_row" in wrong[key]:  # it has no time
            time = f"{wrong[key]['logged_user']}, event {wrong[key]['logged_id']}"
        answered = (_answered(arm, turns, key) for arm, turns in ((flipped.wrong, wrong), (flipped.right, right)))
        out.append(Flip(*key, time, message, flipped.reason(place[row]), *answered))
    return out


def _pick(flipped: Flips, n: int) -> I64:
    """Indices into `flipped.at`."""
    user = flipped.wrong.user[flipped.at]
    queues = []
    for cause in np.argsort(-np.bincount(flipped.cause, minlength=len(_WORDS)), kind="stable"):
        rows = np.flatnonzero(flipped.cause == cause)
        nth = np.arange(len(rows)) - np.searchsorted(user[rows], user[rows])  # of the user's flips for this reason
        queues.append(rows[np.argsort(nth, kind="stable")][:n].tolist())
    turns = (index for index in chain(*zip_longest(*queues)) if index is not None)
    return np.array([index for index, _ in zip(turns, range(n), strict=False)], np.int64)


ToldTurns = dict[tuple[int, int], dict[str, Any]]


def _told(arm: Done, users: Sequence[int]) -> ToldTurns:
    columns = (*TOLD_COLUMNS, *(_IMPORTED if telling_of(arm.run.manifest).imported else ()))
    return {(r["user"], r["turn"]): r for r in arm.run.turns(arm.arm, columns, users).to_pylist()}


def _answered(arm: Done, turns: ToldTurns, key: tuple[int, int]) -> str:
    turn = turns[key]
    if "logged_row" in turn:
        return f"row {turn['logged_row']} of the table"
    if turn["serving"] == "llm":
        return "the LLM"
    if turn["serving"] == "procedure_failed":
        return "the LLM, after a procedure from which nothing came back"
    skill = _skill(turn)
    if turn["serving"] != "stored":
        return f"{skill}, {'prompted' if turn['serving'] == 'prompted' else 'run'}"
    composition = (arm.run.manifest.get("compositions") or {}).get(arm.arm) or {}
    if composition.get("book") == "donor" and key[1] >= int(str(composition["fork"]).rpartition("@")[2]):
        return f"{skill}, stored by another user"
    if turn["source_turn"] < 0:
        return f"{skill}, stored"
    return f"{skill}, stored at turn {turn['source_turn']} for {turns[key[0], turn['source_turn']]['message']!r}"


def _skill(turn: Mapping[str, Any]) -> str:
    """The skill that answered, as far as the log has one."""
    if turn["matched_skill"] is None:
        return "an earlier answer"
    return f"skill {turn['matched_skill']!r} (score {turn['skill_score']:.2f})"


def lines(flip: Flip, wrong: str, right: str) -> Iterator[str]:
    """A flip as text; `wrong` and `right` name the arms."""
    yield f"user {flip.user}, turn {flip.turn}, {flip.time}: {flip.message!r} ({flip.reason})"
    yield f"  wrong  {wrong}: {flip.wrong}"
    yield f"  right  {right}: {flip.right}"
