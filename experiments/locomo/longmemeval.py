"""The same on LongMemEval: histories of sessions, each with one question, as conversations."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.locomo.analysis import Evidence, played
from experiments.locomo.corpus import QUESTION, Conversation, LocomoQuestion, parsed, write_tasks
from skg_bench.analysis.counts.wording import number
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.core.errors import UsageError
from skg_bench.simulator.tasks.checks import holds, tokens

COMMAND = "skg-bench experiment locomo/longmemeval --file longmemeval_oracle.json"
NOT_KNOWN = "I do not know"
_SAYS_SO = ("do not know", "don't know", "not mentioned", "did not mention", "didn't mention", "no information")
_NEVER_SAID = "_abs"  # end of the id of a question about what was never said


def histories(file: Path) -> Sequence[Conversation]:
    """All instances that have a question with evidence, or about what was never said.

    Raises UsageError for a file of another format, and for two instances that logs would not tell apart.
    """
    made = parsed(file, "LongMemEval", _history)
    ends = Counter((each.told[-1], asks.message) for each in made for asks in each.questions)
    if twice := next((asks for (_, asks), times in ends.items() if times > 1), None):
        raise UsageError(f"{file}: two instances end with the same turn and ask {twice!r}; leave one of them out")
    return made


def _history(document: Any) -> Conversation:
    """Sessions in order of their dates, and the question: without evidence it is left out, unless it has none."""
    messages, evidence = list[str](), list[str]()
    for day, session in sorted(zip(document["haystack_dates"], document["haystack_sessions"], strict=True), key=_date):
        for turn in session:
            messages.append(f"{turn['role']} ({day}): {' '.join(turn['content'].split())}")
            if turn.get("has_answer"):
                evidence.append(messages[-1])
    name, answerable = str(document["question_id"]), not str(document["question_id"]).endswith(_NEVER_SAID)
    message = f"{QUESTION}{' '.join(document['question'].split())} (asked on {document['question_date']})"
    question = LocomoQuestion(
        message, str(document["answer"]) if answerable else "", str(document["question_type"]),
        tuple(dict.fromkeys(evidence)) if answerable else (), answerable,
    )  # fmt: skip
    known = bool(messages) and (bool(evidence) or not answerable)
    return Conversation(name, tuple(messages), (question,) if known else (), int(not known))


def _date(session: tuple[str, Any]) -> str:
    return session[0]  # year first


def right(_message: str, reference: str, words: str) -> bool:
    """Do words hold the answer or, where nothing was said, say so? A check of tasks."""
    if reference == NOT_KNOWN:
        return any(holds(words, each) for each in _SAYS_SO)
    return holds(words, reference)


def reference_of(question: LocomoQuestion) -> str | None:
    """Reference for `right`. None: who repeats the question would say it, or there is no word."""
    if not question.answerable:
        return NOT_KNOWN
    return question.answer if tokens(question.answer) and not holds(question.message, question.answer) else None


def analyse(
    file: Annotated[Path, typer.Option(help="A file of LongMemEval, such as longmemeval_oracle.json.")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as workers=2.")] = None,
    tasks: Annotated[Path | None, typer.Option(help="Write tasks with their answers here, and run nothing.")] = None,
    out: Folder = None,
) -> Report:
    """Counts how often the evidence for a question stands in the prompt. As expected if there is none without a memory,
    and no less in a longer list.
    """
    read = histories(file)
    made = [each for each in read if each.questions]
    if not made:
        raise UsageError(f"{file} has no question with a turn that has_answer, and none about what was never said")
    if tasks is not None:
        return Report([_tasks_written(made, tasks)], "")
    with tempfile.TemporaryDirectory() as folder:
        place = out or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        evidence = Evidence(played(made, place, overrides or ()), made)
        parts: list[Table | str] = [evidence.table(), evidence.summary(), evidence.pair_table(), types(evidence)]
        wrong = evidence.unexpected()
    never_said = sum(not asks.answerable for each in made for asks in each.questions)
    how = (
        "Each history is told to one assistant, which then learns nothing more, and is asked its question. *Evidence*: "
        f"the prompt holds all turns with `has_answer`. {len(read) - len(made)} questions have no such turn, and are "
        f"left out; {never_said} about what was never said are asked and not counted."
    )
    lines = "\n".join(f"* {line}" for line in wrong or ["All is as expected."])
    text = page("Evidence in the prompt, on LongMemEval", COMMAND, how, lines, *parts)
    return Report([*parts, *wrong], text, holds=not wrong)


def _tasks_written(made: Sequence[Conversation], file: Path) -> str:
    """Sentence on a table of tasks, which is written."""
    try:
        write_tasks(made, file, reference_of)
    except OSError as error:
        raise UsageError(f"--tasks {file} cannot be written: {error.strerror}; name a file in a folder") from error
    unchecked = sum(reference_of(asks) is None for each in made for asks in each.questions)
    return (
        f"{file}: {len(made):,} users with a question each. {unchecked} answers stand in their own questions or have "
        "no word; nothing is checked there."
    )


def types(evidence: Evidence) -> Table:
    """Table of evidence by the type of question."""
    kinds = [each.category for each in evidence.questions.values()]
    rows = list[tuple[str, ...]]()
    for kind in sorted({*kinds}):
        mine = [each == kind for each in kinds]
        held = (number(float(evidence.held(arm)[mine].mean()), "share") for arm in evidence.arms)
        rows.append((kind, f"{sum(mine):,}", *held))
    return Table("Evidence by type of question", ("type", "questions", *evidence.arms), rows)


EXPERIMENT = Experiment(analyse)
