"""Dialogues are read in their publishers' forms; their users are pseudo-users, and say so."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.world import AS_LOGGED, STORED, UNKNOWN, WRONG
from skg_bench.simulator.logs.recorded import Recorded
from tests.simulator.logs.logs import readers, recorded, replayed


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


def test_a_turn_of_sgd_has_its_active_intent_and_the_answer_after_it(tmp_path: Path) -> None:
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


def frame(service: str, intent: str, *requested: str, acts: Sequence[str] = (), **values: str) -> dict[str, Any]:
    state = {"active_intent": intent, "requested_slots": list(requested),
             "slot_values": {slot: [value] for slot, value in values.items()}}  # fmt: skip
    return {"service": service, "state": state, "actions": [{"act": act} for act in acts]}


def intents(folder: Path, *turns: Sequence[dict[str, Any]]) -> list[str]:
    """Of a dialogue with these frames in the user's turns, the intent of each turn."""
    spoken: list[dict[str, Any]] = []
    for i, frames in enumerate(turns):
        spoken.append({"speaker": "USER", "utterance": f"m{i}", "frames": frames})
        spoken.append({"speaker": "SYSTEM", "utterance": f"a{i}", "frames": []})
    (folder / "dialogues_001.json").write_text(json.dumps([{"dialogue_id": "1_00000", "turns": spoken}]), "utf-8")
    simulator = recorded(folder, "sgd")
    return [simulator.intents[i] for i in population(simulator).truth.intent[0]]


CAR, BUS = frame("RentalCars_1", "GetCars", city="Oslo"), frame("Buses_1", "FindBus", to="Bergen")
PRICE = frame("RentalCars_1", "GetCars", "price", city="Oslo")
ACCEPTED = frame("RentalCars_1", "GetCars", city="Oslo", place="Central")
CHANGES: Mapping[str, tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]], str]] = {
    "a new service, the old one first": ([CAR], [CAR, BUS], "Buses.FindBus"),
    "a new service, the old one last": ([CAR], [BUS, CAR], "Buses.FindBus"),
    "a new service, an offer of the old one accepted": ([CAR], [ACCEPTED, BUS], "Buses.FindBus"),
    "a new service, the old one finished": ([CAR], [frame("RentalCars_1", "NONE"), BUS], "Buses.FindBus"),
    "another intent of the same service": (
        [CAR, BUS], [ACCEPTED, frame("Buses_1", "BuyTicket", to="Bergen")], "Buses.BuyTicket",
    ),
    "another slot value": ([BUS, CAR], [BUS, ACCEPTED], "RentalCars.GetCars"),
    "a question": ([BUS, CAR], [BUS, PRICE], "RentalCars.GetCars"),
    "a question that was answered": ([PRICE, BUS], [CAR, frame("Buses_1", "FindBus", to="Voss")], "Buses.FindBus"),
    "an act alone": ([CAR, BUS], [CAR, BUS | {"actions": [{"act": "REQUEST_ALTS"}]}], "Buses.FindBus"),
    "nothing": ([CAR, BUS], [CAR, BUS], "RentalCars.GetCars"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_of_several_active_intents_of_a_turn_of_sgd_the_one_whose_frame_changed_counts(
    tmp_path: Path, case: str
) -> None:
    before, now, expected = CHANGES[case]
    assert intents(tmp_path, before, now)[1] == expected


def test_a_service_that_is_gone_back_to_is_new_again(tmp_path: Path) -> None:
    assert intents(tmp_path, [CAR], [CAR, BUS], [BUS], [BUS, CAR]) == [
        "RentalCars.GetCars", "Buses.FindBus", "Buses.FindBus", "RentalCars.GetCars",
    ]  # fmt: skip


def test_an_answer_to_an_intent_that_is_active_too_is_not_known_to_be_wrong(tmp_path: Path) -> None:
    hotel = frame("Hotels_1", "FindHotel")
    assert intents(tmp_path, [CAR], [CAR, BUS], [hotel]) == ["RentalCars.GetCars", "Buses.FindBus", "Hotels.FindHotel"]
    simulator = recorded(tmp_path, "sgd")
    assert len(set(simulator.types)) == 3
    # the answer to the first turn, given again: at the second turn cars are still asked for, at the third no longer
    assert replayed(simulator, STORED, 0).quality.tolist() == [[AS_LOGGED, UNKNOWN, WRONG]]


def test_turns_that_are_answered_with_a_goodbye_alone_have_one_intent(tmp_path: Path) -> None:
    def said(act: str, text: str) -> dict[str, Any]:
        return {"speaker": "SYSTEM", "utterance": text, "frames": [frame("X_1", "", acts=[act])]}

    turns = [
        speak("USER", "a car", ("RentalCars_1", "GetCars")), said("OFFER", "This one?"),
        speak("USER", "no, bye", ("RentalCars_1", "GetCars")), said("GOODBYE", "Have a nice day."),
        speak("USER", "a bus", ("Buses_1", "FindBus")), said("INFORM", "At nine."),
        speak("USER", "thanks", ("Buses_1", "FindBus")), said("REQ_MORE", "Anything else?"),
        speak("USER", "that is all", ("Buses_1", "NONE")), said("GOODBYE", "Bye."),
    ]  # fmt: skip
    (tmp_path / "dialogues_001.json").write_text(json.dumps([{"dialogue_id": "1_00000", "turns": turns}]), "utf-8")
    simulator = recorded(tmp_path, "sgd")
    kinds = [simulator.intents[i] for i in population(simulator).truth.intent[0]]
    assert kinds == ["RentalCars.GetCars", "closing", "Buses.FindBus", "closing", "closing"]
    # the first goodbye, given again: whether it does instead of another one is not known
    assert replayed(simulator, STORED, 1).quality[0, 2:].tolist() == [WRONG, UNKNOWN, UNKNOWN]


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
    with pytest.raises(UsageError, match="is no whole JSON"):
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
    assert simulator.record.knows == ("intent", "answer", "session")
    assert "Restaurants.ReserveRestaurant" in simulator.intents


def test_the_published_uss_is_read_whole_with_its_ratings(published: Callable[[str], Path]) -> None:
    path = published("uss") / "SGD.txt"
    simulator = recorded(path, "uss")
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    utterances = [line[1] for line in lines if line[0] == "USER" and line[1] != "OVERALL"]
    assert simulator.record.left_out == {}
    assert simulator.record.turns == len(utterances)
    assert simulator.record.knows == ("answer", "satisfaction", "session")
    events = population(simulator)
    row, turn = np.nonzero(np.arange(events.text.shape[1]) < events.n[:, None])
    rating = replayed(simulator).rating[row, turn]
    assert 0.7 < (rating[rating >= 0] == 1).mean() < 0.9  # most scores are 3
    assert (rating >= 0).mean() > 0.8
