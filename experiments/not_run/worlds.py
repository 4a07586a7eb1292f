"""Worlds drawn from the prior, each with the arm that makes its log and the arms that are asked about (targets)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skg_bench.study.prior import read

FILE = Path(__file__).with_name("prior.yaml")
LOGGER = "logger"
STEP = 0.1  # between the thresholds of the logger and of a stricter or laxer one
FAR = 0.2  # between its threshold and one that is much stricter
_USERS = (
    "messages_per_day", "volume_spread", "one_off_share", "concentration", "discount", "habit", "accept", "rated_share",
    "partial_odds", "miss_odds", "late_share",
)  # fmt: skip
_EMBEDDERS = {"builtin_120": "corpus_minilm", "clinc150": "minilm"}
_CAP = "simulator.max_per_day=12"  # a world takes as long as its busiest user
_PARTIAL = {"right": 0.7, "near": 0.5, "wrong": 0.15}  # of what is not rated ok
_CURATORS: Mapping[str, tuple[str, ...]] = {
    "few": ("curator=budget", "curator.capacity=5"),
    "band": ("curator=skg", "curator.capture=band"),
    "offers": ("curator=skg", "curator.offer_after=answer"),
}
Seam = Literal["policy", "router", "curator"]


@dataclass(frozen=True)
class AskedArm:
    """An arm that is asked about: what it has in the place of the logger's component."""

    name: str
    seam: Seam
    overrides: tuple[str, ...]

    @property
    def weighted(self) -> bool:
        """Can decisions of the log be weighted for it, as it differs in a policy of scores alone?"""
        return self.seam == "policy" and "policy=thompson" not in self.overrides


@dataclass(frozen=True)
class DrawnWorld:
    """World number `number` of a seed: a function of these two."""

    seed: int
    number: int

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """Values of the prior's parameters and choices, by name."""
        prior, at = read(FILE), np.array([self.number])
        numbers = {each.name: each.drawn(self.seed, at)[0].item() for each in prior.parameters}
        return numbers | {each.name: each.drawn(self.seed, at)[0].item() for each in prior.choices}

    @property
    def run_seed(self) -> int:
        """Seed of the world's runs, its own."""
        return 1_000 * self.seed + self.number

    @property
    def users(self) -> tuple[str, ...]:
        """Overrides of simulated users and the LLM."""
        v = self.values
        ok = {"right": v["ok_if_right"], "near": v["ok_if_near"], "wrong": v["ok_if_wrong"] * v["ok_if_near"]}
        ratings = (
            f"simulator.rating_if_{it}=[{p},{(1 - p) * _PARTIAL[it]},{(1 - p) * (1 - _PARTIAL[it])}]"
            for it, p in ok.items()
        )
        corpus = (f"simulator.corpus={v['corpus']}", f"embedder={_EMBEDDERS[v['corpus']]}", _CAP)
        shares = (f"simulator.{name}={v[name]}" for name in _USERS)
        return (*corpus, *shares, *ratings, f"llm.right={v['right']}")

    @property
    def logger(self) -> Mapping[Seam, tuple[str, ...]]:
        """Overrides of the arm that makes the log, by seam."""
        curator = ("curator=skg",)
        return {"policy": self._policy(self.values["logger"]), "router": ("router=maxsim",), "curator": curator}

    @property
    def targets(self) -> tuple[AskedArm, ...]:
        """Arms that are asked about."""
        v = self.values
        strict, far, lax = (_threshold(v["threshold"] + step) for step in (STEP, FAR, -STEP))
        other = "rule" if v["policy"] == v["logger"] else v["policy"]
        return (
            AskedArm("stricter", "policy", strict), AskedArm("strictest", "policy", far),
            AskedArm("never", "policy", ("policy=never",)), AskedArm("laxer", "policy", lax),
            AskedArm("policy", "policy", self._policy(other)),
            AskedArm("router", "router", (f"router={v['router']}",)),
            AskedArm("curator", "curator", _CURATORS[v["curator"]]),
        )  # fmt: skip

    @property
    def arms(self) -> Mapping[str, tuple[str, ...]]:
        """Overrides of the logger, which is called LOGGER, and of each target as an arm of its own."""
        parts = {LOGGER: self.logger, **{t.name: {**self.logger, t.seam: t.overrides} for t in self.targets}}
        return {name: tuple(chain(*by_seam.values())) for name, by_seam in parts.items()}

    def _policy(self, kind: str) -> tuple[str, ...]:
        v, threshold = self.values, self.values["threshold"]
        match kind:
            case "epsilon":
                return ("policy=epsilon_threshold", f"policy.threshold={threshold}", f"policy.epsilon={v['epsilon']}")
            case "softmax":
                return ("policy=softmax", f"policy.threshold={threshold}", f"policy.temperature={v['temperature']}")
            case "interleave":
                ends = (f"policy.first.threshold={threshold - STEP}", f"policy.second.threshold={threshold}")
                return ("policy=interleave", *ends)
            case "thompson":
                return ("policy=thompson", f"policy.threshold={threshold}")
            case _:
                return _threshold(threshold)


def _threshold(value: float) -> tuple[str, ...]:
    return ("policy=threshold", f"policy.threshold={value}")
