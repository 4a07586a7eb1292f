"""The experiment on LoCoMo: a corpus in its format, evidence in prompts, and intervals of both kinds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.locomo.analysis import HEAD, JUDGE_HEAD, MISSES, PASSES, RIVAL, Evidence, grades, played
from experiments.locomo.corpus import Conversation, conversations, holds_evidence, locomo, write_tasks
from skg_bench.core.errors import UsageError

PETS, TOWNS = ("zebu", "okapi", "tapir", "quokka", "saiga"), ("Bergen", "Graz", "Lund", "Porto", "Gent")


def _document(number: int, turns: int) -> dict[str, Any]:
    """A conversation: in the first session pets are named, in the second one nothing is said."""
    said = [f"My {pet} {number} lives in {town}." for pet, town in zip(PETS, TOWNS, strict=True)]
    first = [{"speaker": "Ann", "dia_id": f"D1:{at}", "text": text} for at, text in enumerate(said, 1)]
    second = [{"speaker": "Bob", "dia_id": f"D2:{at}", "text": f"Well, {at}."} for at in range(1, turns)]
    first[0]["blip_caption"] = "a cow"
    asked: list[dict[str, Any]] = [
        {"question": f"Where does the {pet} {number} live?", "answer": town, "evidence": [f"D1:{at}"], "category": 4}
        for at, (pet, town) in enumerate(zip(PETS, TOWNS, strict=True), 1)
    ]
    asked += [
        {"question": "Which pets are there?", "answer": "a zebu, an okapi", "evidence": ["D1:1 D:1:02"], "category": 1},
        {"question": "Which bird?", "evidence": ["D1:1"], "category": 5, "adversarial_answer": "none"},
        {"question": "Nobody knows where it is said?", "answer": "x", "evidence": ["D", "D9:9"], "category": 3},
    ]
    sessions = {"session_1": first, "session_1_date_time": "1:56 pm on 8 May, 2023", "session_2": second}
    sessions |= {"session_2_date_time": "2:00 pm on 9 May, 2023", "speaker_a": "Ann", "speaker_b": "Bob"}
    return {"sample_id": f"conv-{number}", "conversation": sessions, "qa": asked}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Conversation]:
    file = tmp_path_factory.mktemp("corpus") / "locomo10.json"
    file.write_text(json.dumps([_document(number, 20 + number) for number in (11, 7, 9)]), "utf-8")
    return conversations(file)


@pytest.fixture(scope="module")
def evidence(made: Sequence[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return Evidence(played(made, tmp_path_factory.mktemp("locomo"), ["workers=1", "salt=0"]), made)


def test_conversations_are_read_with_their_evidence(made: Sequence[Conversation]) -> None:
    assert [each.name for each in made] == ["conv-11", "conv-7", "conv-9"]
    assert [each.unknown for each in made] == [1, 1, 1]
    first = made[0]
    assert first.told[0] == "Ann (8 May, 2023): My zebu 11 lives in Bergen. [photo: a cow]"
    assert first.told[-1] == "Bob (9 May, 2023): Well, 30."
    assert first.questions[1].evidence == ("Ann (8 May, 2023): My okapi 11 lives in Graz.",)
    assert first.questions[5].evidence == first.told[:2]  # two turns in one text, one of them written otherwise
    assert first.questions[5].answerable
    assert (first.questions[6].category, first.questions[6].answer) == ("category 5", "")
    assert not first.questions[6].answerable


def test_conversations_of_unequal_length_reach_their_questions_at_the_same_turn(
    made: Sequence[Conversation], tmp_path: Path
) -> None:
    file = tmp_path / "tasks.jsonl"
    most = write_tasks(made, file)
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for each in made:
        mine = [row for row in rows if row["user"] == each.name]
        assert [row["reference"] is None for row in mine] == [True] * most + [False] * len(each.questions)
        assert [row["message"] for row in mine[most - len(each.told) : most]] == list(each.told)
        assert {row["message"] for row in mine[: most - len(each.told)]} <= {"Hello."}


def test_evidence_is_in_a_prompt_where_all_of_its_lines_are() -> None:
    assert holds_evidence("", "a\nb", "x\nb\na")
    assert not holds_evidence("", "a\nb", "x\na")
    assert not holds_evidence("", "a", "xa")
    assert not holds_evidence("", "a", "")


def test_what_an_arm_holds_is_what_its_memory_shows(made: Sequence[Conversation], evidence: Evidence) -> None:
    assert len(evidence.questions) == 3 * 6
    messages = [question.message for question in evidence.questions.values()]
    assert evidence.column("never", "message") == messages
    assert evidence.held("never").sum() == evidence.held("last_20").sum() == 0  # 24 turns were told after the evidence
    assert evidence.held("everything").all()  # they fit into 3,000 words
    assert evidence.answered("everything").mean() == pytest.approx(5 / 6)
    for arm, most in (("nearest_3", 3), ("dict_3", 3), ("dict_20", 20)):
        said = [words if isinstance(words, str) else "" for words in evidence.column(arm, "said")]
        told = {message for each in made for message in each.told} | {"Hello.", ""}
        assert all(len(words.split("\n")) <= most and set(words.split("\n")) <= told for words in said)
        held = [set(q.evidence) <= set(w.split("\n")) for q, w in zip(evidence.questions.values(), said, strict=True)]
        assert evidence.held(arm).tolist() == held
        assert evidence.held(arm).mean() >= 5 / 6
    book = [words.split("\n")[0] for words in evidence.column("book_always", "said")]
    assert set(book) <= told - {""}  # what was asked before is not learned


def test_intervals_by_conversation_are_of_the_means_of_conversations(evidence: Evidence) -> None:
    values = np.arange(len(evidence.questions)) % 6 + 10.0 * np.array([user for user, _ in evidence.questions])
    spread = evidence.spread(values)
    assert spread.by_question.df == len(values) - 1
    assert spread.by_conversation.df == 2
    assert spread.by_conversation.mean == pytest.approx(12.5)
    assert spread.by_conversation.se == pytest.approx(np.std([2.5, 12.5, 22.5], ddof=1) / 3**0.5)
    assert spread.by_question.se == pytest.approx(values.std(ddof=1) / len(values) ** 0.5)
    assert spread.wider > 4
    assert spread.shown == (True, False)
    rows = [dict(zip(HEAD, row, strict=True)) for row in evidence.table().rows]
    assert [row["arm"] for row in rows] == evidence.arms
    assert len(evidence.pair_table().rows) == 28
    shown = [evidence.spread(evidence.held(a) - evidence.held(b)).shown for a, b in evidence.pairs]
    assert evidence.summary().rows[2][1:3] == tuple(str(sum(some)) for some in zip(*shown, strict=True))
    assert evidence.unexpected() == []


def test_the_judge_errs_as_often_as_is_said(evidence: Evidence) -> None:
    question = next(iter(evidence.questions.values()))
    for answer, share in ((question.answer, 1 - MISSES), ("Oslo", PASSES)):
        texts = [f"{number} {answer}" for number in range(2000)]
        says = grades([question] * len(texts), texts)
        assert says.mean() == pytest.approx(share, abs=0.03)
    assert not grades([question], [""]).any()


def test_with_all_questions_labelled_a_judges_errors_are_gone(evidence: Evidence) -> None:
    rows = {row[0]: dict(zip(JUDGE_HEAD, row, strict=True)) for row in evidence.judge_table().rows}
    assert list(rows) == [arm for arm in evidence.arms if arm != RIVAL]
    assert evidence.labelled.all()  # there are fewer than LABELS
    truth, corrected = JUDGE_HEAD[1], JUDGE_HEAD[4]
    assert all(row[corrected] == row[truth] for row in rows.values())
    assert any(row["by the judge"] != row[truth] for row in rows.values())
    assert rows["never"][truth] == f"-{100 * evidence.answered(RIVAL).mean():.1f} pp"


@pytest.mark.parametrize("text", ["[]", "{}", "[1]", '[{"conversation": {}}]', "not json"])
def test_another_format_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(UsageError, match=r"x\.json"):
        conversations(tmp_path / "x.json")


def test_without_the_file_it_is_said_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKG_BENCH_SHARED", str(tmp_path))
    with pytest.raises(UsageError, match=r"is absent; get locomo10\.json from github snap-research/locomo"):
        locomo()


def test_the_published_file_has_ten_conversations_and_1985_questions() -> None:
    try:
        read = conversations(locomo())
    except UsageError as error:
        pytest.skip(str(error))
    assert len(read) == 10
    assert sum(len(each.questions) + each.unknown for each in read) == 1985
    assert sum(each.unknown for each in read) == 4
