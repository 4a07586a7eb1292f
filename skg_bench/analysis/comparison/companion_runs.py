"""Learning effects, transfer matrix, contrasts and order control, from this run and companion runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from skg_bench.analysis.comparison.contrasts import ContrastResult, findings
from skg_bench.analysis.comparison.learning_effect import LearningEffect, learning_effect
from skg_bench.analysis.comparison.order_control import OrderControl, order_control
from skg_bench.analysis.comparison.transfer_matrix import TransferMatrix, hindsight, transfer_matrix
from skg_bench.analysis.counts.roles import roles
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.manifest import BESIDE
from skg_bench.runfolder.run import Run, flat

_ASKS = ("arms", "contrasts", "experiment", "learner", "question", "reference")  # what a run asks of its world


@dataclass(frozen=True, slots=True)
class CompanionRuns:
    """Each with the run that it comes from; None or empty: no run has the arms for it."""

    learning_effect: tuple[Run, LearningEffect] | None
    transfer_matrix: tuple[Run, TransferMatrix] | None
    findings: tuple[ContrastResult, ...]
    order_control: tuple[OrderControl, ...]


def companion_runs(run: Run, beside: Sequence[Run] = ()) -> CompanionRuns:
    """Effects from `run` and from runs in the same world: its users, requests and components, with other arms, or
    with `simulator.order=permuted`, the order control.

    Raises UsageError when a run beside is of another world, or has nothing to add.
    """
    if logs := [member for member in (run, *beside) if member.manifest.get("log")]:
        if beside:
            raise UsageError(
                f"{logs[0].path} replays a log, which does not say what answers were worth: nothing is added"
            )
        return CompanionRuns(None, None, (), ())
    for other in beside:
        _same_world(run, other)
    permuted = [member for member in (run, *beside) if _permuted(member)]
    in_time = [member for member in (run, *beside) if not _permuted(member)]
    live = [(member, learning_effect(member)) for member in in_time if _twins(member)]
    books = [(member, transfer_matrix(member)) for member in in_time if 0 in hindsight(member)[1]]
    askers = [member for member in in_time if member.config.get("contrasts")]
    pairs = [(member, other) for member, other in product(in_time, permuted) if member.arms == other.arms]
    useful = [member for member, _ in (*live, *books)] + askers + [member for pair in pairs for member in pair]
    for other in beside:
        if other not in useful:
            raise UsageError(
                f"{other.path} adds nothing: it has no arm frozen at a turn, no book=hindsight, no contrasts, and is "
                f"not {run.path} with simulator.order=permuted"
            )
    return CompanionRuns(
        max(live, key=lambda entry: len(entry[1].frozen), default=None),
        max(books, key=lambda entry: len(entry[1].books), default=None),
        tuple(finding for member in askers for finding in findings(member)),
        tuple(order_control(*pairs[0])) if pairs else (),
    )


def _twins(run: Run) -> bool:
    role = roles(run)
    return any(live == role.live for live, _ in role.frozen.values())


def _permuted(run: Run) -> bool:
    return bool((run.config.get("simulator") or {}).get("order") == "permuted")


def _same_world(run: Run, other: Run) -> None:
    worlds = [
        flat({key: value for key, value in side.config.items() if key not in (*BESIDE, *_ASKS)})
        for side in (run, other)
    ]
    for world in worlds:
        world.pop("simulator.order", None)
    if apart := sorted(key for key in {**worlds[0], **worlds[1]} if worlds[0].get(key) != worlds[1].get(key)):
        raise UsageError(f"{other.path} is of another world than {run.path}: they differ in {', '.join(apart)}")
