"""Panels made by hand."""

from collections.abc import Sequence

import numpy as np

from skg_bench.analysis.gate.against import Held, Reference, hold
from skg_bench.analysis.gate.panel import EVENTS_DIGEST, Panel
from skg_bench.analysis.gate.rules import RULES, Rule
from skg_bench.core.grid import Bool
from tests.analysis.synthetic import World

ANCHORS = {"never": World(hit=0.0, llm_right=0.3), "oracle": World(hit_right=1.0, oracle=True)}
NEVER = -1.0  # utility of an answer of the anchor
UTILITY = {"wrong": 1.0, "usd": 0.0, "second": 0.0, "offer": 0.0}


def made(hit: Bool, wrong: Bool, digest: str, *, first: int = 0, seed: int = 0, events: str = "e") -> Panel:
    """Users in rows, their turns in columns, `[n, T]`; `digest` stands for all that was logged."""
    n, turns = hit.shape
    counts = {
        "turn": np.full(n, float(turns)),
        "hit": hit.sum(1),
        "wrong": wrong.sum(1),
        "wrong_hit": (hit & wrong).sum(1),
    }
    counts |= {name: np.zeros(n) for name in ("cost", "learning", "latency", "offer")}
    late = slice(-(-3 * turns // 4), None)  # the last quarter
    counts |= {f"late_{name}": np.zeros(n) for name in ("cost", "learning", "latency", "offer")}
    counts |= {"late_turn": np.full(n, float(hit[:, late].shape[1])), "late_wrong": wrong[:, late].sum(1)}
    counts |= {"week": np.full(n, 4.0), "never": np.full(n, NEVER * turns), "oracle": np.full(n, float(turns))}
    return Panel(
        arm="skg",
        users=np.arange(first, first + n),
        turns=np.full(n, turns),
        counts={name: np.asarray(column, np.float64) for name, column in counts.items()},
        hit=hit.ravel(),
        wrong=wrong.ravel(),
        rated=np.zeros(hit.size, np.uint8),
        digests={EVENTS_DIGEST: events, "answer_correct": digest},
        made={
            "commit": "c", "dirty": None, "versions": {}, "packages": {}, "overrides": ["experiment=gate"], "data": {},
            "code": "c",
            "compositions": {"skg": {"llm": {"_target_": "package.RealModel"}, "hit_latency_ms": 50}},
            "config": {"seed": seed, "users": n, "weeks": 4, "utility": UTILITY, "simulator": {"rated_share": 0.2}},
        },
    )  # fmt: skip


def worse(lost: Sequence[int], turns: int = 1000, users: int = 100) -> Panel:
    """Every user answered wrongly by the LLM in `lost[user % len(lost)]` of the turns, and never by the skillbook."""
    wrong = np.zeros((users, turns), np.bool_)
    for user in range(users):
        wrong[user, : lost[user % len(lost)]] = True
    hit = np.zeros_like(wrong)
    hit[:, -100:] = True
    return made(hit, wrong & ~hit, "-".join(map(str, lost)))


def rule(metric: str) -> Rule:
    """As the default rules have it."""
    return next(known for known in RULES if known.metric == metric)


def held_to(new: Panel, base: Panel, *rules: Rule, factor: float = 1.0) -> Held:
    """`new` against one baseline; default: the default rules, with margins times `factor`."""
    (outcome,) = hold(new, [Reference("baseline", base, tuple(r.times(factor) for r in rules or RULES), "file.json")])
    return outcome
