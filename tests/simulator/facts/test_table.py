"""A file of facts that says nothing sound is refused, by its row and with what is valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA
from tests.app.test_cli import call
from tests.simulator.facts.fact_runs import world

Change = Callable[[dict[str, Any]], Any]


def document() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((DATA / "facts" / "facts.yaml").read_text("utf-8"))
    return content


CHANGES: list[tuple[Change, str]] = [
    (lambda d: d.pop("pairs"), "must have the sections"),
    (lambda d: d["known_by"]["user"].remove("guest_wifi"), "known_by: guest_wifi is missing; list it under"),
    (lambda d: d["known_by"]["world"].append("guest_wifi"), "'guest_wifi' stands under user, too"),
    (lambda d: d["known_by"]["world"].append("wifi"), "'wifi' is no intent of the corpus"),
    (lambda d: d["known_by"].update(god=[]), "valid are lists of intents under world, user, device, nobody"),
    (lambda d: d.update(one_offs="user"), "one_offs='user', valid are world and nobody"),
    (lambda d: d["facts"].pop("guest_wifi"), "facts: guest_wifi is missing, which only the user knows"),
    (lambda d: d["facts"].update(wifi={}), "facts: wifi is no intent"),
    (lambda d: d["facts"]["guest_wifi"].update(values=["a"]), "guest_wifi: values=.*two or more different texts"),
    (lambda d: d["facts"]["guest_wifi"].update(values=[1, 2]), "values=.*quote numbers"),
    (lambda d: d["facts"]["guest_wifi"].update(tells=["the code"]), "guest_wifi: tells: 'the code' lacks {value}"),
    (lambda d: d["facts"]["guest_diet"].update(tells=["{value}"]), "guest_diet: tells: '{value}' lacks .* or {slot}"),
    (lambda d: d["facts"]["guest_wifi"].pop("ends"), "guest_wifi: valid are the fields values, tells"),
    (lambda d: d["pairs"][0].update(needs=["guest_wifi"]), "pairs: row 1: needs=.*two requests that only the user"),
    (lambda d: d["pairs"][1].update(wordings=[]), "pairs: row 2: wordings"),
    (lambda d: d["pairs"].append({"name": "x"}), "pairs: row 7: valid are the fields name, needs, wordings"),
    (lambda d: d["facts"]["guest_wifi"].update(ends=["guest wifi?"]), "'guest wifi\\?' twice, or the corpus has it"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), CHANGES)
def test_a_bad_file_is_refused_by_row(change: Change, says: str, tmp_path: Path) -> None:
    content = document()
    change(content)
    file = tmp_path / "facts.yaml"
    file.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
    with pytest.raises(UsageError, match=says):
        len(world(f"simulator.facts={file}").messages)


def test_a_bad_file_ends_the_command_with_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "facts.yaml"
    file.write_text("known_by: {}", "utf-8")
    code, out, error = call(
        "run", "simulator=facts", f"simulator.facts={file}", "users=1", "weeks=1", f"out={tmp_path / 'run'}"
    )
    assert code == 2
    assert str(file) in (out + error).replace("\n", "")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("simulator.known_by=me", "must be one of table, world"),
        ("simulator.told_twice=1.5", "told_twice=1.5 must lie in"),
        ("simulator.declines=0.9", "asks_back=0.3 and declines=0.9"),
        ("simulator.persists_by_wording=0.9", "persists_by_type=0.3 and persists_by_wording=0.9"),
    ],
)
def test_a_bad_share_is_refused(override: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        world(override)


def test_all_intents_have_an_owner_and_all_messages_one_meaning() -> None:
    made = world()
    assert len(made.catalogue.table.facts) == 99
    assert len(set(made.messages)) == len(made.messages)
    assert len(set(made.types)) == len(made.types)
    assert len(made.names) == len(made.users.names) + len(made.types) - len(made.users.types)
