"""Roles of the arms of a run: reference, control without a skillbook, frozen twins of live arms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles of a run's arms, by name."""

    reference: str | None
    never: str | None  # answers everything by the LLM
    frozen: dict[str, tuple[str, int]]  # frozen arm -> (its live arm, turn from which on it learns nothing)
    learner: str  # the arm that the question is about
    changed: Sequence[str]  # arms that the command changed, or added to those of the experiment

    @property
    def live(self) -> str:
        """The arm whose learning frozen twins measure: the learner if it has any, else the first arm that has."""
        lives = [live for live, _ in self.frozen.values()]
        return self.learner if self.learner in lives or not lives else lives[0]

    def since(self, arm: str) -> list[int]:
        """First turns from which on this arm is compared with a twin, 0 among them."""
        starts = {s for frozen, (live, s) in self.frozen.items() if arm in (frozen, live)}
        return sorted({0} | starts)


def roles(run: Run) -> Roles:
    """Roles from the compositions in the manifest.

    The learner is the configured one, the first arm that the command changed, or the first that learns. Raises
    UsageError when the configured reference or learner is not an arm of the run.
    """
    arms = run.arms
    compositions: Mapping[str, Mapping[str, Any]] = run.manifest.get("compositions", {})
    reference = run.config.get("reference")
    chosen = run.config.get("learner")
    for role, arm in (("reference", reference), ("learner", chosen)):
        if arm is not None and arm not in arms:
            raise UsageError(f"{role}={arm!r} is no arm of {run.path}; it has {', '.join(arms)}")
    frozen: dict[str, tuple[str, int]] = {}
    for arm in arms:
        start = _frozen_at(compositions.get(arm, {}))
        live = None if start is None else _live(arm, arms, compositions)
        if start is not None and live is not None:
            frozen[arm] = (live, start)
    changed = [arm for arm in run.manifest.get("changed") or () if arm in arms]
    learners = [] if chosen is None else [chosen]
    learners += [arm for arm in changed if arm != reference and arm not in frozen]
    learners += [live for live, _ in frozen.values()]
    learners += [arm for arm in arms if arm != reference and _frozen_at(compositions.get(arm, {})) is None]
    never = [arm for arm in arms if _is(compositions.get(arm, {}).get("policy"), "never")]
    return Roles(reference, never[0] if never else None, frozen, learners[0] if learners else arms[0], changed)


def _is(component: Any, module: str) -> bool:
    """Does a component's `_target_` lie in a module of this name?"""
    target = component.get("_target_", "") if isinstance(component, Mapping) else ""
    return module in str(target).split(".")[:-1]


def _frozen_at(composition: Mapping[str, Any]) -> int | None:
    """The turn from which on an arm learns nothing: that of its freezing, or of its fork if it learns nothing after."""
    _, fork = _fork(composition)
    if composition.get("freeze") is not None:
        return int(composition["freeze_at"])
    return fork if _is(composition.get("curator"), "none") else None


def _fork(composition: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The arm that it forks from, and the turn."""
    arm, _, turn = str(composition.get("fork") or "").rpartition("@")
    return (arm, int(turn)) if turn else (None, None)


def _live(frozen: str, arms: list[str], compositions: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The arm that is the same but for the freezing; of a fork the arm that it forks from, if that is the same too."""
    composition = compositions[frozen]
    trunk, _ = _fork(composition)
    unshared = {"fork", "freeze", "freeze_at"} if composition.get("freeze") is not None else {"fork", "curator"}
    for arm in arms if trunk is None else [trunk]:
        other = compositions.get(arm, {})
        live = arm != frozen and _frozen_at(other) is None
        if live and all(composition.get(key) == other.get(key) for key in {*composition, *other} - unshared):
            return arm
    return None
