"""Memories on LoCoMo: evidence in the prompt, with intervals by conversation beside those by question."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import typer

import skg_bench
from experiments.locomo.corpus import Conversation, LocomoQuestion, conversations, locomo, write_tasks
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.labels.word_differences import UserMean, corrected_difference
from skg_bench.analysis.statistics.inference import PairedT, paired_t
from skg_bench.analysis.statistics.intervals import ALPHA, POWER, t_quantile
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.core.grid import F64, Bool
from skg_bench.runfolder.run import Run
from skg_bench.simulator.tasks.checks import holds

COMMAND = "skg-bench experiment locomo --write reports; with mem0: make peers-assistants"
ARMS = {
    "never": "no memory",
    "last_20": "the last 20 messages",
    "everything": "the newest 3,000 words of all messages",
    "book": "skillbook of all answers, the nearest message, if it is near enough",
    "book_always": "the same, however far the nearest is",
    "nearest_3": "the 3 nearest messages",
    "nearest_20": "the 20 nearest messages",
    "mem0_3": "mem0 2.2.1, the 3 memories that it finds",
    "mem0_20": "mem0 2.2.1, the 20 memories that it finds",
    "dict_3": "the 3 messages with the rarest words in common",
    "dict_20": "the 20 messages with the rarest words in common",
}
HEAD = (
    "arm", "in the prompt", "evidence", "by question", "by conversation", "times as wide", "answer, word for word",
    "tokens read a question",
)  # fmt: skip
SUMMARY_HEAD = ("pairs of memories", "by question", "by conversation", "times as wide, median (range)")
MEM0 = {"mem0_3": "nearest_3", "mem0_20": "nearest_20"}  # and the rule that it has
RIVAL, LABELS = "nearest_3", 200  # of a judge's table: whom arms are held against, and questions that are labelled
MISSES, PASSES = 0.1, 0.2  # shares of right answers that the judge calls wrong, and of others that it calls right
_LEAST = 10  # labels; with fewer there is nothing to correct with
JUDGE_HEAD = (
    "arm", f"answer, word for word, beyond {RIVAL}", "by the judge", "by conversation", f"corrected by {LABELS} labels",
    "by conversation, corrected", "labelled, of questions with other words",
)  # fmt: skip
PAIR_HEAD = ("difference", "evidence", "by question", "by conversation", "times as wide", "shown")


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean with an interval of each kind."""

    by_question: PairedT
    by_conversation: PairedT  # of the conversations' means

    @property
    def wider(self) -> float:
        """Width of the interval by conversation over that by question."""
        first, second = (_width(each) for each in (self.by_question, self.by_conversation))
        return second / first if first else float("nan")

    @property
    def shown(self) -> tuple[bool, bool]:
        """Is 0 outside of the interval by question, and outside of that by conversation?"""
        first, second = ((low > 0) | (high < 0) for low, high in map(_ends, (self.by_question, self.by_conversation)))
        return bool(first), bool(second)

    def cells(self, *, signed: bool = False) -> tuple[str, ...]:
        """Mean, both intervals, and how much wider the second is."""
        ends = (interval(*_ends(each), "share", signed=signed) for each in (self.by_question, self.by_conversation))
        wider = "-" if np.isnan(self.wider) else f"{self.wider:.1f}"
        return (number(self.by_question.mean, "share", signed=signed), *ends, wider)


