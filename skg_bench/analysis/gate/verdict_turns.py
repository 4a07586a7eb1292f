"""The turns that explain a verdict: where the answer changed for the worse, for whom, and why.

A baseline file knows of each turn whether the skillbook answered, and whether rightly; the new run says the rest.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skg_bench.analysis.comparison.flips import REASONS
from skg_bench.analysis.gate.against import Held
from skg_bench.analysis.gate.against import harm as harm_of
from skg_bench.analysis.gate.judge import Harm
from skg_bench.analysis.gate.panel import Panel
from skg_bench.analysis.gate.rules import Rule
from skg_bench.core.grid import I64, Bool
from skg_bench.runfolder.hidden_hits import arms_without_hits
from skg_bench.runfolder.run import Run

USERS, TURNS = 5, 3  # that are named, and turns of each
_LEAST = 1e-12  # a harm that is planned for
BARE_OUTCOMES = ("right", "wrong")  # where it is not known who answered
FLIP_OUTCOMES = ("LLM, right", "LLM, wrong", "skillbook, right", "skillbook, wrong")  # 2 hit + wrong


@dataclass(frozen=True, slots=True)
class HarmedTurn:
    """One turn whose answer became worse."""

    turn: int
    message: str
    before: str  # in FLIP_OUTCOMES
    after: str
    reason: str  # in flips.REASONS
    lost: bool  # right before, wrong after
    event: str = ""  # its name in an imported table, whose turns are numbered here


@dataclass(frozen=True, slots=True)
class User:
    """A user for whom it became worse."""

    user: int
    harm: float
    turns: tuple[HarmedTurn, ...]  # the first TURNS of them
    of: int  # turns that became worse
    name: str = ""  # in an imported table, whose users are numbered here


@dataclass(frozen=True, slots=True)
class HarmedTurns:
    """Turns that became worse in one metric."""

    metric: str
    worse: int  # turns that became worse
    better: int  # turns that became better
    reasons: tuple[tuple[str, int], ...]  # of the worse ones, the most frequent first
    users: tuple[User, ...]  # the most harmed first


def explain(held: Held, run: Run) -> HarmedTurns | None:
    """The flips behind the metric with the largest harm, in margins, among those of the worst verdict; None where no
    turn became worse in it.
    """
    new = held.new
    known = [at for at, judgement in enumerate(held.judged) if judgement.n and not judgement.paid]
    if not known:
        return None
    blamed = [at for at in known if held.judged[at].state == held.state] or known
    harm = held.harms[max(blamed, key=lambda at: held.judged[at].mean / max(held.harms[at].planned, _LEAST))]
    if harm.rule.role in ("tail", "lead", "burden"):  # of every user, where a tail is of some; answers, not offers
        harm = harm_of(held.base, new, Rule("err_per_request", "errors", "lower", harm.planned))
    worse, better = _flipped(harm.metric, held.base, new), _flipped(harm.metric, new, held.base)
    rows = np.flatnonzero(worse)
    if not rows.size:
        return None
    owner = np.repeat(new.users, new.turns)
    names = ("logged_user", "logged_id") if new.imported else ()
    table = run.turns(new.arm, ["message", "matched_skill", "skill_score", "cause", *names]).take(pa.array(rows))
    by_llm = ~(held.base.hit[rows] | new.hit[rows])
    causes = zip(table["cause"].to_pylist(), by_llm.tolist(), strict=True)
    reasons = [REASONS.get("none" if llm and not new.imported else cause, "cause not known") for cause, llm in causes]
    counted = Counter(reasons).most_common()
    bare = new.imported or new.arm in arms_without_hits(run)
    outcomes = BARE_OUTCOMES * 2 if bare else FLIP_OUTCOMES
    users = [
        _user(user, harm, rows, owner[rows], held.base, new, table, reasons, outcomes=outcomes)
        for user in _most_harmed(harm)
    ]
    return HarmedTurns(
        harm.metric, len(rows), int(better.sum()), tuple(counted), tuple(user for user in users if user.turns)
    )


def _flipped(metric: str, before: Panel, after: Panel) -> Bool:
    """Turns that became worse, `[N]`; none that became right."""
    if metric == "right_hits":
        return before.hit & ~before.wrong & ~(after.hit & ~after.wrong)
    if metric == "err_per_hit":
        return after.hit & after.wrong & ~(before.hit & before.wrong)
    return after.wrong & ~before.wrong


def _most_harmed(harm: Harm) -> list[int]:
    order = np.argsort(-harm.each, kind="stable")[:USERS]
    return [int(harm.users[at]) for at in order if harm.each[at] > 0]


def _user(
    user: int, harm: Harm, rows: I64, owner: I64, before: Panel, after: Panel, table: pa.Table, reasons: list[str], *,
    outcomes: Sequence[str],
) -> User:  # fmt: skip
    user_flips = np.flatnonzero(owner == user)
    turns = []
    for at in user_flips[:TURNS].tolist():
        row, record = int(rows[at]), table.slice(at, 1).to_pylist()[0]
        answered = ""
        if after.hit[row] and record["matched_skill"] is not None:
            answered = f" ({record['matched_skill']!r}, score {record['skill_score']:.2f})"
        became = outcomes[2 * int(after.hit[row]) + int(after.wrong[row])] + answered
        was = outcomes[2 * int(before.hit[row]) + int(before.wrong[row])]
        lost = bool(after.wrong[row] & ~before.wrong[row])
        event = str(record.get("logged_id", ""))
        turns.append(HarmedTurn(record["turn"], record["message"], was, became, reasons[at], lost, event))
    name = str(table["logged_user"][int(user_flips[0])]) if after.imported and len(user_flips) else ""
    return User(user, float(harm.each[harm.users == user][0]), tuple(turns), len(user_flips), name)
