"""The baseline file: what is written is read, and what is not whole is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis.gate import baseline as baselines
from skg_bench.analysis.gate.baseline import CUMULATIVE, MARGINS, Baseline
from skg_bench.analysis.gate.panel import Panel
from skg_bench.core.errors import UsageError
from tests.analysis.gate.panels import made, worse


def file(folder: Path, change: dict[str, Any] | None = None, panel: Panel | None = None) -> Path:
    path = folder / "baseline.json"
    path.write_text(baselines.text(Baseline(panel or worse([50, 60]), MARGINS, CUMULATIVE)), "utf-8")
    if change:
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    return path


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, users: int, turns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    panel = made(rng.random((users, turns)) < 0.3, rng.random((users, turns)) < 0.2, "x", first=int(rng.integers(9)))
    path = file(tmp_path_factory.mktemp("b"), panel=panel)
    again = baselines.read(path)
    assert (again.margins, again.cumulative) == (MARGINS, CUMULATIVE)
    for name in ("arm", "digests", "made"):
        assert getattr(again.panel, name) == getattr(panel, name)
    for name in ("users", "turns", "hit", "wrong"):
        assert np.array_equal(getattr(again.panel, name), getattr(panel, name)), name
    assert all(np.array_equal(again.panel.counts[name], panel.counts[name]) for name in panel.counts)
    assert baselines.text(again) == path.read_text("utf-8")


def test_a_user_is_a_line_so_that_a_diff_names_who_changed(tmp_path: Path) -> None:
    before, after = (baselines.text(Baseline(worse(lost), MARGINS, CUMULATIVE)) for lost in ([5, 5, 5], [5, 6, 5]))
    changed = [b for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert [line.split(":")[0].strip(' "') for line in changed if "[" in line] == [str(u) for u in range(1, 60, 3)]
    assert len(before) < 60 * 200 + 2000


def test_a_margin_that_a_person_edited_counts(tmp_path: Path) -> None:
    baseline = baselines.read(file(tmp_path, {"margins": {"hit_rate": 0.02}, "cumulative": 3}))
    assert (baseline.margins, baseline.cumulative) == ({"hit_rate": 0.02}, 3.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 2"),
        ({"margins": {"hit_rate": 0.0}}, "must be above 0"),
        ({"margins": {}}, "must name a metric"),
        ({"cumulative": 0.5}, "cumulative=0.5"),
        ({"users": {}}, "corrupt"),
        ({"users": {"0": [4, [4, 0, 0, 0, 0, 0], "????"]}}, "corrupt"),
        ({"users": {"0": [4, [4, 0], "AAAA"]}}, "corrupt"),
        ({"digests": {}}, "corrupt"),
        ({"made": None}, "corrupt"),
        ({"counts": ["turn", "hit", "wrong", "wrong_hit", "latency", "cash"]}, "corrupt"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = file(tmp_path, change)
    with pytest.raises(UsageError, match=str(path)) as error:
        baselines.read(path)
    assert message in str(error.value)


def test_totals_that_are_not_those_of_the_turns_are_refused(tmp_path: Path) -> None:
    path = file(tmp_path)
    text = path.read_text("utf-8")
    assert "[1000, 100, 50, 0, 0, 0]" in text
    path.write_text(text.replace("[1000, 100, 50, 0, 0, 0]", "[1000, 100, 40, 0, 0, 0]", 1), "utf-8")
    with pytest.raises(UsageError, match="totals of wrong are not those of the outcomes"):
        baselines.read(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "\x00\xff"])
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="corrupt"):
        baselines.read(path)


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--baseline .*nothing.json --update RUN"):
        baselines.read(tmp_path / "nothing.json")