@dataclass(frozen=True)
class Evidence:
    """Prompts of a run's arms at the questions that have an answer."""

    run: Run
    made: Sequence[Conversation]

    @cached_property
    def questions(self) -> Mapping[tuple[int, int], LocomoQuestion]:
        """Questions by user and turn; a user is known by the last message that is told, and the first question."""
        most = max(len(each.told) for each in self.made)
        known = {(each.told[-1], each.questions[0].message): each for each in self.made}
        turns = self.run.turns(self.run.arms[0], ["user", "turn", "message"]).to_pandas()
        last, first = (turns[turns["turn"] == turn].set_index("user")["message"] for turn in (most - 1, most))
        return {
            (int(user), most + place): question
            for user in last.index
            for place, question in enumerate(known[last[user], first[user]].questions)
            if question.answerable
        }

    def column(self, arm: str, name: str) -> list[Any]:
        """Column of the turn log at the questions."""
        turns = self.run.turns(arm, ["user", "turn", name]).to_pandas()
        keys = zip(turns["user"].tolist(), turns["turn"].tolist(), strict=True)
        values = dict(zip(keys, turns[name].tolist(), strict=True))
        return [values[key] for key in self.questions]

    def held(self, arm: str) -> F64:
        """Does the prompt hold all evidence? 1 or 0 for each question."""
        return np.array(self.column(arm, "answer_correct"), np.float64)

    def words(self, arm: str) -> list[str]:
        """Words in the prompts."""
        return [words if isinstance(words, str) else "" for words in self.column(arm, "said")]

    def answered(self, arm: str) -> F64:
        """Does the answer stand in the prompt word for word? 1 or 0 for each question."""
        answers = zip(self.words(arm), self.questions.values(), strict=True)
        return np.array([holds(words, each.answer) for words, each in answers], np.float64)

    def judged(self, arm: str) -> F64:
        """The same by a judge that errs."""
        return grades(list(self.questions.values()), self.words(arm))

    @property
    def labelled(self) -> Bool:
        """Questions whose answers people label: a random sample of LABELS."""
        order = np.argsort([_chance(f"label {user} {each.message}") for (user, _), each in self.questions.items()])
        labelled = np.zeros(len(order), np.bool_)
        labelled[order[:LABELS]] = True
        return labelled

    def judge_table(self) -> Table:
        """Table of the same difference in truth, by a judge that errs, and with its errors taken out by labels."""
        user = np.array([user for user, _ in self.questions])
        rows = list[tuple[str, ...]]()
        for arm in self.arms:
            if arm == RIVAL:
                continue
            truth, says = (grade(arm) - grade(RIVAL) for grade in (self.answered, self.judged))
            differ = np.array([a != b for a, b in zip(self.words(arm), self.words(RIVAL), strict=True)])
            alone = corrected_difference(user, says, says, differ, differ)
            n_labelled, enough = (self.labelled & differ).sum(), min(_LEAST, differ.sum())
            corrected = ("-", "-")
            if n_labelled >= enough:
                corrected = _cells(corrected_difference(user, says, truth, self.labelled, differ))
            mean = number(self.spread(truth).by_conversation.mean, "share", signed=True)
            counts = f"{n_labelled} of {differ.sum():,}"
            rows.append((arm, mean, *_cells(alone), *corrected, counts))
        return Table(f"A judge that errs, against {RIVAL}", JUDGE_HEAD, rows)

    def spread(self, values: F64) -> Spread:
        """Mean of values of the questions."""
        users = np.array([user for user, _ in self.questions])
        means = np.array([values[users == user].mean() for user in np.unique(users)])
        return Spread(paired_t(values), paired_t(means))

    @property
    def arms(self) -> list[str]:
        """Arms in the order of ARMS."""
        return [arm for arm in ARMS if arm in self.run.arms]

    def table(self) -> Table:
        """Table of what stands in the prompts."""
        rows = [
            (
                arm, ARMS[arm], *self.spread(self.held(arm)).cells(), number(float(self.answered(arm).mean()), "share"),
                f"{np.mean(self.column(arm, 'tokens_in')):,.0f}",
            )
            for arm in self.arms
        ]  # fmt: skip
        return Table(f"Evidence, {len(self.questions):,} questions, {len(self.made)} conversations", HEAD, rows)

    @cached_property
    def pairs(self) -> Mapping[tuple[str, str], Spread]:
        """Differences of all pairs of memories, the one with more evidence first; mem0 is left out, which finds what
        the nearest messages are.
        """
        held = {arm: self.held(arm) for arm in self.arms if arm not in ("never", *MEM0)}
        order = sorted(held, key=lambda arm: -held[arm].mean())
        return {(a, b): self.spread(held[a] - held[b]) for a, b in combinations(order, 2)}

    def pair_table(self) -> Table:
        """Table of the differences."""
        words = {(True, True): "by both", (True, False): "by question alone", (False, True): "by conversation alone"}
        rows = [
            (f"{a} - {b}", *spread.cells(signed=True), words.get(spread.shown, "by neither"))
            for (a, b), spread in self.pairs.items()
        ]
        return Table("Differences of all pairs", PAIR_HEAD, rows)

    def summary(self) -> Table:
        """Table of what so many conversations can show."""
        spreads = [(each.by_question, each.by_conversation) for each in self.pairs.values()]
        widths = [f"{100 * median(map(_width, some)):.1f} pp" for some in zip(*spreads, strict=True)]
        least = [f"{100 * median(map(_detectable, some)):.1f} pp" for some in zip(*spreads, strict=True)]
        shown = [str(sum(some)) for some in zip(*(each.shown for each in self.pairs.values()), strict=True)]
        wider = [each.wider for each in self.pairs.values()]
        rows = [
            ("width of the interval, median", *widths, f"{median(wider):.1f} ({min(wider):.1f} to {max(wider):.1f})"),
            ("difference that is shown in 80 % of cases, median", *least, ""),
            ("differences that are shown", *shown, ""),
        ]
        return Table(f"All {len(spreads)} pairs", SUMMARY_HEAD, rows)

    def rules(self) -> list[str]:
        """Sentences on how often mem0 finds what its rule does, if it is there."""
        lines = list[str]()
        for arm, rule in MEM0.items():
            if arm in self.run.arms:
                mine, theirs = ([sorted(words.split("\n")) for words in self.words(each)] for each in (arm, rule))
                same = number(float(np.mean([a == b for a, b in zip(mine, theirs, strict=True)])), "share")
                lines.append(f"{arm} finds the messages of {rule} at {same} of questions.")
        return lines

    def unexpected(self) -> list[str]:
        """Sentences on what is not as expected: no evidence without a memory, and no less in a longer list."""
        held = {arm: float(self.held(arm).mean()) for arm in self.arms}
        lines = [f"never holds evidence of {number(held['never'], 'share')} of questions."] if held["never"] else []
        pairs = (("nearest_3", "nearest_20"), ("dict_3", "dict_20"), ("last_20", "everything"))
        return lines + [f"{more} holds less than {less}." for less, more in pairs if held[more] < held[less]]


