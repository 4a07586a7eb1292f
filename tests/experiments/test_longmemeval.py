"""LongMemEval: a made-up file in its format, evidence in prompts, and questions about what was never said."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.locomo.analysis import Evidence, played
from experiments.locomo.longmemeval import NOT_KNOWN, analyse, histories, right, types
from skg_bench.core.errors import UsageError


def _instance(number: int, kind: str = "multi-session", *, abstention: bool = False) -> dict[str, Any]:
    """An instance whose later session stands first, and is the same in all."""
    pet, town = f"zebu{number}", f"Town{number}"
    early = [{"role": "user", "content": f"My {pet}\nlives in {town}.", "has_answer": not abstention}]
    early += [{"role": "assistant", "content": "How nice!", "has_answer": False}]
    late = [{"role": "user", "content": f"It rains, {at}."} for at in range(25)]
    return {
        "question_id": f"q{number}{'_abs' if abstention else ''}", "question_type": kind,
        "question": f"Where does my {pet} live?", "answer": "You did not say." if abstention else town,
        "question_date": "2023/06/01 (Thu) 10:00", "haystack_session_ids": ["late", "early"],
        "haystack_dates": ["2023/05/21 (Sun) 02:21", "2023/05/20 (Sat) 23:00"], "haystack_sessions": [late, early],
        "answer_session_ids": [] if abstention else ["early"],
    }  # fmt: skip


def _file(folder: Path, *documents: Any) -> Path:
    (file := folder / "longmemeval_x.json").write_text(json.dumps(documents), "utf-8")
    return file


def test_histories_are_told_in_order_of_time_and_have_the_turns_that_answer(tmp_path: Path) -> None:
    unmarked = _instance(3)
    del unmarked["haystack_sessions"][1][0]["has_answer"]
    first, never_said, left_out = histories(_file(tmp_path, _instance(1), _instance(2, abstention=True), unmarked))
    assert first.told[:2] == (
        "user (2023/05/20 (Sat) 23:00): My zebu1 lives in Town1.", "assistant (2023/05/20 (Sat) 23:00): How nice!",
    )  # fmt: skip
    assert len(first.told) == 27
    (question,) = first.questions
    assert question.message == "Question: Where does my zebu1 live? (asked on 2023/06/01 (Thu) 10:00)"
    assert (question.answer, question.category, question.evidence) == ("Town1", "multi-session", first.told[:1])
    assert [each.answerable for each in never_said.questions] == [False]
    assert (left_out.questions, left_out.unknown) == ((), 1)


def test_evidence_is_counted_where_there_is_some_to_find(tmp_path: Path) -> None:
    documents = [_instance(1), _instance(2, abstention=True), _instance(3, "single-session-user"), _instance(4)]
    made = histories(_file(tmp_path, *documents))
    evidence = Evidence(played(made, tmp_path, ["workers=1", "salt=0"]), made)
    assert sorted(each.answer for each in evidence.questions.values()) == ["Town1", "Town3", "Town4"]
    assert evidence.held("never").sum() == evidence.held("last_20").sum() == 0
    assert evidence.held("everything").all()
    assert evidence.held("dict_3").all()
    assert evidence.spread(evidence.held("everything")).by_conversation.mean == 1
    by_type = {row[0]: row[1:] for row in types(evidence).rows}
    assert [row[0] for row in by_type.values()] == ["2", "1"]
    assert evidence.unexpected() == []


def test_tasks_have_answers_as_references_and_never_said_is_right_where_words_say_so(tmp_path: Path) -> None:
    own = {**_instance(3), "question": "Does my zebu live in Rome or in Bonn?", "answer": "Bonn"}
    file = _file(tmp_path, _instance(1), _instance(2, abstention=True), own)
    report = analyse(file, tasks=(table := tmp_path / "tasks.jsonl"))
    (sentence,) = report.parts
    assert str(sentence).startswith(f"{table}: 3 users with a question each. 1 answers stand in their own questions")
    with pytest.raises(UsageError, match="cannot be written"):
        analyse(file, tasks=tmp_path / "nowhere" / "tasks.jsonl")
    rows = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
    assert [row["reference"] for row in rows if row["reference"]] == ["Town1", NOT_KNOWN]
    assert right("", "Town1", "It lives in Town1.")
    assert not right("", "Town1", f"{NOT_KNOWN}.")
    assert right("", NOT_KNOWN, "I don\u2019t know that, sorry.")
    assert not right("", NOT_KNOWN, "You did not say.. but it is in Town2.")


@pytest.mark.parametrize(
    ("documents", "says"),
    [
        ([], "it is no list with a conversation in it"),
        ([{"conversation": {}}], "entry 0: it is not in LongMemEval's format: KeyError"),
        (
            [_instance(1), {**_instance(2), "haystack_dates": []}],
            "entry 1: it is not in LongMemEval's format: Value",
        ),
        ([_instance(1), {**_instance(1), "question_id": "other"}], "two instances end with the same turn and ask"),
    ],
)
def test_a_file_of_another_format_is_refused_with_its_entry(documents: list[Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says):
        histories(_file(tmp_path, *documents))
