"""Rows of a table of decisions that people judge: drawn by chance, written for `estimate`, and refused if unusable."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skg_bench
from skg_bench.app.audit_draw import drawn_rows
from skg_bench.core.grid import F64
from tests.app.test_cli import call, refused

N = 4000


def columns() -> tuple[dict[str, list[object]], F64]:
    """A log in which a tenth of the answers are hits, and what each is worth, which nobody logged."""
    rng = np.random.default_rng(3)
    user, hit = np.sort(rng.integers(0, 80, N)), rng.random(N) < 0.1
    right = (rng.random(N) < np.where(hit, 0.5, 0.9)).astype(np.float64)
    fewer = np.where(hit, 0.2, 0.48 / 0.9)  # a policy that answers less from memory
    words = ["=1+1" if i == 0 else f"message {i}" for i in range(N)]
    return {
        "user": [f"u{i}" for i in user], "message": words, "hit": hit.tolist(), "propensity": [0.5] * N,
        "fewer": fewer.tolist(),
    }, right  # fmt: skip


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(columns()[0]), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def filled(name: str, right: F64) -> None:
    """Judge what is to be judged, as a person does."""
    with Path(name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row, value in zip(rows, right.tolist(), strict=True):
        row["reward"] = str(value) if row["judge"] == "1" else ""
    with Path(name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_judged_rows_are_worth_the_whole_log_and_half_of_them_are_hits(log: Path) -> None:
    code, out, _ = call("data", "label", "log.parquet", "--n", "1000", "--first", "hit", "--out", "j.csv")
    assert code == 0
    known, right = columns()
    assert "1,000 of 4,000 rows to judge" in out
    hits = sum(map(bool, known["hit"]))
    assert f"{min(hits, 500)} of them where hit is true" in out
    assert "skg-bench estimate j.csv" in out
    filled("j.csv", right)
    made = skg_bench.estimate("j.csv", {"fewer": "fewer"})
    assert made.missing == N - 1000
    values = {(each.policy, each.estimator): each for each in made.values}
    truth = float((np.array(known["fewer"]) / 0.5 * right).sum() / (np.array(known["fewer"]) / 0.5).sum())
    low, high = values["fewer", "snips"].interval
    assert low < truth < high
    assert high - low < 0.1
    assert not any(each.withheld for each in made.weights if each.policy == "log")


def test_the_same_seed_draws_the_same_rows_and_texts_are_guarded(log: Path) -> None:
    for name, seed in (("a.csv", "0"), ("b.csv", "0"), ("c.csv", "1")):
        assert call("data", "label", "log.parquet", "--n", "50", "--seed", seed, "--out", name)[0] == 0
    a, b, c = (Path(name).read_text() for name in ("a.csv", "b.csv", "c.csv"))
    assert a == b != c
    assert "'=1+1" in a
    assert Path("a.csv").stat().st_mode & 0o077 == 0


def test_a_sheet_that_nobody_has_filled_in_yet_is_named(log: Path) -> None:
    assert call("data", "label", "log.parquet", "--n", "50", "--out", "j.csv")[0] == 0
    assert "fill in reward where judge is 1" in refused("estimate", "j.csv", "--policy", "new=fewer")


def test_a_sheet_of_the_drawn_rows_alone_is_refused(log: Path) -> None:
    """Its value was six times what it is: each row stands for others, too."""
    assert call("data", "label", log.name, "--n", "20", "--out", "j.csv")[0] == 0
    filled("j.csv", columns()[1])
    head, *rows = Path("j.csv").read_text("utf-8").splitlines(keepends=True)
    judge = head.split(",").index("judge")
    Path("drawn.csv").write_text("".join([head, *(row for row in rows if row.split(",")[judge] == "1")]), "utf-8")
    assert call("estimate", "j.csv", "--policy", "even=0.5")[0] == 0
    assert "20 rows, all of them drawn, which stand for 4,000" in refused("estimate", "drawn.csv", "--policy", "a=0.5")


def test_a_sheet_on_which_other_rows_were_judged_than_drawn_is_refused(log: Path) -> None:
    head, drawn, other = "user,propensity,judge,reward,reward_propensity\n", "a,0.5,1,1,0.5\n", "b,0.5,0,,0.5\n"
    for rows, says in (
        ("a,0.5,1,,0.5\n", "1 of 3 drawn rows have no reward, such as row 5"),
        ("b,0.5,0,0,0.5\n", "row 5: judge is '0'; its reward is filled in, and the row was not drawn"),
        ("b,0.5,anna,0,0.5\n", "row 5: judge is 'anna'; 1 or 0 is needed"),
    ):
        Path("j.csv").write_text(head + drawn + other + drawn + rows)
        assert says in refused("estimate", "j.csv", "--policy", "new=0.5")


def test_texts_with_line_ends_of_any_kind_stay_in_their_row(log: Path) -> None:
    texts = ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", "x\r"]
    table = {"message": texts, "propensity": [0.5] * 6, "fewer": [0.4] * 6}
    pq.write_table(pa.table(table), "ends.parquet")
    assert call("data", "label", "ends.parquet", "--n", "5", "--out", "j.csv")[0] == 0
    with Path("j.csv").open(newline="") as file:
        assert [row["message"] for row in csv.DictReader(file)] == texts
    filled("j.csv", np.arange(6.0))
    assert skg_bench.estimate("j.csv", {"fewer": "fewer"}).missing == 1


@pytest.mark.parametrize("many", [0, 3, 40, 97, 100])
@pytest.mark.parametrize("n", [2, 10, 60, 99])
def test_chances_are_those_of_the_draw(many: int, n: int) -> None:
    chosen, chance = drawn_rows(np.arange(100) < many, n, 0)
    assert chosen.sum() == n
    assert chance.min() > 0
    assert (1 / chance[chosen]).sum() == pytest.approx(100)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("--n 50", "--out"),
        ("--n 50 --out j.txt", "name a new CSV file"),
        ("--n 50 --out j.csv --first hits", "hit"),
        ("--n 50 --out j.csv --first message", "true or false is needed"),
        ("--n 50 --out j.csv --first propensity", "propensity is 0.5; true or false is needed"),
        ("--n 4000 --out j.csv", "draw fewer"),
        ("--n 1 --first hit --out j.csv", "draw two"),
        ("curator.llm=recorded --out j.csv", "KEY=VALUE: log.parquet is a table"),
        ("--out j.csv --price 1", "--price"),
        ("--out j.csv --price 0", "--price"),
        ("--read j.csv", "--read"),
    ],
)
def test_what_cannot_be_drawn_is_refused(log: Path, words: str, wanted: str) -> None:
    assert wanted in refused("data", "label", "log.parquet", *words.split())
    assert not Path("j.csv").exists()


def test_a_log_with_rewards_or_lists_and_a_file_that_is_there_are_refused(log: Path) -> None:
    known, right = columns()
    pq.write_table(pa.table({**known, "reward": right}), "r.parquet")
    assert "has a column 'reward'" in refused("data", "label", "r.parquet", "--out", "j.csv")
    pq.write_table(pa.table({"propensity": [0.5] * 9, "could": [[1, 2]] * 9}), "l.parquet")
    assert "holds lists" in refused("data", "label", "l.parquet", "--n", "3", "--out", "j.csv")
    Path("j.csv").write_text("rewards")
    assert "is there already" in refused("data", "label", "log.parquet", "--n", "3", "--out", "j.csv")
    assert "missing is no run directory" in refused("data", "label", "missing", "--first", "hit")


@pytest.mark.parametrize("words", ["--page j.html", "--read j.csv", "--price 3", "--next 5", "--judge exact"])
def test_what_a_run_does_not_take_with_first_is_refused(tmp_path: Path, words: str) -> None:
    option = words.split()[0]
    said = refused("data", "label", str(tmp_path), "--first", "hit", "--out", "j.csv", *words.split())
    assert f"{option}: {tmp_path} is a run; with --first it takes --arm, --n, --first, --seed and --out" in said