def grades(questions: Sequence[LocomoQuestion], words: Sequence[str]) -> F64:
    """Grades 1 or 0 of a judge that errs in MISSES and PASSES of cases, and grades equal words to a question alike. It
    calls no words not right.
    """
    answers = list(zip(questions, words, strict=True))
    right = np.array([holds(each, question.answer) for question, each in answers])
    chance = np.array([_chance(f"{question.message}\n{each}") for question, each in answers])
    says: Bool = np.where(right, chance >= MISSES, chance < PASSES) & np.array([bool(each) for each in words])
    return says.astype(np.float64)


def _chance(text: str) -> float:
    """A number in [0, 1) that a text has."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64


def _cells(mean: UserMean) -> tuple[str, str]:
    """A difference with its interval."""
    share = mean.share
    return number(share.mean, "share", signed=True), interval(share.low, share.high, "share", signed=True)


def _ends(test: PairedT) -> tuple[float, float]:
    return test.limit(ALPHA / 2), test.limit(1 - ALPHA / 2)


def _width(test: PairedT) -> float:
    low, high = _ends(test)
    return high - low


def _detectable(test: PairedT) -> float:
    return (t_quantile(1 - ALPHA / 2, test.df) + t_quantile(POWER, test.df)) * test.se


def played(made: Sequence[Conversation], folder: Path, overrides: Sequence[str]) -> Run:
    """A run on conversations; memories stop to learn at the first question."""
    table = folder / "tasks.jsonl"
    most = write_tasks(made, table)
    world = (f"path={table}", "columns.intent=kind", "check=experiments.locomo.corpus.holds_evidence", "rated=0")
    always = f"fork=book@{most}, serving=prompted, router=recipe, curator=everything, policy=always"
    words = ["experiment=locomo", *(f"simulator.{text}" for text in world), "llm.llm.script=echo"]
    words.append(f"+arms.book_always=[{always}]")
    return skg_bench.run([*words, "freeze=all", f"freeze_at={most}", f"out={folder / 'run'}", *overrides])


def analyse(
    overrides: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as workers=2.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="locomo10.json. Default: $SKG_BENCH_SHARED/datasets/locomo, or ../shared.")
    ] = None,
    out: Folder = None,
) -> Report:
    """Makes its own run, two minutes of CPU time. As expected if there is no evidence without a memory, and no less in
    a longer list.
    """
    made = conversations(file or locomo())
    with tempfile.TemporaryDirectory() as folder:
        place = out or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        evidence = Evidence(played(made, place, overrides or ()), made)
        tables = [evidence.table(), evidence.judge_table(), evidence.summary(), evidence.pair_table()]
        wrong, rules = evidence.unexpected(), evidence.rules()
    left_out = sum(each.unknown for each in made)
    how = (
        "Each conversation is told to one assistant, which then learns nothing more, and is asked its questions. "
        "*Evidence*: the prompt holds all turns that the authors of LoCoMo name for the answer, which needs no judge. "
        f"No model answers here. {left_out} questions name no turn that there is, and are left out; those without an "
        "answer (category 5) are asked and not counted. Intervals of 95 %: Student's t on questions, and on means of "
        "conversations. The judge is a script that errs as often as is set: it calls "
        f"{number(MISSES, 'share')} of right answers wrong, and {number(PASSES, 'share')} of others right."
    )
    lines = [*(wrong or ["All is as expected."]), *rules]
    text = page("Evidence in the prompt, on LoCoMo", COMMAND, how, "\n".join(f"* {line}" for line in lines), *tables)
    return Report([*tables, *rules, *wrong], text, holds=not wrong)


EXPERIMENT = Experiment(analyse)
