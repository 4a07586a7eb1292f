"""Run directories made without the engine: valid by `runfolder/schema.py`, from a small world whose truth is known.

Every user draws request types in proportion to a Zipf law; the k-th use of a type is worded anew twice and then
verbatim again. An arm is a `World`: how often it answers from the skillbook what it met before, how often that is
right, and from which turn on it learns nothing new. All arms meet the same events and the same uniforms.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skg_bench.runfolder import schema
from skg_bench.runfolder.run import Run
from tests.runs import save, table_of, write_logs

TOP_K = 5
MONDAY = np.datetime64("2026-01-05T00:00:00", "s")
WEEK = 7 * 24 * 3600
UTILITY = {"wrong": 1.0, "usd": 10.0, "second": 0.02, "offer": 0.005}


@dataclass(frozen=True)
class World:
    """How one arm behaves."""

    hit: float = 0.8  # probability of answering from the skillbook when the type was learned before
    hit_right: float = 0.85  # probability that a stored answer is right
    llm_right: float = 0.9  # probability that the LLM is right
    learns_until: int | None = None  # frozen from this turn on; None: never frozen
    overrides: tuple[str, ...] = ()
    oracle: bool = False  # of its configuration; what it does is the rest


ARMS: Mapping[str, World] = {
    "skg": World(),
    "frozen": World(learns_until=30, overrides=("freeze=all", "freeze_at=30")),
    "never": World(hit=0.0, overrides=("policy=never",)),
}


def composition(world: World) -> dict[str, Any]:
    """What `manifest["compositions"]` holds of an arm."""
    live = {"_target_": "skg_bench.curator.skg.Skg", "decay": 0.0}
    if world.oracle:
        live = {"_target_": "skg_bench.curator.oracle.RightAnswers"}
    policy = "never.Never" if world.hit == 0 else "threshold.Threshold"
    return {
        "assistant": {"_target_": "skg_bench.assistant.pipeline.Pipeline"},
        "curator": live,
        "freeze": None if world.learns_until is None else "all",
        "freeze_at": world.learns_until,
        "policy": {"_target_": f"skg_bench.policy.{policy}"},
        "reranker": {"_target_": "skg_bench.reranker.linear.Linear"},
        "router": {"_target_": f"skg_bench.router.{'oracle.RightSkill' if world.oracle else 'maxsim.MaxSim'}"},
        "serving": "stored",
    }


def make_run(
    path: Path,
    *,
    seed: int = 0,
    users: int = 24,
    weeks: int = 6,
    per_week: float = 18.0,
    types: int = 60,
    one_offs: float = 0.3,
    arms: Mapping[str, World] = ARMS,
    reference: str = "never",
    utility: Mapping[str, float] = UTILITY,
    first_user: int = 0,
    stream: int = 0,
) -> Run:
    """Write a run into `path` and open it. `stream` shifts the events, not the users."""
    path.mkdir(parents=True, exist_ok=True)
    streams = [
        _events(seed, u, weeks, per_week, types, one_offs, stream) for u in range(first_user, first_user + users)
    ]
    tables = {}
    for arm, world in arms.items():
        played = [
            _play(arm, world, seed, u, e) for u, e in zip(range(first_user, first_user + users), streams, strict=True)
        ]
        kinds = {
            "turns": schema.turns(TOP_K), "updates": schema.UPDATES, "feedback": schema.FEEDBACK,
            "learning": schema.LEARNING_LOG,
        }  # fmt: skip
        tables[arm] = {
            log: table_of([row for logs in played for row in logs[log]], kind) for log, kind in kinds.items()
        }
    config = {
        "seed": seed, "users": users, "weeks": weeks, "cohort": 256, "workers": 1, "profile": "synthetic",
        "experiment": "synthetic", "question": "Does the assistant get better because it learns?", "serving": "stored",
        "utility": dict(utility), "reference": reference, "arms": {a: list(w.overrides) for a, w in arms.items()},
    }  # fmt: skip
    manifest = {
        "schema": schema.SCHEMA_VERSION, "identity": f"synthetic-{seed}", "config": config, "arms": list(arms),
        "question": config["question"], "seed": seed, "users": first_user + users, "weeks": weeks,
        "versions": {"skg_bench": "0"}, "commit": "0" * 40, "dirty": None, "data": {},
        "compositions": {a: composition(w) for a, w in arms.items()},
        "worlds": {a: asdict(w) for a, w in arms.items()},
    }  # fmt: skip
    save(path, manifest)
    for arm, known in tables.items():
        write_logs(path, arm, first_user + users, known)
    return Run(path)


@dataclass(frozen=True)
class _Event:
    time: np.datetime64
    type: int  # -1: a one-off
    message: str
    answerable: int
    used_up: bool
    uniforms: np.ndarray  # uniforms of the turn, the same for every arm


def _events(
    seed: int, user: int, weeks: int, per_week: float, types: int, one_offs: float, stream: int
) -> list[_Event]:
    person = np.random.default_rng([seed, user, stream])
    volume = per_week * person.lognormal(0, 0.4)
    taste = person.permutation(types)
    weight = 1 / np.arange(1, types + 1) ** 1.1
    used: dict[int, int] = {}
    events = []
    for second, rng in _moments(seed, user, weeks, volume, stream):
        uniforms = rng.random(16)
        kind = -1 if rng.random() < one_offs else int(taste[rng.choice(types, p=weight / weight.sum())])
        earlier = used.get(kind, 0)
        used[kind] = earlier + 1
        if kind < 0:
            pool = int(rng.integers(3000))
            events.append(_Event(MONDAY + second, -1, f"one-off {pool}", 0, False, uniforms))
        else:
            message = f"type {kind} wording {min(earlier, 40)}"
            events.append(_Event(MONDAY + second, kind, message, earlier, earlier > 40, uniforms))
    return events


def _moments(
    seed: int, user: int, weeks: int, volume: float, stream: int
) -> Iterator[tuple[np.int64, np.random.Generator]]:
    """When the user says something; a week does not depend on how many follow."""
    for week in range(weeks):
        rng = np.random.default_rng([seed, user, stream, week])
        n = rng.poisson(volume) * (rng.random() < 0.9) + 2 * (week == 0)  # nobody is there in each week
        for second in np.sort(rng.integers(week * WEEK, (week + 1) * WEEK, n)):
            yield second, rng


def _play(arm: str, world: World, seed: int, user: int, events: list[_Event]) -> dict[str, list[dict[str, Any]]]:
    """The rows of the four logs."""
    skill_of: dict[int, int] = {}
    version, previous = 0, -1
    logs: dict[str, list[dict[str, Any]]] = {"turns": [], "updates": [], "feedback": [], "learning": []}
    for turn, event in enumerate(events):
        uniforms = event.uniforms
        known = skill_of.get(event.type, -1)
        hit = known >= 0 and uniforms[0] < world.hit
        skill = known if hit else -1
        right = bool(uniforms[1] < (world.hit_right if hit else world.llm_right))
        rating = ("ok" if uniforms[2] < (0.9 if right else 0.2) else "miss") if uniforms[3] < 0.5 else None
        late = bool(uniforms[4] < 0.3)
        time = event.time.astype(object)
        live = world.learns_until is None or turn < world.learns_until
        learned = event.type >= 0 and not hit and known < 0 and live and world.hit > 0 and uniforms[5] < 0.7
        name = None if event.type < 0 else f"skill-{event.type}"
        stamp = {"arm": arm, "user": user, "turn": turn, "time": time}
        if learned:
            skill_of[event.type] = len(skill_of)
            version += 1
            logs["updates"].append({
                **stamp, "op": "ADD", "skill": skill_of[event.type], "name": name, "message": event.message,
                "source_turn": turn, "rating": None, "uses": 0, "after": previous, "reason": "captured", "about": turn,
                "book_version": version, "book_hash": _hash(user, version),
            })  # fmt: skip
        delay = int(uniforms[6] * 14 * 24 * 3600) if late else 0
        said = [("rating", rating, delay), ("agrees", None if hit or known < 0 else "same" if right else "other", 0)]
        logs["feedback"] += [
            {**stamp, "known_at": (event.time + wait).astype(object), "skill": skill, "kind": kind, "value": value}
            for kind, value, wait in said if value is not None
        ]  # fmt: skip
        candidates = sorted(skill_of.values(), key=lambda s: (s != skill, s))[:TOP_K]
        pad = TOP_K - len(candidates)
        falling = [float(x) for x in np.linspace(0.5 + 0.5 * uniforms[7], 0.1, TOP_K)[: len(candidates)]] + [0.0] * pad
        logs["turns"].append({
            **stamp, "user_msg_id": f"u{user}-t{turn}", "message": event.message, "max_sim": falling[0],
            "matched_skill": name if hit else None, "skill_score": falling[0], "fallback_to_llm": not hit,
            "user_satisfaction": None if late else rating, "skill_learned": bool(learned), "seed": seed, "event": turn,
            "skill": skill, "source_turn": -1 if not hit else 0, "propensity": 1.0, "explored": False,
            "serving": "stored" if hit else "llm",
            "offer": "accepted" if learned else ("declined" if uniforms[8] < 0.05 and world.hit > 0 else None),
            "tokens_in": 0 if hit else 200, "tokens_out": 0 if hit else 50 + int(100 * uniforms[9]),
            "cost_usd": 0.0 if hit else 0.0005 + 0.001 * float(uniforms[9]),
            "latency_ms": 50.0 if hit else 1000.0 + 4000.0 * float(uniforms[10]),
            "learning_tokens_in": 0, "learning_tokens_out": 0, "learning_cost_usd": 0.0,
            "book_size": len(skill_of), "book_version": version, "book_hash": _hash(user, version),
            "shortlist": candidates + [-1] * pad, "similarity": falling, "preference": [0.5] * TOP_K,
            "score": [float("nan")] * TOP_K, "combined": falling, "skill_correct": right if hit else None,
            "answer_correct": right, "cause": _cause(event, known, hit, right),
            "intent": None if event.type < 0 else f"intent {event.type // 3}",
            "request_type": None if event.type < 0 else f"type {event.type}",
            "answerable": event.answerable, "used_up": event.used_up,
        })  # fmt: skip
        previous = skill if hit else skill_of.get(event.type, -1) if learned else -1
    return logs


def _cause(event: _Event, known: int, hit: bool, right: bool) -> str:
    """As `pipeline/cause.py` has it: answers never expire here, and a right skill is always the best candidate."""
    if hit:
        return "none" if right else "wrong_source"
    return "threshold" if known >= 0 else "capture" if event.answerable else "novelty"


def _hash(user: int, version: int) -> bytes:
    return user.to_bytes(8, "little") + version.to_bytes(8, "little")
