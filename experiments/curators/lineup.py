"""Curators of a run in both regimes: which arms are one and its controls, and what a curator asks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from skg_bench.core.foreign import text_of
from skg_bench.core.package import CONF
from skg_bench.runfolder.run import Run, flat

CLOSED, SAME_LOG = "closed loop", "same log"
CONTROLS = ("empty", "sham", "coin")
AS_IT_IS, TELLS = "as it is", "counters tell"
TELLING = (  # kinds lie far apart, many are bad, nothing wears off or discerns
    "kinds_apart=3", "generic=0", "persuades=-0.2", "wanted_share=0.15", "habit=0", "annoyance=0", "discerns=0",
)  # fmt: skip
SCRIPTED, SIMULATED = "scripted", "none, simulated"  # models that cost nothing
NO_CAP = 10**9  # tokens: so many that no curator reaches them


@dataclass(frozen=True)
class Entry:
    """A curator in a regime, by the names of arms."""

    curator: str
    regime: str
    learns: str  # arm whose jobs are paid for
    measured: str  # arm that is measured once the book stays
    against: Mapping[str, str]  # arms by what they are: frozen, and controls of CONTROLS


def entries(arms: Sequence[str]) -> list[Entry]:
    """Curators that have both an empty and a sham control: first in the closed loop, then on the same log."""
    curators = [arm for arm in arms if {f"{arm}_empty", f"{arm}_sham"} <= {*arms}]
    closed = [
        Entry(arm, CLOSED, arm, arm, _present(arms, {"frozen": "frozen", **{c: f"{arm}_{c}" for c in CONTROLS}}))
        for arm in curators
    ]
    logged = [
        Entry(arm, SAME_LOG, f"{arm}_log", f"{arm}_given", _present(arms, {
            "frozen": "frozen_given", "empty": "empty_given", **{c: f"{arm}_{c}_given" for c in ("sham", "coin")},
        }))
        for arm in curators if {f"{arm}_log", f"{arm}_given"} <= {*arms}
    ]  # fmt: skip
    return [*closed, *logged]


def _present(arms: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    return {name: arm for name, arm in named.items() if arm in arms}


def model_of(composition: Mapping[str, Any]) -> str:
    """Model that an arm's curator asks: `none, simulated`, `scripted`, or the class of another one."""
    models = [str(node["_target_"]).rpartition(".")[2] for node in _models(composition["curator"])]
    if not models:
        return SIMULATED
    return SCRIPTED if "Scripted" in models else models[-1]


def _models(node: Any, *, inside: bool = False) -> Iterator[Mapping[str, Any]]:
    """Compositions of models within one of a curator, the inner ones last."""
    if isinstance(node, Mapping):
        if inside and "_target_" in node:
            yield node
        for key, value in node.items():
            yield from _models(value, inside=key == "llm")


def wrong_of(run: Run, arm: str) -> float:
    """Share of the verdicts of an arm's reflector that is turned round."""
    models = _models(run.manifest["compositions"][arm]["curator"])
    return float(next((node["wrong"] for node in models if "wrong" in node), 0.0))


def cap_of(run: Run, arm: str) -> str:
    """Cap on the tokens of a user of an arm, in words."""
    tokens = run.manifest["compositions"][arm]["curator"].get("tokens", NO_CAP)
    return "none" if tokens >= NO_CAP else f"{tokens:,} tokens"


def world_of_run(run: Run) -> str:
    """Name of a world that this experiment knows, or what it has otherwise than conf/simulator/guardian.yaml."""
    usual = flat(yaml.safe_load(text_of(CONF / "simulator" / "guardian.yaml")))
    changed = [f"{key}={value}" for key, value in flat(run.config["simulator"]).items() if usual.get(key) != value]
    if not changed:
        return AS_IT_IS
    return TELLS if sorted(changed) == sorted(TELLING) else " ".join(changed)


def real_models(run: Run) -> dict[str, str]:
    """Models by arm that are neither scripts nor simulations."""
    models = {arm: model_of(made) for arm, made in run.manifest["compositions"].items()}
    return {arm: model for arm, model in models.items() if model not in (SCRIPTED, SIMULATED)}


def parted(run: Run, arms: Sequence[str], turns: int) -> dict[str, int]:
    """Turns before purchase `turns` + 1 at which arms did something else than the first of them, or changed a skill
    from which `policy=uniform_oldest` chooses, by arm.
    """
    columns = ["user", "turn", "skill", "outcome", "propensity"]
    early = {arm: [*_early(run, arm, columns, turns)] for arm in arms}
    return {
        arm: sum(turn != other for turn, other in zip(early[arms[0]], table, strict=True)) + _changed(run, arm, turns)
        for arm, table in early.items()
    }


def _changed(run: Run, arm: str, turns: int) -> int:
    """Turns at which skills that are chosen from were removed or reworded."""
    oldest = run.manifest["compositions"][arm]["policy"].get("skills", 0)
    rows = run.updates(arm, ["user", "turn", "op", "skill"]).to_pylist()
    hits = {
        (row["user"], row["turn"])
        for row in rows
        if row["op"] in ("UPDATE", "REMOVE") and row["skill"] < oldest and row["turn"] < turns - 1
    }
    return len(hits)


def _early(run: Run, arm: str, columns: Sequence[str], turns: int) -> Iterator[tuple[Any, ...]]:
    table = run.turns(arm, columns)
    for row in zip(*(table[name].to_pylist() for name in columns), strict=True):
        if row[1] < turns:
            yield row
