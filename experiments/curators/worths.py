"""Worth of curators once their books stay, beside their controls, and what learning cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.curators.lineup import CONTROLS, Entry, cap_of, entries, model_of, world_of_run, wrong_of
from skg_bench.analysis.counts.measure import Difference, contrast, differences, identical, measure
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.outcomes import metrics_of
from skg_bench.analysis.counts.tally import LoggedEvents, Tally, events, tallies
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

AHEAD, BEHIND, SAME = ("better", "higher"), ("worse", "lower"), ("identical", "equal for every user")
CURVE = ("reflecting", "wrong_10", "wrong_25", "wrong_50")  # arms by how often their reflector errs


@dataclass(frozen=True)
class Row:
    """A curator in a regime of a run."""

    entry: Entry
    cap: str
    world: str
    model: str  # that it asks
    utility: Estimate  # a purchase, from the first after learning on
    against: Mapping[str, Difference]  # from the frozen book and from each control, on the same purchases
    usd: float  # that learning cost, a user
    tokens: float  # and what it read and wrote

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdicts against its controls."""
        return {name: gap.verdict for name, gap in self.against.items() if name in CONTROLS}

    @property
    def helps(self) -> bool:
        """Is it ahead of all its controls?"""
        return all(verdict in AHEAD for verdict in self.verdicts.values())

    @property
    def reading(self) -> str:
        """Sentence on controls that it is ahead of, and on others."""
        return reading(self.verdicts)


def reading(verdicts: Mapping[str, str]) -> str:
    """Words on verdicts against controls, together. A control that does the same as the arm shows that this part of the
    method changes nothing.
    """
    kinds = {"ahead of": AHEAD, "behind": BEHIND, "the same as": SAME}
    parts = [
        (words, [name for name, verdict in verdicts.items() if verdict in known]) for words, known in kinds.items()
    ]
    left = [name for name, verdict in verdicts.items() if verdict not in (*AHEAD, *BEHIND, *SAME)]
    phrases = [f"{words} {' and '.join(names)}" for words, names in [*parts, ("not told apart from", left)] if names]
    return (
        f"ahead of all its controls ({', '.join(verdicts)})"
        if len(parts[0][1]) == len(verdicts)
        else ", ".join(phrases)
    )


@dataclass(frozen=True)
class Worths:
    """Curators of a run, and arms by how often their reflector errs."""

    run: Run
    since: int  # purchase from which on books stay
    rows: Sequence[Row]
    erring: Mapping[str, tuple[Estimate, Difference | None]]  # by arm of CURVE: utility, and less that of no errors
    told: Difference | None  # the analysis alone, less the whole reflection

    @classmethod
    def of(cls, run: Run) -> "Worths":
        """Figures of a run.

        Raises UsageError for a run without curators beside their controls, or without purchases after learning.
        """
        since, lineup = run.config.get("freeze_at"), entries(run.arms)
        if not lineup or since is None:
            raise UsageError(
                f"{run.path} has no curator beside its controls whose book stays from some purchase on; make a run: "
                "skg-bench run experiment=curators profile=demo"
            )
        _check(run, lineup, since)
        requests, counted = events(run), _Counted(run, {})
        if not (requests.turn >= since).any():
            raise UsageError(f"{run.path} has no user with more than {since} purchases; run it for more weeks")
        utility = metrics_of(run, Utility.of(run.config))["utility"]
        pairs = [(entry.measured, arm) for entry in lineup for arm in entry.against.values()]
        erring = erring_arms(run)
        pairs += [(arm, erring[0]) for arm in erring[1:]]
        pairs += [("analysis", "reflecting")] if {"analysis", "reflecting"} <= {*run.arms} else []
        gaps = [
            contrast([utility], counted.of(a, since, requests), counted.of(b, since, requests), requests)["utility"]
            for a, b in pairs
        ]
        same = [identical(counted.of(a, since, requests), counted.of(b, since, requests)) for a, b in pairs]
        tested = dict(zip(pairs, differences(utility, gaps, same=same), strict=True))

        def worth(arm: str) -> Estimate:
            return measure([utility], counted.of(arm, since, requests), requests)["utility"]

        rows = [
            Row(
                entry, cap_of(run, entry.learns), world_of_run(run),
                model_of(run.manifest["compositions"][entry.learns]), worth(entry.measured),
                {name: tested[entry.measured, arm] for name, arm in entry.against.items()}, *paid(run, entry.learns),
            )
            for entry in lineup
        ]  # fmt: skip
        curve = {arm: (worth(arm), tested.get((arm, erring[0]))) for arm in erring}
        return cls(run, since, rows, curve, tested.get(("analysis", "reflecting")))


