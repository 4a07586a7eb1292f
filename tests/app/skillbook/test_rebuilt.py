"""Skillbooks of a run, rebuilt from its log (law 8)."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import skg_bench
from skg_bench.app.skillbook import rebuilt as skillbooks
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.skillbook.rendering import render
from tests.app.test_cli import call
from tests.runs import rewritten


@pytest.mark.req("K12", "K13")
def test_a_book_at_any_turn_is_the_book_that_the_turn_log_says(tiny_run: skg_bench.Run) -> None:
    for user in range(4):
        rows = tiny_run.turns("skg", ["book_hash", "book_version", "book_size"], [user]).to_pylist()
        for row in [*rows[::25], rows[-1]]:
            skillbook = skillbooks.book(tiny_run, "skg", user, row["turn"])
            assert (skillbook.hash, skillbook.version) == (row["book_hash"], row["book_version"])
            assert sum(skill.active for skill in skillbook.skills) == row["book_size"]


def test_a_turn_before_the_first_is_refused(tiny_run: skg_bench.Run) -> None:
    code, out, error = call("skillbook", "show", str(tiny_run.path), "--arm", "skg", "--user", "1", "--turn", "-5")
    assert (code, out) == (2, "")
    assert "-5" in error


def test_show_and_replay_say_what_they_rebuilt(tiny_run: skg_bench.Run) -> None:
    code, out, _ = call("skillbook", "show", str(tiny_run.path), "--arm", "skg", "--user", "1")
    assert code == 0
    assert ", state hash " in out
    code, out, _ = call("skillbook", "replay", str(tiny_run.path))
    assert code == 0
    assert out.count("every state hash agrees") == 2
    users = int(tiny_run.manifest["users"])
    assert out.count(f": {users} of {users} skillbooks rebuilt from ") == 2
    code, out, _ = call("skillbook", "replay", str(tiny_run.path), "--users", "1")
    assert f"skg: 1 of {users} skillbooks rebuilt from " in out
    assert f"the others were not looked at: --users {users} rebuilds all" in out


def test_a_changed_log_is_found_out(tiny_run: skg_bench.Run, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_run.path, tmp_path / "copy")

    def more(table: pa.Table) -> pa.Table:
        at = table.column_names.index("uses")
        uses = pa.array([uses + 1 for uses in table["uses"].to_pylist()], table.schema.field(at).type)
        return table.set_column(at, table.schema.field(at), uses)

    for shard in skg_bench.Run(copy).shards("updates", "skg"):
        rewritten(shard, more)
    busiest = max(range(4), key=lambda user: len(skillbooks.updates(tiny_run, "skg", user)))
    with pytest.raises(UsageError, match="replay differs from the log"):
        skillbooks.book(skg_bench.Run(copy), "skg", busiest)


def test_a_user_or_arm_that_is_not_there_is_refused(tiny_run: skg_bench.Run) -> None:
    with pytest.raises(UsageError, match="has users 0 to 3"):
        skillbooks.book(tiny_run, "skg", 4)
    with pytest.raises(UsageError, match="has no arm"):
        skillbooks.book(tiny_run, "nobody", 1)


def test_a_book_that_was_given_is_not_shown_as_an_empty_one(tmp_path: Path) -> None:
    given = "'fork=skg@9', curator=none"
    arms = f"arms={{skg: [], donor: [{given}, book=donor], later: [{given}, book=hindsight]}}"
    run = skg_bench.run([arms, "reference=skg", "users=2", "weeks=1", f"out={tmp_path / 'run'}"])
    for arm, origin in (("donor", "somebody else had under skg"), ("later", "skg had before turn 9")):
        with pytest.raises(
            UsageError, match=f"arm '{arm}' serves the book that {origin}, and learns nothing; look at skg"
        ):
            skillbooks.book(run, arm, 1)


def test_the_history_of_a_skill_and_the_difference_of_two_turns_are_those_of_the_log(tiny_run: skg_bench.Run) -> None:
    user = max(range(4), key=lambda u: len(skillbooks.updates(tiny_run, "skg", u)))
    rows = skillbooks.updates(tiny_run, "skg", user)
    of = ("--arm", "skg", "--user", str(user))
    code, out, _ = call("skillbook", "show", str(tiny_run.path), *of, "--skill", "0")
    assert code == 0
    assert f"{sum(row['skill'] == 0 for row in rows)} operations" in out
    assert f"named {rows[0]['name']}" in " ".join(out.split())
    last = rows[-1]["turn"]
    code, out, _ = call("skillbook", "diff", str(tiny_run.path), *of, "--since", "-1")
    assert code == 0
    skills = len(skillbooks.book(tiny_run, "skg", user).skills)
    assert f"{skills} skills differ; 0 active skills before" in out
    assert "0 skills differ" in call("skillbook", "diff", str(tiny_run.path), *of, "--since", str(last))[1]
    code, out, error = call("skillbook", "show", str(tiny_run.path), *of, "--skill", "999")
    assert (code, out) == (2, "")
    assert f"has skills 0 to {skills - 1}" in error


def test_books_of_stored_answers_say_nothing_that_a_document_could_hold(
    tiny_run: skg_bench.Run, tmp_path: Path
) -> None:
    code, out, _ = call(
        "skillbook", "convert", str(tiny_run.path), "--arm", "skg", "--to", "v2", "--out", str(tmp_path / "books")
    )
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "books").iterdir()) == [f"user-{u}.json" for u in range(4)]
    assert "skills that say nothing" in out
    code, _, error = call(
        "skillbook", "convert", str(tiny_run.path), "--arm", "skg", "--to", "v2", "--out", str(tmp_path / "some"),
        "--user", "1", "--user", "77",
    )  # fmt: skip
    assert code == 2
    assert "user=77" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["books"]


def test_two_turns_are_compared_in_the_order_of_time(tiny_run: skg_bench.Run) -> None:
    of = ("--arm", "skg", "--user", "1", "--since", "5", "--turn", "3")
    code, _, error = call("skillbook", "diff", str(tiny_run.path), *of)
    assert code == 2
    assert "must not be the earlier one" in error


@pytest.mark.req("P16")
def test_a_book_is_an_object_with_its_version_and_a_text_for_prompts(tiny_run: skg_bench.Run) -> None:
    user = max(range(4), key=lambda u: len(skillbooks.updates(tiny_run, "skg", u)))
    book = skillbooks.book(tiny_run, "skg", user)
    assert book.version == tiny_run.turns("skg", ["book_version"], [user])["book_version"].to_pylist()[-1]
    assert render(book).text == ""  # stored answers say nothing
    said = replace(book, skills=tuple(replace(s, content=Content(s.name, "when asked", "do it")) for s in book.skills))
    active = [skill for skill in said.skills if skill.active]
    assert sorted(render(said).skills) == [skill.id for skill in active]
    assert all(f"[{skill.shown_id}]" in render(said).text for skill in active)


def test_a_turn_that_the_user_does_not_have_is_refused(tiny_run: skg_bench.Run) -> None:
    count = tiny_run.turns("skg", ["turn"], [1]).num_rows
    arguments = ("skillbook", "show", str(tiny_run.path), "--arm", "skg", "--user", "1", "--turn")
    assert call(*arguments, str(count - 1))[0] == 0
    code, out, error = call(*arguments, str(count))
    assert (code, out) == (2, "")
    assert f"has turns 0 to {count - 1}" in " ".join(error.split())
    code, _, error = call("skillbook", "diff", *arguments[2:-1], "--since", "-7")
    assert (code, "--turn" in error) == (2, False)
