"""Conversations of LoCoMo as a table of tasks: turns that are told, then questions with their evidence as reference."""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of

FILE = "locomo10.json"
QUESTION = "Question: "
_NEVER_SAID = 5  # category of questions about what was never said
_TURN = re.compile(r"D:?(\d+):0*(\d+)")  # in eight questions written otherwise, or several in one
_START = datetime(2024, 1, 1, tzinfo=UTC)
_GREETING = "Hello."


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """A question about a conversation."""

    message: str
    answer: str  # empty: there is none
    category: str
    evidence: tuple[str, ...]  # messages that hold it
    answerable: bool  # else what it asks was never said, and right is to say so


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of two people, all of it told to one assistant."""

    name: str
    told: tuple[str, ...]
    questions: tuple[LocomoQuestion, ...]
    unknown: int  # questions without a turn that holds the evidence; they are left out


def locomo() -> Path:
    """The file of LoCoMo among the shared datasets.

    Raises UsageError with what to do if it is not there.
    """
    file = Path(os.environ.get("SKG_BENCH_SHARED", "../shared")) / "datasets" / "locomo" / FILE
    if not file.is_file():
        raise UsageError(
            f"{file} is absent; get {FILE} from github snap-research/locomo (CC BY-NC 4.0), then: export "
            "SKG_BENCH_SHARED=/path/to/shared, or give the file"
        )
    return file


def conversations(file: Path) -> Sequence[Conversation]:
    """All conversations of LoCoMo.

    Raises UsageError for a file of another format.
    """
    return parsed(file, "LoCoMo", _conversation)


def parsed(file: Path, name: str, conversation: Callable[[Any], Conversation]) -> Sequence[Conversation]:
    """Conversations of a JSON list, each from one of its documents; `name` is that of the corpus.

    Raises UsageError for a file of another format.
    """
    try:
        documents = json.loads(text_of(file))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}") from error
    if not isinstance(documents, list) or not documents:
        raise UsageError(f"{file} is not in {name}'s format: it is no list with a conversation in it")
    made = list[Conversation]()
    for place, document in enumerate(documents):
        try:
            made.append(conversation(document))
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise UsageError(
                f"{file}, entry {place}: it is not in {name}'s format: {type(error).__name__}: {error}"
            ) from error
    return made


def _conversation(document: Any) -> Conversation:
    sessions, by_id = document["conversation"], dict[str, str]()
    for number in range(1, len(sessions)):
        for turn in sessions.get(f"session_{number}", []):
            day = sessions[f"session_{number}_date_time"].rpartition(" on ")[2]
            photo = f" [photo: {turn['blip_caption']}]" if "blip_caption" in turn else ""
            text = " ".join(f"{turn['text']}{photo}".split())
            by_id[turn["dia_id"]] = f"{turn['speaker']} ({day}): {text}"
    questions = list(_questions(document["qa"], by_id))
    unknown = len(document["qa"]) - len(questions)
    return Conversation(str(document["sample_id"]), tuple(by_id.values()), tuple(questions), unknown)


def _questions(documents: Sequence[Any], by_id: dict[str, str]) -> Iterator[LocomoQuestion]:
    for each in documents:
        turns = (f"D{session}:{turn}" for session, turn in _TURN.findall(" ".join(each["evidence"])))
        evidence = tuple(dict.fromkeys(by_id[turn] for turn in turns if turn in by_id))
        if evidence:
            message = f"{QUESTION}{' '.join(each['question'].split())}"
            category = int(each["category"])
            answer, answerable = str(each.get("answer", "")), category != _NEVER_SAID
            yield LocomoQuestion(message, answer, f"category {category}", evidence, answerable)


def evidence_of(question: LocomoQuestion) -> str | None:
    """The reference by which evidence is counted; None: the question has none."""
    return "\n".join(question.evidence) or None


def write_tasks(
    made: Sequence[Conversation], file: Path, reference: Callable[[LocomoQuestion], str | None] = evidence_of
) -> int:
    """Writes the table of tasks; returns the turn from which on there are questions alone. Conversations begin with
    greetings, so that this turn is the same in all.
    """
    most = max(len(each.told) for each in made)
    with file.open("w", encoding="utf-8") as lines:
        for each in made:
            messages = [*[_GREETING] * (most - len(each.told)), *each.told]
            rows: list[tuple[str, str | None, str]] = [(message, None, "told") for message in messages]
            rows += [(asks.message, reference(asks), asks.category) for asks in each.questions]
            for place, (message, right, kind) in enumerate(rows):
                time = (_START + timedelta(minutes=place)).isoformat()
                row = {"user": each.name, "time": time, "message": message, "reference": right, "kind": kind}
                lines.write(json.dumps(row) + "\n")
    return most


def holds_evidence(_message: str, reference: str, words: str) -> bool:
    """Do words hold all messages of the evidence, a line each?"""
    return set(reference.split("\n")) <= set(words.split("\n"))
