"""The entries of `experiments/bench/speed`: what they report of what was measured, which is planted here."""

from pathlib import Path

import pytest

from experiments.bench.speed import advice, analysis, asking, embedding, footprint, peers, replay, shared_index
from experiments.bench.speed.embedding import HASHING, LIBRARY, Way
from experiments.bench.speed.shared_index import Search
from skg_bench.app.experiment_report import Table
from skg_bench.core.errors import UsageError
from skg_bench.embedder.hashing import Hashing
from skg_bench.engine import execute as engine
from skg_bench.skillbook.skillbook import rebuild


def test_the_benchmark_is_a_table_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "rows", lambda quick: iter([("loop", f"{quick}", "1", "2.00x")]))
    text = analysis.analyse(quick=True).page
    assert text.startswith("# Speed and size\n\n`skg-bench experiment speed --write reports`\n")
    assert text.endswith("| loop | True | 1 | 2.00x |\n")


def test_ways_of_serving_are_timed_in_turn_on_the_same_users(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def cost(*call: object) -> float:
        calls.append(call)
        return 10.0 if "serving=stored" in call else 12.5 if len(calls) < 8 else 900.0

    monkeypatch.setattr(analysis, "loop_cost", cost)
    assert analysis.servings(5, 3, "curator=everything") == {"stored": 1e5, "prompted": 8e4, "procedure": 8e4}
    ways = [f"serving={serving}" for serving in ("stored", "prompted", "procedure")]
    assert calls == [(5, 3, way, "curator=everything") for _ in range(3) for way in ways]


def test_a_loop_is_timed_under_any_way_of_serving() -> None:
    assert all(rate > 0 for rate in analysis.servings(2, 1, rounds=1).values())


def test_large_books_and_many_users_are_measured_each_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def alone(function: object, *arguments: int) -> footprint.Measured:
        calls.append((function, *arguments))
        return 1000, 10.0, 0.7

    monkeypatch.setattr(footprint, "alone", alone)
    assert list(footprint.rows()) == [
        ("large books, arbitrary vectors, 512 users x 26 weeks, 1 process", "100 turns/s", "", "10 s"),
        ("  largest memory of the process", "0.70 GiB", "1.00", "0.70x"),
        ("a log of 100,000 users with a row each, 2 arms, tables and page, 1 process", "100 turns/s", "", "10 s"),
        ("  largest memory of the process", "0.70 GiB", "1.40", "0.50x"),
    ]
    assert calls == [(footprint.large_books, 512, 26), (footprint.users_of_one_row, 100_000)]


def test_the_footprint_of_large_books_and_of_a_log_is_that_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TABLE_LIMIT", engine.TABLE_LIMIT)  # as it was, after this test
    turns, seconds, held = footprint.large_books(2, 1)
    assert turns > 0 < seconds
    assert held > 0.05
    assert footprint.users_of_one_row(3)[0] == 6


def test_embedders_are_a_table_and_the_time_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    embed = Hashing(64, 0).embed
    monkeypatch.setattr(embedding, "ways", lambda: [Way(LIBRARY, embed), Way("one", embed), Way(HASHING, embed)])
    monkeypatch.setattr(embedding, "loading", lambda: (51.4, 30.2))
    table, loaded = embedding.analyse(blocks=1).parts
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == [LIBRARY, "one", HASHING]
    assert loaded == "10,000 kept vectors are loaded in 51 ms, 30 at work"


@pytest.mark.parametrize(("faster", "recall", "holds"), [(60.0, 0.96, True), (60.0, 0.9, False), (40.0, 0.96, False)])
def test_the_mark_of_a_shared_index_needs_speed_and_recall(
    monkeypatch: pytest.MonkeyPatch, faster: float, recall: float, holds: bool
) -> None:
    exact = Search("numpy, every example", 0.1, 1.0, 1.0, 1.0, 0.0)
    monkeypatch.setattr(
        shared_index,
        "searches",
        lambda n: iter([exact, Search("FAISS IVF", 0.1 / faster, faster, recall, recall, 9.0)]),
    )
    report = shared_index.analyse(size=5000)
    assert report.holds == holds
    assert ("Reached by FAISS IVF." in report.page) == holds
    assert "5,000 examples" in report.page


def test_parts_of_peers_are_made_once_and_anew_where_they_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[str] = []

    def part(name: str) -> str:
        made.append(name)
        return f"## {name} {len(made)}\n"

    monkeypatch.setattr(peers, "version", lambda name: "1.0")
    monkeypatch.setattr(peers, "sections", lambda users, weeks: {n: lambda n=n: part(n) for n in ("speed", "loop")})
    monkeypatch.setenv("PATH", "/bin")
    first = peers.analyse(parts=tmp_path / "parts").page
    assert first == (
        "# Peers on the same vectors\n\n`make peers`\n\nsemantic-router 1.0, GPTCache 1.0.\n\n## speed 1\n\n## loop 2\n"
    )
    assert peers.analyse(parts=tmp_path / "parts", only=["loop"]).parts == ["## speed 1\n", "## loop 3\n"]
    with pytest.raises(UsageError, match="--only lop: valid are speed, loop"):
        peers.analyse(parts=tmp_path / "parts", only=["lop"])


def test_the_log_whose_replay_is_timed_is_one_that_replay_accepts() -> None:
    logged = replay.log(300)
    book, batches = rebuild(logged)
    assert batches == 300
    assert len(book.skills) == replay.SKILLS
    assert all(skill.content is not None for skill in book.skills)
    assert {row["op"] for row in logged} == {"ADD", "UPDATE", "TAG"}
    (row,) = replay.rows(200)
    assert row[0] == "replay of 200 batches, 100 skills"
    logged[151]["uses"] = 0
    with pytest.raises(UsageError, match="replay differs from the log at turn 151"):
        rebuild(logged)


def test_a_prompt_is_timed_beside_httpx_alone() -> None:
    (name, ours, mark, _), *bare, gateway, played = asking.rows(count=5)
    assert name == "prompt to an endpoint and back, 64 under way, core time"
    assert float(ours.removesuffix(" ms")) > 0
    assert mark == "3.00"
    assert [ratio.endswith("x of it") for *_, ratio in bare] == [True, True]
    assert gateway[0] == "request of 12 kB through the gateway and played, 64 under way, core time"
    assert [gateway[2], played[2]] == ["4.00", "1,000"]
    assert float(gateway[1].removesuffix(" ms")) > 0


def test_the_loop_of_advice_is_timed_with_all_its_arms() -> None:
    turns, seconds = advice.closed_loop(3, 1)
    assert turns >= 3 * advice.WEEKS * len(advice.ARMS)
    assert seconds > 0
