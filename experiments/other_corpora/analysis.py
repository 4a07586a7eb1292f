"""Arms of any experiment on several corpora: each beyond `never`, and whether its verdict hangs on the corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.over_corpora import DEPENDS
from skg_bench.analysis.comparison.seeds import SeedRuns, by_configuration
from skg_bench.analysis.counts.measure import PROVEN, Difference
from skg_bench.analysis.counts.tally import needs_truth
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.summary.saturation import corpus
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Runs
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run

COMMAND = "skg-bench experiment other_corpora RUN ... --write reports"
REFERENCE = "never"
KINDS = ("the same on all corpora", "shown on some corpora", DEPENDS, "open")


@dataclass(frozen=True)
class ArmByCorpus:
    """An arm's utility beyond `never`, on each corpus."""

    arm: str
    by_corpus: Mapping[str, Difference]

    @property
    def kind(self) -> str:
        """One of KINDS: where a verdict is shown, and whether two corpora show opposite ones."""
        shown = [each.verdict for each in self.by_corpus.values() if each.verdict in PROVEN]
        if len({*shown}) > 1:
            return DEPENDS
        every, some, _, nowhere = KINDS
        return nowhere if not shown else every if len(shown) == len(self.by_corpus) else some

    @property
    def verdict(self) -> str:
        """Verdict over all corpora, in words."""
        if self.kind in (DEPENDS, KINDS[-1]):
            return self.kind
        (word,) = {each.verdict for each in self.by_corpus.values() if each.verdict in PROVEN}
        rest = [name for name, each in self.by_corpus.items() if each.verdict not in PROVEN]
        return f"{word}, not shown on {' and '.join(rest)}" if rest else word


@dataclass(frozen=True)
class ExperimentByCorpus:
    """The arms of an experiment on several corpora."""

    experiment: str
    runs: Mapping[str, SeedRuns]  # by corpus; those of several seeds are read as one
    arms: Sequence[ArmByCorpus]

    @property
    def table(self) -> Table:
        """A row an arm."""
        rows = [(each.arm, *(_size(each.by_corpus[name]) for name in self.runs), each.verdict) for each in self.arms]
        return Table(self.experiment, ("arm", *self.runs, "verdict"), rows)

    @property
    def counts(self) -> tuple[str, ...]:
        """Numbers of arms by KINDS."""
        kinds = [each.kind for each in self.arms]
        return (self.experiment, str(len(kinds)), *(str(kinds.count(kind)) for kind in KINDS))


def gathered(runs: Sequence[Run]) -> dict[str, dict[str, SeedRuns]]:
    """Runs by experiment and corpus, the seeds of each read as one.

    Raises UsageError for runs that replay a log or have no `never`, for runs of one experiment and corpus that differ
    in more than their seed, and for experiments whose runs on several corpora have other users or weeks, or one corpus.
    """
    groups: dict[str, dict[str, SeedRuns]] = {}
    for group in by_configuration(runs):
        needs_truth(group, "this table")
        if REFERENCE not in group.arms:
            raise UsageError(f"{group.path} has no arm {REFERENCE!r}, which all others are held against")
        name, whose = str(group.config["experiment"]), corpus(group.config)
        known = groups.setdefault(name, {})
        if whose in known:
            raise UsageError(
                f"{known[whose].path} and {group.path} are both of {name} on {whose} and differ in more than their "
                "seed; give the runs of one size and configuration"
            )
        known[whose] = group
    for name, known in groups.items():
        if len(known) == 1:
            (whose,) = known
            raise UsageError(f"all runs of {name} are on {whose}; make others too, such as with simulator=clinc150")
        sizes = {(*(group.manifest[key] for key in ("users", "weeks")), *group.arms) for group in known.values()}
        if len(sizes) > 1:
            raise UsageError(
                f"runs of {name} have other users, weeks or arms on {' and '.join(known)}: what differs would not be "
                "the corpus alone; make them alike"
            )
    return groups


def on_one(group: SeedRuns) -> dict[str, Difference]:
    """Utility of each arm beyond `never`, as `skg-bench compare` of the runs gives it."""
    return {row.arm: row.difference for row in compare(group.runs, REFERENCE).rows if row.metric.name == "utility"}


def by_corpus(experiment: str, runs: Mapping[str, SeedRuns]) -> ExperimentByCorpus:
    """All arms of an experiment on each corpus."""
    measured = {name: on_one(group) for name, group in runs.items()}
    arms = [arm for arm in next(iter(runs.values())).arms if arm != REFERENCE]
    rows = [ArmByCorpus(arm, {name: each[arm] for name, each in measured.items()}) for arm in arms]
    return ExperimentByCorpus(experiment, runs, rows)


def _size(difference: Difference) -> str:
    e = difference.estimate
    span = interval(*e.interval(new=True), "utility", signed=True)
    return f"{number(e.mean, 'utility', signed=True)} ({span}), {difference.verdict}"


def _scope(experiments: Sequence[ExperimentByCorpus]) -> str:
    lines = []
    for each in experiments:
        sizes = (f"{len(group.runs)} {'seeds' if len(group.runs) > 1 else 'seed'} on {name}"
                 for name, group in each.runs.items())  # fmt: skip
        manifest = next(iter(each.runs.values())).manifest
        lines.append(f"{each.experiment}: {manifest['users']} users and {manifest['weeks']} weeks, {', '.join(sizes)}")
    return "; ".join(lines)


def analyse(runs: Runs) -> Report:
    """Analyses runs of one experiment or more, of each on two corpora or more; nothing expected is checked."""
    experiments = [by_corpus(name, known) for name, known in gathered(runs).items()]
    counts = Table("How many verdicts hold", ("experiment", "arms", *KINDS), [each.counts for each in experiments])
    about = (
        f"{_scope(experiments)}. Utility a request beyond `{REFERENCE}`, with 95 % intervals for new users and new "
        "requests; verdicts are corrected by Holm over the arms of a corpus. Users of all seeds are read together."
    )
    tables = [each.table for each in experiments]
    return Report([counts, *tables], page("Verdicts on several corpora", COMMAND, about, counts, *tables))


EXPERIMENT = Experiment(analyse)
