"""The prior of the simulator's parameters, and draws from it: draw d is a function of (seed, d) and of nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skg_bench.core.grid import F64, I64
from skg_bench.study.prior import Choice, Parameter, read

FILE = Path(__file__).with_name("prior.yaml")
KIND = "kind"
WEIGHTS = ("similarity_weight", "preference_weight", "score_weight")
_SYSTEM = ("llm_right", "llm_seconds", "prompt_helps", "misled", *WEIGHTS)
_SAID = ("ok_if_right", "ok_if_near", "ok_if_wrong")
_PARTIAL = {"ok_if_right": 0.7, "ok_if_near": 0.5, "ok_if_wrong": 0.15}  # of what is not ok


def parameters() -> tuple[Parameter, ...]:
    """All numbers that are drawn, in the order of the file."""
    return read(FILE).parameters


def kinds() -> Choice:
    """Kinds that a skill can be: names of arms of `experiment=skg_section5`."""
    (choice,) = read(FILE).choices
    return choice


def drawn(seed: int, draws: I64) -> dict[str, F64]:
    """Values of each parameter at these numbers of draws, `[n]`."""
    return {parameter.name: parameter.drawn(seed, draws) for parameter in parameters()}


def of_users(values: Mapping[str, float]) -> dict[str, Any]:
    """One draw as parameters of `simulator=assistant`."""
    ok = {name: values[name] for name in _SAID}
    ok["ok_if_wrong"] *= ok["ok_if_near"]
    ratings = {
        f"rating_{name[3:]}": [p, (1 - p) * _PARTIAL[name], (1 - p) * (1 - _PARTIAL[name])] for name, p in ok.items()
    }
    return {name: float(v) for name, v in values.items() if name not in (*_SAID, *_SYSTEM)} | ratings


def of_llm(values: Mapping[str, F64]) -> dict[str, F64]:
    """Draws as parameters of `llm=simulated`, by name."""
    right = values["llm_right"]
    return {"right": right, "right_with_skill": 1 - (1 - right) * (1 - values["prompt_helps"]),
            "misled": values["misled"]}  # fmt: skip
