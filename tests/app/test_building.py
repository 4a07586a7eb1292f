"""What a yaml may name and how its parameters are checked before anything is called."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from skg_bench.app.building import build, fits, type_in_words
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.errors import UsageError
from tests.app.lab import installed

PART = "lab_parts.things.Part"


@pytest.fixture(autouse=True)
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with installed(tmp_path, monkeypatch):
        yield


def refused(node: Mapping[str, Any]) -> str:
    with pytest.raises(UsageError) as error:
        build("policy", node, COMMAND_LINE)
    return str(error.value)


def test_a_node_becomes_its_component_with_plain_python_values() -> None:
    made = build("policy", {"_target_": PART, "rate": 1, "names": ["a"], "every": None}, COMMAND_LINE)
    assert (made.rate, made.names, made.every, made.kind) == (1, ["a"], None, "round")
    inside = {"_target_": PART, "rate": 0.5}
    around = {"_target_": "lab_parts.things.Wrapped", "curator": inside, "at_turn": 3}
    assert build("curator", around, COMMAND_LINE).curator.rate == 0.5


@pytest.mark.parametrize(
    "target",
    [
        "os.system",
        "subprocess.run",
        "builtins.eval",
        "skg_benchmark.x.Y",
        "skg_bench",
        "skg_bench.app.run_identity.subprocess.run",  # reached through a module of ours, but not ours
        "skg_bench.app.run_identity.os.system",
        "lab_parts.things",
        "skg_bench.policy.nowhere.Never",
        "skg_bench.policy.never.Nver",
        7,
    ],
)
def test_a_target_outside_of_declared_packages_is_never_called(target: object) -> None:
    message = refused({"_target_": target, "command": "false"})
    assert "is refused" in message or "cannot be imported" in message


def test_a_target_hidden_inside_a_parameter_is_refused_too() -> None:
    for inner in ({"_target_": "os.system", "command": "false"}, [{"_target_": "os.system"}]):
        assert "policy.names" in refused({"_target_": PART, "rate": 0.5, "names": inner})


def test_a_wrong_parameter_is_named_with_what_is_valid() -> None:
    assert "policy.rte: lab_parts.things.Part takes no such parameter; did you mean 'rate'?" in refused(
        {"_target_": PART, "rte": 0.5}
    )
    assert "policy.rate is missing" in refused({"_target_": PART})
    assert "policy.rate='many' must be a number" in refused({"_target_": PART, "rate": "many"})
    assert "must be one of round, square" in refused({"_target_": PART, "rate": 0.5, "kind": "oval"})
    assert "must be a whole number or null" in refused({"_target_": PART, "rate": 0.5, "every": 1.5})
    assert "must be a list, each a text" in refused({"_target_": PART, "rate": 0.5, "names": "abc"})
    assert "it has no _target_" in refused({"rate": 0.5}).replace("policy has", "it has")


def test_what_a_component_finds_wrong_comes_out_as_its_own_message() -> None:
    assert refused({"_target_": PART, "rate": -1.0}) == "rate=-1.0 must not be negative"


@pytest.mark.parametrize(
    ("value", "hint", "fitting"),
    [
        (True, int, False),
        (True, float, False),
        (1, float, True),
        (1.0, int, False),
        (1, str, False),
        (None, int | None, True),
        ("a", Literal["a", "b"], True),
        (True, Literal[1], False),
        ([1.0, 2], Sequence[float], True),
        ([1.0, "x"], list[float], False),
        (["a"], tuple[str, ...], True),
        ({"a": 1}, Mapping[str, int], True),
        ([], Mapping[str, int], False),
        ({"_target_": "x"}, Path, True),
    ],
)
def test_values_of_a_yaml_are_checked_against_annotations(value: object, hint: object, fitting: bool) -> None:
    assert fits(value, hint) is fitting
    assert type_in_words(hint)