@dataclass(frozen=True)
class _Counted:
    """Tallies of arms, each read once."""

    run: Run
    known: dict[str, Tally]

    def of(self, arm: str, since: int, requests: LoggedEvents) -> Tally:
        if arm not in self.known:
            self.known[arm] = tallies(self.run, arm, requests, since=(since,))[since]
        return self.known[arm]


def _check(run: Run, lineup: Sequence[Entry], since: int) -> None:
    """Raise UsageError for a curator without a frozen book, an empty and a sham control beside it, for one that learns
    on, and for arms that are not what their names say.
    """
    for entry in lineup:
        if "frozen" not in entry.against:
            raise UsageError(
                f"{run.path} has {entry.measured!r} and no arm whose book stays as it began beside it; add "
                "'+arms.frozen=[curator=none]', and on the same log '+arms.frozen_given=[curator=none,mood=fresh]'"
            )
        if lacking := [name for name in ("empty", "sham") if name not in entry.against]:
            raise UsageError(
                f"{run.path} has {entry.measured!r} and no {' and no '.join(lacking)} control beside it; name them "
                "'empty_given' and 'CURATOR_sham_given', as conf/experiment/curators.yaml does"
            )
        compositions = run.manifest["compositions"]
        if not compositions[entry.against["empty"]]["policy"]["_target_"].endswith(".Never"):
            raise UsageError(f"{run.path}: {entry.against['empty']!r} serves skills; give it policy=never")
        if not compositions[entry.against["frozen"]]["curator"]["_target_"].endswith(".NoLearning"):
            raise UsageError(f"{run.path}: {entry.against['frozen']!r} learns; give it curator=none")
        if entry.measured != entry.learns and compositions[entry.measured]["fork"] != f"{entry.learns}@{since}":
            raise UsageError(
                f"{run.path}: {entry.measured!r} does not serve what {entry.learns!r} has learned; give it "
                f"fork={entry.learns}@{since}"
            )
        for name, says in (("sham", "any"), ("coin", "own")):
            control = entry.against.get(name)
            if control is not None and not _is_sham(
                _learner(compositions, control)["curator"], compositions[entry.learns]["curator"], says
            ):
                raise UsageError(
                    f"{run.path}: {control!r} is no {name} control of {entry.learns!r}; give it the same curator "
                    f"within curator=sham, with tags=coin and says={says}"
                )
        made = compositions[entry.learns]
        if (made["freeze"], made["freeze_at"]) != ("all", since):
            raise UsageError(
                f"{run.path}: {entry.learns!r} has freeze={made['freeze']} and freeze_at={made['freeze_at']}, so that "
                f"it learns on where others are measured; give it freeze=all and freeze_at={since}"
            )


def _learner(compositions: Mapping[str, Any], arm: str) -> Mapping[str, Any]:
    """Composition of the arm that learned what this one serves."""
    made: Mapping[str, Any] = compositions[arm]
    fork = made["fork"]
    return made if fork is None else compositions[fork.partition("@")[0]]


def _is_sham(control: Mapping[str, Any], curator: Mapping[str, Any], says: str) -> bool:
    """Is this the same curator, with ratings by a coin, whose texts are those that `says` names?"""
    if curator["_target_"].endswith(".MeteredCurator"):
        capped = {**control, "curator": None} == {**curator, "curator": None}
        return capped and _is_sham(control["curator"], curator["curator"], says)
    inside = (control["curator"], control["tags"], control["says"]) if control["_target_"].endswith(".Sham") else ()
    return inside == (curator, "coin", says)


def erring_arms(run: Run) -> list[str]:
    """Arms of CURVE, the one without errors first; none where that is missing, as others are held against it."""
    if CURVE[0] not in run.arms or wrong_of(run, CURVE[0]):
        return []
    return [arm for arm in CURVE if arm in run.arms]


def paid(run: Run, arm: str) -> tuple[float, float]:
    """USD and tokens of a user's learning jobs."""
    names = ["learning_cost_usd", "learning_tokens_in", "learning_tokens_out"]
    table, users = run.turns(arm, names), int(run.manifest["users"])
    usd, read, written = (float(table[name].to_numpy().sum()) for name in names)
    return usd / users, (read + written) / users


def difference_cells(gap: Difference) -> tuple[str, str, str, str]:
    """Difference, both intervals, and verdict."""
    e = gap.estimate
    these, new = (interval(*e.interval(new=new), "utility", signed=True) for new in (False, True))
    return number(e.mean, "utility", signed=True), these, new, gap.verdict
