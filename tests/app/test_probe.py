"""`skg-bench probe`: what a hundred requests show of a system from outside."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import skg_bench
from skg_bench.app import probing_outside
from tests.app.test_cli import call
from tests.assistant.endpoint.test_black_box import STAND_INS, system
from tests.runs import logs_alone

OBJECTS = "tests.assistant.python.objects"


@pytest.fixture(autouse=True)
def _few_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe compares all of its first messages with one another, which takes more time than all that it asks."""
    monkeypatch.setattr(probing_outside, "_READ", 1_000)


def seen(*words: str) -> dict[str, Any]:
    code, out, err = call("probe", *words, "--json")
    assert (code, err) == (0, "")
    read: dict[str, Any] = json.loads(out)
    return read


def of_class(name: str, *words: str) -> dict[str, Any]:
    return seen("assistant=python", f"assistant.target={OBJECTS}.{name}", *words)


def test_an_object_that_passes_on_remembers_nothing() -> None:
    probed = of_class("PassOn")
    assert (probed["again"], probed["near"], probed["remembered"], probed["leaks"]) == ("new", None, None, 0)
    assert (probed["calls_new"], probed["calls_again"], probed["same_twice"]) == (1, 1, True)
    assert of_class("Twice")["calls_new"] == 2


def test_an_exact_cache_gives_equal_words_again_and_keeps_users_apart() -> None:
    probed = of_class("ExactCache")
    assert (probed["again"], probed["near"]["hit"], probed["calls_again"], probed["leaks"]) == ("earlier", None, 0, 0)
    assert (probed["remembered"], probed["forgotten_after"], probed["same_twice"]) == (16, None, True)
    assert 60 < probed["requests"] < 130


def test_a_limited_memory_is_counted() -> None:
    limited = ("Limited", "assistant.parameters={most: 11}")
    assert of_class(*limited)["remembered"] == 11
    assert of_class(*limited)["remembers_more"] is False
    assert of_class(*limited, "--memory", "5")["remembered"] == 5


def test_a_memory_that_asking_again_pushes_out_is_counted_as_at_least() -> None:
    probed = of_class("Window", "assistant.parameters={most: 12}")
    assert (probed["remembered"], probed["remembers_more"]) == (6, True)  # of 12: each that is found pushes one out
    assert "the last 6 of 16 at least" in probed["words"]["how many it remembers"]


def test_a_memory_that_forgets_after_an_hour_is_told_by_the_users_time() -> None:
    probed = of_class("Forgetful")
    assert (probed["remembers_for"], probed["forgotten_after"]) == ("10 minutes", "2 hours")


def test_of_words_without_a_reference_it_is_not_said_whose_they_are(tmp_path: Path) -> None:
    """Once, one that gave all users one answer, without its reference, was said to give the user's own alone."""
    (tmp_path / "bare.py").write_text(
        "class Bare:\n    def answer(self, user, time, message, model):\n        return model(message).split('[')[0]\n"
    )
    words = seen("assistant=python", f"assistant.file={tmp_path}/bare.py:Bare")["words"]
    assert words["whose answers come back"] == "not known: at 6 of 6 requests its words have no reference"
    assert words["how many it remembers"] == words["does time matter"] == "not known: its words have no reference"
    assert words["earlier answers in its prompts"] == "none that have a reference"


def test_another_outcome_of_a_second_instance_is_told() -> None:
    probed = of_class("Dice")
    assert probed["same_twice"] is False
    assert "NO: request" in probed["words"]["the same twice"]


def test_earlier_answers_in_a_prompt_are_told() -> None:
    probed = of_class("Recalling")
    assert probed["reminded"] == 1
    words = probed["words"]
    assert words["earlier answers in its prompts"] == "yes, up to 1 at once"
    assert {words["how many it remembers"], words["does time matter"]} == {"not seen: it gives none again"}
    assert of_class("PassOn")["words"]["how many it remembers"] == "none"


def test_words_that_nobody_can_judge_and_answers_that_nobody_gave_are_told() -> None:
    assert "LEAK: another user's" in of_class("ForAll")["words"]["whose answers come back"]
    assert "that nobody gave" in of_class("Guessing")["words"]["whose answers come back"]


@pytest.mark.parametrize(("arm", "cosine"), [("gptcache", 0.8), ("litellm", 0.8)])
def test_the_cosine_of_a_gateway_is_found_whatever_its_scale(arm: str, cosine: float) -> None:
    near = seen(*STAND_INS[arm])["near"]
    assert near["missed"] < cosine <= near["hit"] < near["missed"] + 0.03


