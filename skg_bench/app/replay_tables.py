"""Values of arms that were replayed on a log, as tables."""

from math import isnan
from pathlib import Path

from skg_bench.analysis.policy_value.estimates import (
    STEP,
    STREAM_LEVEL,
    PolicyEstimates,
    PolicyValue,
    ReplayedPolicy,
    StreamCheck,
)
from skg_bench.analysis.policy_value.loop_values import ROUNDED
from skg_bench.analysis.report.estimates_page import EstimateParts, EstimateTable

STEP_WORDS = (
    "step: other decisions in the states that the log reached; it is not the value of an arm that learns, which would "
    "learn from its own decisions and come to other states"
)
VALUE_WORDS = (
    "values: means over turns, in which busy users weigh more; values of skg-bench compare are means over users"
)
_LOOP = "loop: the arm from the first turn on, learning, on the messages of the log"
_SNAPSHOT = (
    "snapshot: an arm with skillbook and scorer of the log at that turn of the user; it learns nothing from then on"
)
_ASSUMED = (
    "assumed: messages do not depend on answers; the worth of an answer does not depend on the way to it; the LLM is "
    "right as often about messages that a skill answered as about similar ones that it answered itself"
)
_INTERVALS = (
    "intervals: 95 %. Of values and differences: other users, clustered by user, Student's t. These users: what would "
    "have happened to the users of the log. Verdicts take both, not corrected for the number of targets"
)


def replay_parts(log: Path, estimates: PolicyEstimates) -> EstimateParts:
    """Values of replayed arms, the shares of their turns that are logged, and the calibration of the models."""
    against = f"difference to {estimates.reference}"
    known = {each.policy: each for each in (estimates.of_log, *estimates.replays) if each is not None}
    values = ["policy", "estimand", "value", against, "these users", "verdict"]
    shares = ["target", "known", "modelled", "unsupported", "offers invented", "band of the difference", "bounds"]
    calibrated = [
        [
            each.name, f"{each.rows:,}", f"{100 * each.predicted:.2f} %",
            f"{100 * each.observed:.2f} % +- {100 * each.error:.2g}",
            f"{100 * each.worst[1]:.1f} % predicted, {100 * each.worst[2]:.1f} % observed (z {each.worst[0]:+.1f})",
        ]
        for each in estimates.calibrations
    ]  # fmt: skip
    missing = f", {estimates.missing:,} answers not judged" if estimates.missing else ""
    stepped = any(value.estimand == STEP for value in estimates.values)
    loop = estimates.values[0].estimand == "loop"
    return [
        f"{log}: {estimates.rows:,} turns, {estimates.users or 0:,} users{missing}",
        EstimateTable(values, [_cells(value, known.get(value.policy)) for value in estimates.values]),
        EstimateTable(shares, [_knowledge(each, estimates.reference) for each in estimates.replays]),
        EstimateTable(["model", "rows", "predicted", "observed", "worst fifth"], calibrated),
        *(f"* {policy} is withheld: {reason}" for policy, reason in estimates.reasons),
        *(
            _LOOP if loop else _SNAPSHOT,
            *([STEP_WORDS] if stepped else []),
            VALUE_WORDS,
            _ASSUMED,
            _checked(estimates.stream),
            _INTERVALS,
        ),
    ]


def _checked(stream: StreamCheck | None) -> str:
    if stream is None or isnan(stream.p):
        why = "the log's policy decides by more than scores" if stream is None else "chance decided too few turns"
        return f"not checked: whether messages depend on answers, as {why}"
    return (
        f"checked: whether messages depend on answers, by {stream.decisions:,} turns at which chance decided whether a "
        f"skill answered: p {stream.p:.2g}; below {STREAM_LEVEL:g} all is withheld"
    )


def _cells(value: PolicyValue, known: ReplayedPolicy | None) -> list[str]:
    reference = value.verdict == "reference"
    gap = "-" if reference else with_ends(_summed(value.difference), _ends(value.difference_interval), "+")
    these = (
        "-"
        if reference or known is None or value.estimand == STEP
        else ends_in_words(_ends(known.these_users_difference), "+")
    )
    return [value.policy, value.estimand, with_ends(value.value, value.interval, ""), gap, these, value.verdict]


def _knowledge(each: ReplayedPolicy, reference: str) -> list[str]:
    shares = (each.known, each.modelled, each.unsupported, each.invented)
    band = "-" if each.policy == reference else ends_in_words(_ends(each.sensitivity), "+")
    return [each.policy, *(f"{100 * share:.2f} %" for share in shares), band, ends_in_words(each.bounds, "")]


def _ends(ends: tuple[float, float]) -> tuple[float, float]:
    return _summed(ends[0]), _summed(ends[1])


def _summed(difference: float) -> float:
    """A difference of sums; 0 if it is one of their order alone."""
    return 0.0 if abs(difference) <= ROUNDED else difference


def with_ends(value: float, ends: tuple[float, float], sign: str) -> str:
    """A value and its interval; NaN: `-`."""
    if isnan(value):
        return "-"
    return f"{value:{sign}.5g}" if isnan(ends[0]) else f"{value:{sign}.5g} ({ends_in_words(ends, sign)})"


def ends_in_words(ends: tuple[float, float], sign: str) -> str:
    """An interval; `sign`: of its ends, as in a format."""
    return "-" if isnan(ends[0]) else f"{ends[0]:{sign}.5g} to {ends[1]:{sign}.5g}"
