"""A file of facts that says nothing sound is refused, by its row and with what is valid."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA
from skg_bench.simulator.answers.corpora_by_name import corpus_of
from skg_bench.simulator.facts.table import BY_USER, BY_WORLD, fact_table
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
        len(world(f"simulator.facts={file}", "simulator.users.corpus=builtin_120").messages)


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
    assert len(made.catalogue.table.facts) == 99 + 65
    assert len(set(made.messages)) == len(made.messages)
    assert len(set(made.types)) == len(made.types)
    assert len(made.names) == len(made.users.names) + len(made.types) - len(made.users.types)


def test_several_corpora_have_the_rows_of_all_their_files() -> None:
    corpora = corpus_of("builtin_120"), corpus_of("builtin")
    alone, both = (fact_table(None, corpus.types, corpus.intents) for corpus in corpora)
    n = len(alone.known_by)
    assert both.known_by[:n].tolist() == alone.known_by.tolist()
    assert both.facts[: len(alone.facts)] == alone.facts
    assert len(both.facts) > len(alone.facts) + 60
    assert [pair.name for pair in both.pairs][: len(alone.pairs)] == [pair.name for pair in alone.pairs]
    assert len({pair.name for pair in both.pairs}) == len(alone.pairs) + 6
    assert both.digest != alone.digest


def test_of_what_two_files_say_the_first_holds(published: Callable[[str], Path]) -> None:
    published("clinc150")
    corpus = corpus_of(["builtin", "clinc150-exchange_rate-plug_type"])
    table = fact_table(None, corpus.types, corpus.intents)
    knowers = dict(zip(corpus.types, table.known_by.tolist(), strict=True))
    assert {knowers[name] for name in corpus.types if name.startswith("plug_type|")} == {BY_WORLD}
    assert knowers["user_name"] == BY_USER


def test_users_of_the_further_intents_tell_their_facts() -> None:
    messages = len(world("simulator.users.corpus=builtin_120").messages)
    assert len(world().messages) > messages + 6000
