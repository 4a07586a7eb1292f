"""The prior of the simulator's parameters, and draws from it: draw d is a function of (seed, d) and of nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from skg_bench.core.draws import Purpose, draw, key
from skg_bench.core.grid import F64, I64
from skg_bench.core.statehash import text_hash

FILE = Path(__file__).with_name("prior.yaml")
KIND = "kind"
WEIGHTS = ("similarity_weight", "preference_weight", "score_weight")
_SYSTEM = ("llm_right", "llm_seconds", "prompt_helps", "misled", *WEIGHTS)
_SAID = ("ok_if_right", "ok_if_near", "ok_if_wrong")
_PARTIAL = {"ok_if_right": 0.7, "ok_if_near": 0.5, "ok_if_wrong": 0.15}  # of what is not ok


@dataclass(frozen=True)
class Parameter:
    """A uniform distribution on its scale, and why it is this one."""

    name: str
    low: float
    high: float
    scale: Literal["linear", "log"]
    unit: str
    what: str
    source: str

    def at(self, u: F64) -> F64:
        """Quantiles at `u` in (0, 1)."""
        if self.scale == "linear":
            return self.low + (self.high - self.low) * u
        log: F64 = np.exp(np.log(self.low) + (np.log(self.high) - np.log(self.low)) * u)
        return np.clip(log, self.low, self.high)


@dataclass(frozen=True)
class Choice:
    """Options that are equally likely, and why they are these."""

    name: str
    options: tuple[str, ...]
    what: str
    source: str

    def drawn(self, seed: int, draws: I64) -> np.ndarray:
        """Options at these numbers of draws, `[n]`."""
        u = draw(key(seed, draws), 0, Purpose.PRIOR, text_hash(self.name))
        return np.array(self.options)[(u * len(self.options)).astype(np.int64)]


@lru_cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = yaml.safe_load(FILE.read_text("utf-8"))
    return rows


@lru_cache
def parameters() -> tuple[Parameter, ...]:
    """All numbers that are drawn, in the order of the file."""
    return tuple(
        Parameter(name, **{**row, "low": float(row["low"]), "high": float(row["high"]), "unit": str(row["unit"])})
        for name, row in _rows().items()
        if name != KIND
    )


@lru_cache
def kinds() -> Choice:
    """What a skill can be: names of arms of `experiment=skg_section5`."""
    row = _rows()[KIND]
    return Choice(KIND, tuple(row["options"]), row["what"], row["source"])


def drawn(seed: int, draws: I64) -> dict[str, F64]:
    """Values of each parameter at these numbers of draws, `[n]`."""
    keys = key(seed, draws)
    return {
        parameter.name: parameter.at(draw(keys, 0, Purpose.PRIOR, text_hash(parameter.name)))
        for parameter in parameters()
    }


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