def test_a_gateway_with_one_memory_for_all_users_leaks_and_one_that_passes_on_does_not() -> None:
    assert seen(*system("exact", all=True))["leaks"] > 0
    apart = seen(*system("exact", "assistant.body={user: '{user}', tag: x}"))
    assert (apart["leaks"], apart["leaks_by_user_alone"], apart["seed_matters"]) == (0, False, False)
    assert seen(*STAND_INS["pass_on"])["again"] == "new"


def test_a_field_that_keeps_users_apart_is_told_from_the_field_user() -> None:
    probed = seen(*system("exact", "assistant.body={cache: '{user}'}", by="cache"))
    assert (probed["leaks"], probed["leaks_by_user_alone"]) == (0, True)


def test_the_table_is_in_plain_words() -> None:
    code, out, _ = call("probe", *STAND_INS["dict"])
    assert code == 0
    for words in ("once for a new message, not at all when it comes again", "for equal words alone", "ms a request"):
        assert words in out


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("html", "<html>Welcome!"),
        ("half", "closed before the answer was whole"),
        ("500", "HTTP 500: 'oops'"),
        ("429", "HTTP 429: 'later'"),
        ("dies", "ended with exit code 3"),
        ("hangs", "no answer came within assistant.seconds=1"),
        ("never asks", "answers without asking its model"),
        ("asks twice", "asked its model twice with the same request"),
    ],
)
def test_a_system_with_a_bad_day_is_refused_with_the_request(day: str, words: str) -> None:
    begun = time.monotonic()
    code, out, err = call("probe", *system("bad_day", "assistant.seconds=1", day=day, at=0))
    assert (code, out) == (2, "")
    assert words in err.replace("\n", " ")
    assert "request 1 of the probe" in err.replace("\n", " ")
    assert "Traceback" not in err
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ((), "name one: assistant=python"),
        (("assistant=python",), "given neither of target and file"),
        (("assistant=endpoint",), "given neither of url and command"),
        (("assistant=endpoint", "assistant.command=[no_such_program]"), "exit code 127"),
        (("assistant=python", f"assistant.target={OBJECTS}.NoAnswer"), "has no method answer"),
        (("assistant=python", f"assistant.target={OBJECTS}.Nothing"), "it returned None; valid is a str"),
        (("assistant=python", f"assistant.target={OBJECTS}.ExactCache", "--memory", "100000"), "smaller --memory"),
    ],
)
def test_what_cannot_be_probed_is_refused_with_what_to_do(overrides: tuple[str, ...], words: str) -> None:
    code, _, err = call("probe", *overrides)
    assert code == 2
    assert words in " ".join(err.split())
    assert "Traceback" not in err


class Counted:
    """Passes on, and counts for this test."""

    n = 0

    def answer(self, user: str, time: object, message: str, model: Callable[[str], str]) -> str:
        Counted.n += 1
        return model(message)


def test_a_dry_run_says_what_controls_cost_and_how_long_as_probe_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = ["assistant=python", f"assistant.target={__name__}.Counted"]
    size = ("users=3", "weeks=2", "reference=never")

    def told(*more: str) -> str:
        arms = f"arms={{never: [policy=never], it: [{','.join([*mine, *more])}]}}"
        return " ".join(call("run", *size, arms, "--dry-run")[1].split())

    counts = re.search(
        r"it: about [\d,]+ messages, and ([\d,]+) before and after for its controls; `skg-bench pr", told()
    )
    assert counts is not None
    arms = f"arms={{never: [policy=never], it: [{','.join(mine)}]}}"
    with logs_alone():
        made = skg_bench.run([*size, arms])
    assert int(counts[1].replace(",", "")) == Counted.n - len(made.turns("it")) > 300
    Counted.n = 0
    twins = f"{arms[:-1]}, frozen: [{','.join(mine)},freeze=all,freeze_at=20], last: [{','.join(mine)}]}}"
    said = " ".join(call("run", *size, twins, "--dry-run")[1].split())
    with logs_alone():
        made = skg_bench.run([*size, twins])
    counts_of = [int(each.replace(",", "")) for each in re.findall(r"and ([\d,]+) before and after", said)]
    answered = sum(len(made.turns(name)) for name in ("it", "frozen", "last"))
    assert sum(counts_of) == Counted.n - answered
    assert counts_of[1] == counts_of[2] < int(counts[1].replace(",", ""))  # their memory was rehearsed by the first
    call("probe", *mine)
    assert re.search(r"for its controls; about \d+ s at \S+ ms each, as probe measured them", told())
    assert re.search(r"it: about [\d,]+ messages; controls=false; about \d+ s", told("assistant.controls=false"))
