"""Skillbooks of a run, rebuilt from its log (law 8)."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skg_bench
from skg_bench.app.skillbook import rebuilt as skillbooks
from skg_bench.core.errors import UsageError
from tests.app.test_cli import call


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
    assert "active skills, version" in out
    code, out, _ = call("skillbook", "replay", str(tiny_run.path))
    assert code == 0
    assert out.count("every state hash agrees") == 2


def test_a_changed_log_is_found_out(tiny_run: skg_bench.Run, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    (copy / "updates").mkdir(parents=True)
    (copy / "manifest.json").write_bytes((tiny_run.path / "manifest.json").read_bytes())
    for shard in tiny_run.shards("updates", "skg"):
        table = pq.read_table(shard, partitioning=None)
        at = table.column_names.index("uses")
        more = pa.array([uses + 1 for uses in table["uses"].to_pylist()], table.schema.field(at).type)
        pq.write_table(table.set_column(at, table.schema.field(at), more), copy / "updates" / shard.name)
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
