"""Skillbooks that users start with: logged like anything that is learned, and there at the first decision."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from skg_bench.analysis.counts import tally
from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms as made_of
from skg_bench.app.launch import prepare
from skg_bench.app.skillbook import rebuilt, seed_books
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.seeding import SeedBook
from skg_bench.core import package
from skg_bench.core.content import Content
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.skillbook import Skill, rebuild
from tests.app.test_cli import call
from tests.arms import changed
from tests.assistant.pipeline.advice import NOTHING_SAID, Advising, Play
from tests.assistant.pipeline.test_stack import ARM
from tests.laws import world

ROOKIE = Path(__file__).resolve().parents[2] / "golden" / "rookie.json"
FORKS = "stopped: ['fork=skg@9', curator=none], donor: ['fork=skg@9', book=donor, curator=none]"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Users who start with the rookie's skills, and learn."""
    arms = f"arms={{skg: [], {FORKS}, later: ['fork=skg@9', book=hindsight, curator=none], bare: [seeds=null]}}"
    out = tmp_path_factory.mktemp("seeds") / "run"
    return skg_bench.run([*world.DENSE, arms, "reference=skg", "users=4", f"seeds={ROOKIE}", f"out={out}"])


def skill(ok: int = 0, partial: int = 0, miss: int = 0, *, active: bool = True) -> Skill:
    counters = (9, ok, partial, miss, 1, 2, 3, (0,) * 8, 0, -1)
    return Skill(0, "wait-00001", -1, (), active, *counters, Content("wait", "Wait."))


def test_every_book_starts_with_what_the_file_says_and_the_log_tells_it_before_the_first_turn(run: Run) -> None:
    file = seed_books.seed_book(str(ROOKIE)).skills
    assert sum(skill.active for skill in file) < len(file)  # one that is archived, too
    for user in range(4):
        rows = rebuilt.updates(run, "skg", user)
        first = run.turns("skg", ["time"], [user])["time"][0].as_py()
        given = [row for row in rows if row["turn"] < 0]
        assert {(row["turn"], row["op"], row["book_version"]) for row in given} == {
            (-2, "ADD", 1), (-2, "REMOVE", 1), (-1, "TAG", 2),
        }  # fmt: skip
        columns = ("reason", "uses", "source_turn", "after")
        assert {tuple(row[column] for column in columns) for row in given} == {("seed", 0, -1, -1)}
        assert {row["time"] for row in run.updates("skg", users=[user]).to_pylist() if row["turn"] < 0} == {first}
        book, batches = rebuild(rows, -1)
        assert batches == book.version == 2
        counts = ("name", "content", "ok", "partial", "miss", "active", "examples")
        assert [[getattr(s, c) for c in counts] for s in book.skills] == [[getattr(s, c) for c in counts] for s in file]
        assert {(s.born, s.last_used, s.last_ok, s.uses) for s in book.skills} == {(given[0]["time"],) * 3 + (0,)}


@pytest.mark.parametrize("arm", ["skg", "stopped", "bare"])
def test_all_books_are_rebuilt_by_hash(run: Run, arm: str) -> None:
    for user in range(4):
        book, _ = rebuild(rebuilt.updates(run, arm, user))
        last = run.turns(arm, ["book_hash", "book_version"], [user]).to_pylist()[-1]
        assert (book.hash, book.version) == (last["book_hash"], last["book_version"])
        assert ("wait-00002" in {s.name for s in book.skills}) == (arm != "bare")


def test_a_fork_is_seeded_once_and_a_donor_has_been_seeded_too(run: Run) -> None:
    for user in range(4):
        versions = [row["book_version"] for row in rebuilt.updates(run, "stopped", user)]
        assert versions[0] == 1
        assert np.isin(np.diff(versions), (0, 1)).all()
    sizes = run.turns("donor", ["turn", "book_version"]).to_pylist()
    assert min(row["book_version"] for row in sizes if row["turn"] >= 9) > 2


def test_nothing_that_counts_turns_counts_what_was_there_before_them(run: Run) -> None:
    counts = tally.tallies(run, "skg", tally.events(run))
    table = run.updates("skg", ["turn", "op"]).to_pylist()
    learned = [row for row in table if row["op"] == "ADD" and row["turn"] >= 0]
    assert len(learned) < sum(row["op"] == "ADD" for row in table)
    assert counts[0].by_week["add"].sum() == len(learned)


