"""Memories whose answers are read word for word: what each says rightly, says outdated or leaks, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass

from skg_bench.analysis.comparison.compare import ComparisonRow, compare
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, OneRun, needed
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run

RUN = "experiment=told users=60"
COMMAND = f"skg-bench run {RUN}; skg-bench experiment told RUN --write reports; with mem0: make peers-assistants"
REFERENCE = "never"
ARMS = {
    "never": "no memory",
    "oracle": "the earlier messages about what is asked, by the truth",
    "last_20": "the last 20 messages in the prompt",
    "everything": "all messages in the prompt, newest first",
    "stored": "skillbook of all answers, given again word for word",
    "book": "skillbook of all answers, the nearest in the prompt",
    "notes": "notebook of all messages that ask nothing, newest first",
    "nearest_3": "the three nearest messages in the prompt",
    "nearest_3_told": "the same, of messages that ask nothing",
    "mem0": "mem0 2.2.1, the three nearest messages with their answers in the prompt",
    "leaking": "notebook that four users share",
}
SHARES = ("recall", "detour", "outdated", "abstention", "leaks")
HEAD = (
    "arm", "memory", "told codes said rightly", "of those under a name", "of changed ones outdated",
    "not told, and said so", "codes of others", "tokens read a message", "USD for 1,000 messages", "utility - never",
    "new messages",
)  # fmt: skip


@dataclass(frozen=True)
class Memories:
    """Figures of a run's arms against the one without a memory."""

    run: Run
    rows: Mapping[tuple[str, str], ComparisonRow]  # by arm and metric; of the arm without a memory there is none

    @staticmethod
    def of(run: Run) -> "Memories":
        """Figures of a run."""
        compared = compare([measured_run(run)], REFERENCE).rows
        return Memories(run, {(row.arm, row.metric.name): row for row in compared})

    @property
    def arms(self) -> list[str]:
        """Arms in the order of ARMS."""
        return [arm for arm in ARMS if arm in self.run.arms]

    def share(self, arm: str, name: str) -> float:
        """Value of a metric."""
        return self.rows["leaking", name].reference_mean if arm == REFERENCE else self.rows[arm, name].mean

    def table(self) -> Table:
        """Table of what each memory says, and what that costs."""
        rows = []
        for arm in self.arms:
            turns = self.run.turns(arm, ["tokens_in", "cost_usd"]).to_pandas()
            gain = ("-", "-")
            if arm != REFERENCE:
                estimate = self.rows[arm, "utility"].difference.estimate
                ends = interval(*estimate.interval(new=True), "utility", signed=True)
                gain = number(estimate.mean, "utility", signed=True), ends
            shares = (number(self.share(arm, name), "share") for name in SHARES)
            costs = f"{turns['tokens_in'].mean():,.0f}", f"{1000 * turns['cost_usd'].mean():.2f}"
            rows.append((arm, ARMS[arm], *shares, *costs, *gain))
        return Table(f"Memories, {self.run.manifest['users']} users, {self.run.manifest['weeks']} weeks", HEAD, rows)

    def unexpected(self) -> list[str]:
        """Sentences on what is not as expected: without a memory nothing is known, and the shared notebook alone
        leaks.
        """
        known = self.share(REFERENCE, "recall")
        words = [f"{REFERENCE} says {number(known, 'share')} of told codes without a memory."] if known else []
        leaks = {arm: self.share(arm, "leaks") for arm in self.arms}
        strange = {arm: share for arm, share in leaks.items() if (share > 0) != (arm == "leaking")}
        of_others = [
            f"{arm} says codes of others at {number(share, 'share')} of questions." for arm, share in strange.items()
        ]
        return [*words, *of_others]


def analyse(run: OneRun) -> Report:
    """As expected if nothing is known without a memory, and codes of others are said by the shared notebook alone."""
    needed(run, [REFERENCE, "leaking"], "told")
    memories = Memories.of(run)
    wrong, table = memories.unexpected(), memories.table()
    how = (
        "The model says what stands in its prompt about the asked thing, the first sentence that does, and nothing "
        "else: what differs is the memory alone. Codes are judged exactly. Intervals are for new users and messages; "
        "four users of `leaking` are one unit."
    )
    words = "\n".join(f"* {line}" for line in (wrong or ["All is as expected."]))
    return Report([table, *wrong], page("Memories, word for word", COMMAND, how, words, table), holds=not wrong)


EXPERIMENT = Experiment(analyse)
