"""Dialogues are read in their publishers' forms; their users are pseudo-users, and say so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.simulator.recorded import Recorded
from tests.simulator.logs import readers, recorded, replayed


def population(simulator: Recorded) -> Any:
    return readers(simulator).events


def rated(simulator: Recorded) -> dict[str, int]:
    """Rating of each message's answer, messages being distinct."""
    events = population(simulator)
    row, turn = np.nonzero(np.arange(events.text.shape[1]) < events.n[:, None])
    ratings = replayed(simulator).rating[row, turn]
    messages = [simulator.messages[i] for i in events.text[row, turn]]
    return dict(zip(messages, ratings.tolist(), strict=True))


def speak(speaker: str, text: str, *active: tuple[str, str]) -> dict[str, Any]:
    frames = [{"service": service, "state": {"active_intent": intent}} for service, intent in active]
    return {"speaker": speaker, "utterance": text, "frames": frames}


DIALOGUE = {
    "dialogue_id": "1_00000",
    "turns": [
        speak("USER", "a table for two", ("Restaurants_2", "ReserveRestaurant")),
        speak("SYSTEM", "Where?"),
        speak("USER", "and the weather", ("Restaurants_2", "NONE"), ("Weather_1", "GetWeather")),
        speak("SYSTEM", "Sunny."),
        speak("USER", "thanks", ("Weather_1", "NONE")),
    ],
}  # fmt: skip


def test_a_turn_of_sgd_has_its_first_active_intent_and_the_answer_after_it(tmp_path: Path) -> None:
    (tmp_path / "dialogues_001.json").write_text(json.dumps([DIALOGUE, {"dialogue_id": "torn"}]), "utf-8")
    simulator = recorded(tmp_path, "sgd")
    events = population(simulator)
    assert [simulator.messages[i] for i in events.text[0]] == ["a table for two", "and the weather", "thanks"]
    kinds = [simulator.types[i] if i >= 0 else None for i in events.truth.type[0]]
    assert kinds == ["Restaurants.ReserveRestaurant | answer 1", "Weather.GetWeather | answer 1", None]
    assert np.diff(events.time[0]).tolist() == [60, 60]
    record = simulator.record
    assert record.pseudo_users
    assert "pseudo-users" in record.assumes["users"]
    assert "invented" in record.assumes["time"]
    assert record.left_out == {"no dialogue of the published form in dialogues_001.json": {"rows": 1, "first": [2]}}


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        ([("Hotels_1", "FindHotel"), ("Weather_1", "GetWeather")], "Hotels.FindHotel | answer 1"),
        ([("Weather_1", "GetWeather"), ("Hotels_1", "FindHotel")], "Weather.GetWeather | answer 1"),
        ([("Weather_1", "NONE"), ("Hotels_1", "FindHotel"), ("Music_2", "PlaySong")], "Hotels.FindHotel | answer 1"),
    ],
)
def test_of_several_active_intents_of_a_turn_of_sgd_the_first_one_counts(
    tmp_path: Path, active: list[tuple[str, str]], expected: str
) -> None:
    dialogue = {"dialogue_id": "1_00000", "turns": [speak("USER", "both", *active), speak("SYSTEM", "Yes.")]}
    (tmp_path / "dialogues_001.json").write_text(json.dumps([dialogue]), "utf-8")
    simulator = recorded(tmp_path, "sgd")
    assert simulator.types[population(simulator).truth.type[0, 0]] == expected


USS = """USER\ttea please\tREQUEST\t3,3,3
SYSTEM\tGreen?\tREQUEST\t
USER\tblack\tINFORM\t4,3,5,4
SYSTEM\tHere.\tOFFER\t
USER\tno, black\tINFORM\t2,1,2
USER\tOVERALL\t\t1,2,2

USER\thello\tGREET\t3,3,3
SYSTEM\tHi.\tGREET\t
USER\tbye\tGOODBYE\t3,3,4
nonsense
"""


def test_an_answer_of_uss_is_rated_by_the_score_of_the_users_next_line(tmp_path: Path) -> None:
    path = tmp_path / "SGD.txt"
    path.write_text(USS, "utf-8")
    simulator = recorded(path, "uss", dialogues_per_user=1)
    assert rated(simulator) == {"tea please": 0, "black": 2, "no, black": -1, "hello": 1, "bye": -1}
    assert simulator.record.left_out == {"no line of the published form": {"rows": 1, "first": [11]}}
    log = simulator._log
    assert set(log.delay[log.rating >= 0].tolist()) == {60}


def test_dialogues_go_to_pseudo_users_by_key_one_a_day(tmp_path: Path) -> None:
    dialogues = [
        {"dialogue_id": str(i), "turns": [speak("USER", f"m{i}", ("A_1", "B")), speak("SYSTEM", "x")]}
        for i in range(200)
    ]
    (tmp_path / "dialogues_001.json").write_text(json.dumps(dialogues), "utf-8")
    simulator = recorded(tmp_path, "sgd", dialogues_per_user=20)
    events = population(simulator)
    assert simulator.record.users == 10
    assert (events.n > 8).all()
    for row, n in enumerate(events.n):
        assert (events.time[row, :n] // 86_400).tolist() == list(range(n))
    (tmp_path / "dialogues_001.json").write_text(json.dumps(dialogues[::-1]), "utf-8")
    again = population(recorded(tmp_path, "sgd", dialogues_per_user=20))
    assert (again.text == events.text).all()


def test_files_of_another_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no dialogues_\*\.json"):
        recorded(tmp_path, "sgd").record  # noqa: B018
    with pytest.raises(UsageError, match="is a folder; name a file"):
        recorded(tmp_path, "uss").record  # noqa: B018
    (tmp_path / "dialogues_001.json").write_text("[{", "utf-8")
    with pytest.raises(UsageError, match="is no whole JSON file"):
        recorded(tmp_path, "sgd").record  # noqa: B018
    (tmp_path / "x.txt").write_text("a\nb\n", "utf-8")
    with pytest.raises(UsageError, match=r"holds no turn .*no line of the published form: 2"):
        recorded(tmp_path / "x.txt", "uss").record  # noqa: B018


# ------------------------------------------------------------------------------------------- as published


def test_the_published_sgd_is_read_whole(published: Callable[[str], Path]) -> None:
    folder = published("sgd") / "dev"
    simulator = recorded(folder, "sgd")
    utterances = [
        turn["utterance"]
        for file in sorted(folder.glob("dialogues_*.json"))
        for dialogue in json.loads(file.read_text("utf-8"))
        for turn in dialogue["turns"]
        if turn["speaker"] == "USER"
    ]
    assert simulator.record.left_out == {}
    assert simulator.record.turns == len(utterances)
    assert set(simulator.messages) == set(utterances)
    assert simulator.record.knows == ("intent", "answer")
    assert "Restaurants.ReserveRestaurant" in simulator.intents


def test_the_published_uss_is_read_whole_with_its_ratings(published: Callable[[str], Path]) -> None:
    path = published("uss") / "SGD.txt"
    simulator = recorded(path, "uss")
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    utterances = [line[1] for line in lines if line[0] == "USER" and line[1] != "OVERALL"]
    assert simulator.record.left_out == {}
    assert simulator.record.turns == len(utterances)
    assert simulator.record.knows == ("answer", "satisfaction")
    events = population(simulator)
    row, turn = np.nonzero(np.arange(events.text.shape[1]) < events.n[:, None])
    rating = replayed(simulator).rating[row, turn]
    assert 0.7 < (rating[rating >= 0] == 1).mean() < 0.9  # most scores are 3
    assert (rating >= 0).mean() > 0.8
