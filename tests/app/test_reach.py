"""Cases and runs of others ask for nothing outside of the program: no address, variable, path or code (R1)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skg_bench.app.trust import FromFile, admitted
from skg_bench.core.reach import Component
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.simulator.facts.keeping import KeepsFacts
from tests.app.test_cli import call, refused
from tests.app.test_files_of_others import CASE
from tests.llm.server import Server

VARIABLE = "AWS_SECRET_ACCESS_KEY"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(script="learner") as server:
        yield server


def endpoint(server: Server) -> dict[str, Any]:
    """A model at an address of somebody else, with a secret of the reader as its key."""
    return {
        "_target_": "skg_bench.llm.endpoint.Endpoint", "address": server.address, "model": "any", "key_from": VARIABLE,
        "temperature": 0.0, "top_p": 1.0, "seconds": 5.0, "in_flight": 4, "tries": 1, "usd_per_million_in": None,
        "usd_per_million_cached": None, "usd_per_million_out": None, "sends_recorded": False,
    }  # fmt: skip


def case(tmp_path: Path, model: dict[str, Any], name: str = "case.json") -> Path:
    """A case in which a model writes the skills."""
    read = json.loads(CASE.read_text("utf-8"))
    for side in read["sides"].values():
        for composition in side["compositions"].values():
            composition["curator"] = {"_target_": "skg_bench.curator.reflecting.Reflecting", "llm": model}
    path = tmp_path / name
    path.write_text(json.dumps(read), "utf-8")
    return path


def test_a_case_sends_no_variable_of_the_environment_to_an_address(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "canary")
    monkeypatch.delenv("OFFLINE", raising=False)
    words = ["counterexample", "replay", str(case(tmp_path, endpoint(server)))]
    error = refused(*words)
    assert f"curator.llm.address='{server.address}', which reaches an address of the network" in error
    assert "Read it first, then add --trust" in error
    assert server.requests == 0
    _, _, told = call(*words, "--trust")  # what it asks for is said before it is asked
    assert f"curator.llm.address='{server.address}' reaches an address of the network" in told
    assert f"curator.llm.key_from='{VARIABLE}' reads a variable of the environment" in told
    assert set(server.keys) == {"Bearer canary"}


@pytest.mark.parametrize("padding", ["", "/." * 5_000])
def test_what_is_trusted_is_printed_whole_and_on_a_line_of_its_own(
    padding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"_target_": "skg_bench.llm.budgeted.Budgeted", "folder": f"/tmp{padding}/../etc"}  # noqa: S108  never made
    model |= {f"x\n  curator.llm.folder='/tmp/harmless' {i}": "y" for i in range(30)}
    node = {"_target_": "skg_bench.curator.reflecting.Reflecting", "llm": model}
    admitted(FromFile("case.json", trusted=True), [("curator", "curator", node)])
    told = capsys.readouterr().err
    lines = told.rstrip("\n").split("\n")
    assert (
        f"  curator.llm.folder='/tmp{padding}/../etc' reads files of this machine and writes files on this machine"
        in lines
    )
    assert len(lines) == 1 + 31 + 2
    assert lines[-2:] == [
        "  1 of 31: reads files of this machine and writes files on this machine",
        "  30 of 31: may reach anything, as Budgeted does not declare it",
    ]


def test_a_case_that_asks_a_model_plays_its_recording_only(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "canary")
    monkeypatch.delenv("OFFLINE", raising=False)
    recorded = {"_target_": "skg_bench.llm.recorded.RecordedModel", "llm": endpoint(server), "mode": "both"}
    words = ["counterexample", "replay", str(case(tmp_path, recorded))]
    assert f"nothing is recorded in {tmp_path / 'asked'}" in refused(*words)
    assert server.requests == 0
    assert not (tmp_path / "asked").exists()
    first = call(*words, "--trust")  # asks, and records beside the case
    asked = server.requests
    assert asked > 0
    assert first[0] in (0, 1)  # other answers than the case expects
    again = call(*words)
    assert again[:2] == first[:2]
    assert server.requests == asked


def test_a_recording_elsewhere_is_a_path_of_this_machine(tmp_path: Path, server: Server) -> None:
    folder = tmp_path / "elsewhere"
    model = {
        "_target_": "skg_bench.llm.recorded.RecordedModel", "llm": endpoint(server), "mode": "both",
        "folder": str(folder),
    }  # fmt: skip
    error = refused("counterexample", "replay", str(case(tmp_path, model)))
    assert f"curator.llm.folder='{folder}', which reads files of this machine and writes files" in error
    budgeted = {"_target_": "skg_bench.llm.budgeted.Budgeted", "llm": endpoint(server), "folder": str(folder)}
    model = {"_target_": "skg_bench.llm.recorded.RecordedModel", "llm": budgeted}
    assert "curator.llm.llm.folder=" in refused("counterexample", "replay", str(case(tmp_path, model)))
    assert not folder.exists()


@pytest.mark.parametrize(("key", "value"), [("pool", "model.json"), ("seeds", "book.json"), ("seeds", "../rookie")])
def test_keys_of_an_arm_that_name_files_are_refused_too(tmp_path: Path, key: str, value: str) -> None:
    read = json.loads(CASE.read_text("utf-8"))
    read["sides"]["arm"]["compositions"]["low"][key] = value
    path = tmp_path / "case.json"
    path.write_text(json.dumps(read), "utf-8")
    error = refused("counterexample", "replay", str(path))
    assert f"sets arm 'low': {key}='{value}', which reads files of this machine" in error


@pytest.mark.parametrize(
    ("paths", "kinds"),
    [
        (["data:corpus/minilm", "data:more/minilm"], ()),
        ([None, "data:more/minilm"], ()),
        (["data:corpus/minilm", "/etc/vectors"], ("reads",)),
        (["data:corpus/minilm", "data:../../vectors"], ("reads",)),
        ([], ("reads",)),
    ],
)
def test_a_list_of_vectors_of_the_package_reaches_nothing_and_another_path_in_it_does(
    paths: list[str | None], kinds: tuple[str, ...]
) -> None:
    assert Precomputed.reaches["path"].of(paths) == kinds


@pytest.mark.parametrize("component", [AssistantUsers, KeepsFacts])
def test_a_corpus_of_the_package_reaches_nothing_and_any_other_does(component: type[Component]) -> None:
    corpus = component.reaches["corpus"]
    assert [corpus.of(name) for name in (None, "builtin", "builtin_120")] == [(), (), ()]
    for other in ("clinc150", "builtin-exchange_rate", "/my/corpus", ["builtin"], ["builtin", "/my/corpus"]):
        assert corpus.of(other) == ("reads",)