def test_the_book_before_the_first_turn_can_be_looked_at(run: Run) -> None:
    of = ("--arm", "skg", "--user", "1")
    code, out, _ = call("skillbook", "show", str(run.path), *of, "--turn", "-1")
    assert code == 0
    assert "wait-00002" in out
    code, out, _ = call("skillbook", "diff", str(run.path), *of, "--since", "-1", "--turn", "0")
    assert code == 0
    assert "Propose to look" not in out  # it was there
    code, _, error = call("skillbook", "show", str(run.path), *of, "--turn", "-2")
    assert (code, "-1 is before the first" in error) == (2, True)


def test_the_first_decision_sees_the_book_whose_skills_have_lineages_of_their_own() -> None:
    curator = Advising()
    play = Play([changed(ARM, curator=curator, seeds=SeedBook((skill(3, 2, 1), skill(active=False))))], 3)
    play.answered(2)
    books = play.state.decided.books
    assert books.active[:, :2].tolist() == [[True, False]] * 2
    assert [getattr(books, c)[0, 0] for c in ("ok", "partial", "miss", "uses", "n_skills")[:4]] == [3, 2, 1, 0]
    assert books.lineage[:, :2].tolist() == [[-(2**20), 1 - 2**20]] * 2
    assert [turn for turn, _, _ in play.assistant.updates(_after(play))] == [-2, -1, 0]
    play.answered(2)
    play.learned(NOTHING_SAID)
    assert [turn for turn, _, _ in play.assistant.updates(play.state)] == []


def _after(play: Play) -> Any:
    play.learned(NOTHING_SAID)
    return play.state


def test_a_book_without_ratings_is_one_batch() -> None:
    play = Play([changed(ARM, seeds=SeedBook((skill(),)))], 1)
    play.answered(1)
    assert [turn for turn, _, _ in play.state.seeded] == [-2]
    assert play.state.table.version.tolist() == [1]


def test_what_a_file_says_is_part_of_what_a_run_is(tmp_path: Path) -> None:
    file = tmp_path / "book.json"

    def identity(ok: int) -> str:
        book = json.loads(ROOKIE.read_text())
        book["skills"]["wait-00002"]["helpful"] = ok
        file.write_text(json.dumps(book))
        return prepare(compose([f"seeds={file}", "arms={skg: []}", "reference=skg"])).identity

    assert identity(1) != identity(2)
    assert identity(1) == identity(1)
    assert SeedBook((skill(),)).hash != SeedBook((replace(skill(), name="other"),)).hash


def test_names_stand_for_the_guardians_books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "guardian").mkdir()
    (tmp_path / "guardian" / "novice.v2.json").write_bytes(ROOKIE.read_bytes())
    monkeypatch.setattr(package, "DATA", tmp_path)
    assert seed_books.seed_book("novice") == seed_books.seed_book(str(ROOKIE))
    with pytest.raises(
        UsageError,
        match=r"seeds=expert is no file; valid are novice, the file of a skillbook, or a folder of Agent Skills",
    ):
        seed_books.seed_book("expert")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"skills": {}}', r"has no skills; take seeds=null"),
        ("[]", r"book.json: "),
        (
            '{"skills": {"a-1": {"id": "a-1", "section": "a", "content": "A", "helpful": 99999}}, "next_id": 1}',
            r"has 99,999 ratings; valid are at most 10,000",
        ),
    ],
)
def test_a_file_that_no_book_can_start_with_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "book.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        made_of(compose([f"seeds={file}", "arms={skg: []}", "reference=skg"]).arms, COMMAND_LINE)


def test_a_fork_goes_on_with_the_books_that_there_are() -> None:
    table = f"arms={{skg: [], a: ['fork=skg@9', 'seeds={ROOKIE}']}}"
    with pytest.raises(UsageError, match=r"arm 'a': seeds differ from those of skg"):
        made_of(compose([table, "reference=skg"]).arms, COMMAND_LINE)
    with pytest.raises(UsageError, match=r"seeds=7 must be a name, or the file or folder of a skillbook"):
        compose(["seeds=7", "arms={skg: []}", "reference=skg"])
