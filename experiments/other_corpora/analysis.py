"""Arms of any experiment on several corpora: each beyond `never`, and whether its verdict hangs on the corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skg_bench.analysis.comparison.compare import compare
from skg_bench.analysis.comparison.over_corpora import DEPENDS, differ_in_corpus_alone
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

    Raises UsageError for runs that are unfinished, replay a log or have no `never`; for runs on one corpus, whatever it
    is called there, that differ in more than their seed; and for experiments that are on one corpus alone, or whose
    runs on two differ in more than the corpus, its vectors and seeds.
    """
    groups: dict[str, list[SeedRuns]] = {}
    for group in by_configuration(runs):
        needs_truth(group, "this table")
        if REFERENCE not in group.arms:
            raise UsageError(f"{group.path} has no arm {REFERENCE!r}, which all others are held against")
        groups.setdefault(str(group.config["experiment"]), []).append(group)
    for name, (first, *others) in groups.items():
        if not others:
            raise UsageError(
                f"all runs of {name} are on {corpus(first.config)}; make others too, such as with simulator=clinc150"
            )
        for at, other in enumerate(others, start=1):
            differ_in_corpus_alone(first, other)
            for earlier in groups[name][:at]:
                if _messages(earlier) == _messages(other):
                    raise UsageError(
                        f"{earlier.path} and {other.path} are both of {name} on {corpus(other.config)}, and no two "
                        "seeds of one configuration; give each run once, all of one size and code"
                    )
                if corpus(earlier.config) == corpus(other.config):
                    raise UsageError(
                        f"{earlier.path} and {other.path} have other messages, and both corpora are called "
                        f"{corpus(other.config)}; give them names, simulator.corpus=FOLDER, and run again"
                    )
    return {name: {corpus(group.config): group for group in known} for name, known in groups.items()}


def _messages(group: SeedRuns) -> object:
    """Digest of the corpus, whatever name it has."""
    return group.manifest["data"]["simulator"]


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
