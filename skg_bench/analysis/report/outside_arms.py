"""Arms of somebody else's assistants: leaks, what nobody can judge, words that no model read, and controls."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from skg_bench.analysis.comparison.compare import ComparisonRow, compare
from skg_bench.analysis.counts.wording import interval, number
from skg_bench.analysis.report.sentences import Sentence, Tone, code, without_markup
from skg_bench.runfolder.hidden_hits import unmarked_turns
from skg_bench.runfolder.measured_run import instance_words, measured_run
from skg_bench.runfolder.run import Run
from skg_bench.runfolder.worded_arms import arms_in_words, arms_of_own_words, assistant_node


def outside_sentences(run: Run, reference: str | None) -> list[Sentence]:
    """Sentences that come before all others: leaks, bounds, prompts that no model read, controls."""
    arms = arms_in_words(run)
    tables = {arm: run.turns(arm, ["serving", "answer_correct"]) for arm in arms}
    judged = not run.manifest.get("log")
    return [
        *(sentence for arm, table in tables.items() for sentence in _leaks(arm, table)),
        *(sentence for arm, table in tables.items() if judged for sentence in _bounds(run, arm, table, reference)),
        *(sentence for arm in arms_of_own_words(run) if not judged for sentence in _unmarked(run, arm)),
        *(sentence for arm in arms for sentence in _unread(run, arm, reference)),
        *(Sentence(words, "caution") for words in [instance_words(run)] if words),
        *(sentence for arm in arms for sentence in _controls(run, arm)),
    ]


def imported_sentences(run: Run) -> list[Sentence]:
    """Sentences on results of an experiment that was made elsewhere: what is not known, and what intervals mean."""
    imported = run.manifest.get("imported")
    if not imported:
        return []
    unknown = "who answered, from memory or by a model, and why, is not known"
    return [Sentence(f"Made elsewhere: {unknown}. {imported['kinds']}", "plain")]


def _leaks(arm: str, table: pa.Table) -> Iterator[Sentence]:
    count, n = pc.sum(pc.equal(table["serving"].cast(pa.string()), "leaked")).as_py() or 0, len(table)
    if count:
        yield Sentence(
            f"{code(arm)} LEAKS: {count:,} of {n:,} answers ({number(count / n, 'share')}) were another user's, or "
            "were never given to this one, in whole, in part or in the prompt. They count as wrong.",
            "bad",
        )


def unjudged_answers(run: Run) -> list[str]:
    """A sentence, without markup, for each arm in words of which nobody can judge some answers. Of a replayed log none:
    no answer is judged there.
    """
    arms = [] if run.manifest.get("log") else arms_in_words(run)
    made = (_unjudged(run, arm, run.turns(arm, ["answer_correct"])) for arm in arms if run.numbers(arm))
    return [without_markup(about) for about in made if about]


def _unjudged(run: Run, arm: str, table: pa.Table) -> str:
    """Sentence on answers that nobody can judge; empty: there are none."""
    count, n = table["answer_correct"].null_count, len(table)
    if not count:
        return ""
    return (
        f"Nobody can judge {count:,} of {n:,} answers of {code(arm)} ({number(count / n, 'share')}): "
        f"{'the check does not know' if run.domain.in_words else 'their words have no reference'}."
    )


def _bounds(run: Run, arm: str, table: pa.Table, reference: str | None) -> Iterator[Sentence]:
    if reference is None or not run.finished or not (about := _unjudged(run, arm, table)):
        return
    if arm == reference:
        yield Sentence(f"{about} So no arm is compared with it by what answers are worth.", "caution")
        return
    if table["answer_correct"].null_count == len(table):
        mark = f" Let it return the {code('[answer ...]')} at the end of its model's words."
        hint = "" if run.domain.in_words else mark
        yield Sentence(f"{about} So its utility is not known.{hint}", "caution")
        return
    worst, best = (_supposed(run, arm, reference, right) for right in (False, True))
    ends = "; ".join(f"if all of them were {word}: {_size(row)}" for word, row in (("right", best), ("wrong", worst)))
    verdicts = {worst.difference.verdict, best.difference.verdict}
    sentence = f"The verdict depends on them: {best.difference.verdict}, or {worst.difference.verdict}"
    tone: Tone = "open"
    if len(verdicts) == 1:
        sentence, tone = f"Either way: {best.difference.verdict}", _TONES.get(best.difference.verdict, "open")
    yield Sentence(f"{about} Utility against {code(reference)}, {ends}. {sentence}.", tone)


def _unmarked(run: Run, arm: str) -> Iterator[Sentence]:
    """A caution where an arm of a replayed log gave words of its own that may be an earlier answer."""
    if count := unmarked_turns(run, arm):
        turns = len(run.turns(arm, ["turn"]))
        yield Sentence(
            f"{code(arm)} did not ask its model at {count:,} of {turns:,} turns, and its words had no reference there "
            f"({code('[answer ...]')}). Whether they are stored answers cannot be seen: they are not counted as such.",
            "caution",
        )


def _unread(run: Run, arm: str, reference: str | None) -> Iterator[Sentence]:
    """Cautions where an assistant in words asked its model several times, and where it paid for more than the model
    alone, with no earlier answer in its prompt.
    """
    of_words = arm in arms_of_own_words(run)
    in_words = run.domain.in_words  # there it reads them all
    if not reference or not of_words or in_words or run.manifest.get("log") or not run.finished:
        return
    mine, alone = (run.turns(name, ["serving", "tokens_in", "tokens_out"]) for name in (arm, reference))
    if not pc.all(_asked(alone)).as_py() or _llm(run, arm) != _llm(run, reference):
        return  # a reference that reuses answers, or asks another model, says nothing of prompts
    several = pc.greater(mine["tokens_out"], alone["tokens_out"])  # calls at one event have answers of one length
    longer = pc.and_(_asked(mine), pc.greater(mine["tokens_in"], alone["tokens_in"]))
    if count := pc.sum(several).as_py() or 0:
        yield Sentence(
            f"{code(arm)} asked its model more than once at {count:,} of {len(mine):,} turns, and paid for each call. "
            "All calls at one message get the same words of the simulated model. The metric LLM calls counts such a "
            "turn once.",
            "caution",
        )
    if count := pc.sum(pc.and_(longer, pc.invert(several))).as_py() or 0:
        yield Sentence(
            f"{code(arm)} paid for more words than the model alone at {count:,} of {len(mine):,} turns, without an "
            "earlier answer in its prompts. Of a prompt the simulated model reads references of answers alone "
            "([answer ...]): other words are worth nothing in this world, whatever they say.",
            "caution",
        )


def _llm(run: Run, arm: str) -> object:
    return run.manifest["compositions"].get(arm, {}).get("llm")


def _asked(table: pa.Table) -> pa.ChunkedArray:
    return pc.equal(table["serving"].cast(pa.string()), "llm")


_TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad"}


class _Supposed(Run):
    """A run in which all answers that nobody can judge are right, or wrong."""

    def __init__(self, run: Run, arms: Sequence[str], *, right: bool) -> None:
        super().__init__(run.path)
        self._only, self._right = list(arms), right

    @property
    def arms(self) -> list[str]:
        return self._only

    def turns(self, arm: str, columns: Sequence[str] | None = None, users: Sequence[int] | None = None) -> pa.Table:
        table = super().turns(arm, columns, users)
        if (name := "answer_correct") not in table.column_names:
            return table
        filled = table[name].fill_null(self._right)
        return table.set_column(table.column_names.index(name), table.schema.field(name), filled)


def _supposed(run: Run, arm: str, reference: str, right: bool) -> ComparisonRow:
    rows = compare([measured_run(_Supposed(run, [reference, arm], right=right))], reference).rows
    return next(row for row in rows if row.metric.name == "utility")


def _size(row: ComparisonRow) -> str:
    estimate = row.difference.estimate
    low, high = estimate.interval(new=True)
    mean = number(estimate.mean, row.metric.unit, signed=True)
    return f"{mean} ({interval(low, high, row.metric.unit, signed=True)})"


def _controls(run: Run, arm: str) -> Iterator[Sentence]:
    if assistant_node(run, arm).get("controls") is False:
        yield Sentence(
            f"{code(arm)} was not checked for memory outside of its state (controls=false): its figures may be others "
            "with other cohorts, or after a stop.",
            "caution",
        )
