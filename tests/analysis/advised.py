"""Run directories of a world in which skills are advice, made without the engine: valid by `runfolder/schema.py`.

A run is what its turns say: purchases of one user after the other, with what came of them. `drawn` makes users who
listen to a strategy more often than to the generic question.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from skg_bench.core.content import Content
from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from skg_bench.simulator.advice.outcome import advice
from skg_bench.skillbook.skillbook import Operation, Skillbook, apply
from tests.runs import save, table_of, write_logs

MONDAY = np.datetime64("2026-01-05T00:00:00", "s")
DAY = 24 * 3600
TOP_K = 3
UTILITY = {"wrong": 1.0, "usd": 10.0, "second": 0.02, "offer": 0.05}
SEED = Content("general", "ask whether it is needed")
REVISED = Content("time_cost", "say what it costs in days of work")
LEARNED = Content("time_cost", "say what it costs in hours of work", "that is 4 hours of your work")


@dataclass(frozen=True)
class Purchase:
    """A trigger, what an arm did about it, and what came of it."""

    outcome: str = "overridden"
    tier: str = "therapist"
    wanted: bool = False
    strategy: str | None = None  # kind of what was served, the last skill learned; None: the generic question
    worths: tuple[float, float, float, float, float] = (0.4, 0.3, 0.2, 0.1, -0.05)  # best, book, fresh, expected, worth
    day: float = 0.0
    message: str = "headphones, $80, late at night"
    context: str | None = None
    satisfaction: str | None = None
    after: float = 3.0  # days until that is known
    learned: bool = False  # an ADD of LEARNED
    revised: bool = False  # an UPDATE of the last skill by REVISED, once the satisfaction is known
    cost: float = 0.001  # USD; 0 and no wait where nothing is said
    learning: float = 0.0  # USD

    @property
    def silent(self) -> bool:
        return self.outcome == "auto_approved"

    @property
    def held_back(self) -> bool:
        cheaper = self.outcome == "accepted" and self.tier == "negotiator"
        return self.outcome in ("accepted", "wait", "abandoned") and not cheaper


Users = Sequence[Sequence[Purchase]]
ADVISED = advice(["delay"])


def make_advice_run(
    path: Path,
    arms: Mapping[str, Users],
    *,
    weeks: int = 2,
    reference: str | None = "never",
    seeds: bool = True,
    components: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Run:
    """Write a run into `path` and open it; all arms need the same triggers. `seeds`: books begin with one skill.
    `components`: of arms that have others than `_composition` says.
    """
    tables = {}
    for arm, users in arms.items():
        logs: dict[str, list[dict[str, Any]]] = {"turns": [], "updates": [], "feedback": [], "learning": []}
        for user, purchases in enumerate(users):
            _life(logs, arm, user, purchases, seeds=seeds)
        kinds = {
            "turns": schema.turns(TOP_K, ADVISED.outcome), "updates": schema.UPDATES, "feedback": schema.FEEDBACK,
            "learning": schema.LEARNING_LOG,
        }  # fmt: skip
        tables[arm] = {log: table_of(rows, kinds[log]) for log, rows in logs.items()}
    n = len(next(iter(arms.values())))
    config = {
        "seed": 0, "users": n, "weeks": weeks, "experiment": "advice", "question": "Does the Guardian learn?",
        "utility": UTILITY, "reference": reference, "arms": {arm: [] for arm in arms}, "serving": "prompted",
        "simulator": {"_target_": "skg_bench.simulator.advice.guardian.Guardian", "blocked": 1.0},
    }  # fmt: skip
    manifest = {
        "schema": schema.SCHEMA_VERSION, "identity": "advice-0", "config": config, "arms": list(arms),
        "domain": ADVISED.plain(),
        "question": config["question"], "seed": 0, "users": n, "weeks": weeks, "commit": "0" * 40, "dirty": None,
        "versions": {"skg_bench": "0"}, "data": {},
        "compositions": {arm: {**_composition(arm), **components.get(arm, {})} for arm in arms},
    }  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    save(path, manifest)
    for arm, known in tables.items():
        write_logs(path, arm, n, known)
    return Run(path)


def drawn(users: int, turns: int, listens: float, seed: int = 0) -> list[list[Purchase]]:
    """Users who listen to a strategy with probability `listens`, the same triggers and uniforms at any probability."""
    lives = []
    for user in range(users):
        rng = np.random.default_rng([seed, user])
        life = []
        for turn in range(turns):
            u, tier = rng.random(6), int(rng.integers(3))
            wanted, late = bool(u[0] < 0.4), u[1] < 0.5
            outcome = "auto_approved" if tier == 0 else ["accepted", "wait"][int(u[2] < 0.5)] if u[3] < listens else ""
            purchase = Purchase(
                outcome=outcome or "overridden", tier=("analyst", "negotiator", "therapist")[tier], wanted=wanted,
                strategy=None if tier == 0 or u[4] > listens else "time_cost", day=14 * (turn + u[5]) / turns,
                message=f"trigger {int(rng.integers(40))}", learned=turn == 3,
                satisfaction=["worth_it", "regret_it", "not_sure"][turn % 3] if late else None,
            )  # fmt: skip
            held = purchase.held_back
            worth = (1.0 if not wanted else -1.0) if held else 0.0
            book, best = 0.2 * listens, 0.2
            life.append(replace(purchase, worths=(best, book, book - 0.02, book - 0.05, worth)))
        lives.append(life)
    return lives


def _composition(arm: str) -> dict[str, Any]:
    policy = "never.Never" if arm == "never" else "chooser.Chooser"
    return {
        "assistant": {"_target_": "skg_bench.assistant.pipeline.Pipeline"},
        "curator": {"_target_": "skg_bench.curator.reflective.Reflective"}, "freeze": None, "freeze_at": None,
        "policy": {"_target_": f"skg_bench.policy.{policy}"}, "serving": "prompted",
        "router": {"_target_": "skg_bench.router.in_prompt.InPrompt"},
    }  # fmt: skip


def _life(
    logs: dict[str, list[dict[str, Any]]], arm: str, user: int, purchases: Sequence[Purchase], *, seeds: bool
) -> None:
    book = Skillbook()

    def write(op: str, skill: int, turn: int, second: int, content: Content, reason: str, about: int = -1) -> None:
        nonlocal book
        named = {"name": f"skill-{skill}", "message": "m"} if op == "ADD" else {"name": None, "message": None}
        book = apply(book, [Operation(op, skill, second, **named, content=content, about=about)])
        logs["updates"].append({
            "arm": arm, "user": user, "turn": turn, "time": (MONDAY + second).astype(object), "op": op, "skill": skill,
            **named, "source_turn": -1, "rating": None, "uses": 0, "after": -1, "born": None,
            "section": content.section, "issue": content.issue, "insight": content.insight, "keywords": None,
            "reason": reason, "about": about, "book_version": book.version, "book_hash": book.hash,
        })  # fmt: skip

    if seeds:
        write("ADD", 0, -1, 0, SEED, "seed")
    for turn, p in enumerate(purchases):
        second = int(p.day * DAY)
        time = (MONDAY + second).astype(object)
        hit = p.strategy is not None and not p.silent
        stamp = {"arm": arm, "user": user, "turn": turn}
        skill = len(book.skills) - 1 if hit else -1
        for about, earlier in enumerate(purchases[:turn]):
            if earlier.satisfaction and (turn and purchases[turn - 1].day) < earlier.day + earlier.after <= p.day:
                if earlier.revised:
                    write("UPDATE", len(book.skills) - 1, turn, second, REVISED, "revised", about)
                job = _job(stamp, about, "satisfaction", earlier.satisfaction, time, book.version, earlier.revised)
                logs["learning"].append(job)
        if p.learned:
            write("ADD", len(book.skills), turn, second, LEARNED, "learned", turn)
            logs["learning"].append(_job(stamp, turn, "outcome", p.outcome, time, book.version, True))
        logs["feedback"].append({**stamp, "time": time, "known_at": time, "skill": skill, "kind": "outcome",
                                 "value": p.outcome})  # fmt: skip
        if p.satisfaction is not None:
            known = (MONDAY + second + int(p.after * DAY)).astype(object)
            logs["feedback"].append({**stamp, "time": time, "known_at": known, "skill": skill,
                                     "kind": "satisfaction", "value": p.satisfaction})  # fmt: skip
        best, in_book, fresh, expected, worth = p.worths
        shortlist = [s.id for s in book.skills][:TOP_K]
        pad = TOP_K - len(shortlist)
        logs["turns"].append({
            **stamp, "user_msg_id": f"u{user}-t{turn}", "message": p.message, "max_sim": 0.5,
            "matched_skill": f"skill-{skill}" if hit else None, "skill_score": 0.5, "fallback_to_llm": not hit,
            "user_satisfaction": None, "skill_learned": p.learned, "seed": 0, "event": turn, "time": time,
            "skill": skill, "source_turn": -1, "propensity": 0.25, "explored": False,
            "serving": "silent" if p.silent else "prompted" if hit else "llm", "offer": None, "agrees": None,
            "tier": p.tier, "outcome": p.outcome, "tokens_in": 0 if p.silent else 100,
            "tokens_out": 0 if p.silent else 20, "cost_usd": 0.0 if p.silent else p.cost,
            "latency_ms": 0.0 if p.silent else 1000.0, "learning_tokens_in": 0, "learning_tokens_out": 0,
            "learning_cost_usd": p.learning, "book_size": len(book.skills), "book_version": book.version,
            "book_hash": book.hash, "shortlist": shortlist + [-1] * pad, "similarity": [0.5] * TOP_K,
            "preference": [0.5] * TOP_K, "score": [0.5] * TOP_K, "combined": [0.5] * TOP_K, "skill_correct": None,
            "answer_correct": p.held_back != p.wanted, "cause": None, "intent": p.context, "request_type": p.context,
            "answerable": 0, "used_up": False, "wanted": p.wanted, "strategy": p.strategy, "worth": worth,
            "worth_expected": expected, "worth_fresh": fresh, "worth_book": in_book, "worth_best": best,
        })  # fmt: skip


def _job(
    stamp: Mapping[str, Any], about: int, channel: str, value: str, time: Any, version: int, written: bool
) -> dict[str, Any]:
    reflection = {"analysis": "the user felt lectured", "helpful_skill_ids": [], "harmful_skill_ids": ["general-00001"],
                  "new_learnings": [{"section": "time_cost", "content": "hours", "atomicity_score": 0.9}]}  # fmt: skip
    return {
        **stamp, "about": about, "channel": channel, "value": value, "start": time, "end": time,
        "version_read": version - written, "version_written": version if written else -1,
        "result": "applied" if written else "unchanged", "operations": int(written), "refused": 0,
        "refusals": None, "tokens_in": 10, "tokens_cached": 0, "tokens_out": 5, "cost_usd": 0.0, "latency_ms": 0.0,
        "reflection": json.dumps(reflection), "reason": None, "served": None,
    }  # fmt: skip
