"""Widths of intervals by the number of intents: what is read from a comparison, and medians of corpora side by side."""

from pathlib import Path

import pytest

from experiments.known_truth.widths import ARMS, CORPORA, ContrastWidth, contrast_widths, medians_table
from skg_bench.app.api import compare
from skg_bench.app.api import run as simulate
from skg_bench.simulator.answers.corpora_by_name import corpus_of


def width(intents: int, new: float, mean: float, verdict: str = "better") -> ContrastWidth:
    return ContrastWidth(f"of {intents}", intents, 30, "skg", mean, new, new / 2, 9.0, verdict)


def test_medians_are_over_the_contrasts_of_a_corpus_and_relative_to_the_first() -> None:
    few = [width(120, 0.02, -0.01), width(120, 0.04, 0.01), width(120, 0.4, 0.1, "inconclusive")]
    many = [width(300, 0.01, 0.02), width(300, 0.02, 0.02, "worse"), width(300, 0.5, 0.02)]
    assert medians_table([*few, *many]).rows == [
        ("30", "120", "0.0400", "1.00", "4.00", "0.0200", "2 of 3"),
        ("30", "300", "0.0200", "0.50", "1.00", "0.0100", "3 of 3"),
    ]


def test_a_width_is_that_of_the_interval_that_a_comparison_prints(tmp_path: Path) -> None:
    size = ("users=4", "weeks=1", "embedder=hashing", "workers=1")
    compared = compare(simulate([ARMS, "reference=never", *size, f"out={tmp_path / 'run'}"], progress=False))
    results = {result.arm: result for result in contrast_widths("builtin", 120, compared)}
    assert set(results) == {"skg", "frozen_100", "exact_match", "recipe_prompted", "oracle"}
    rows = [row for row in compared.to_pandas().to_dict("records") if row["metric"] == "utility"]
    assert len(rows) == len(results)
    for row in rows:
        result = results[row["arm"]]
        assert result.new == pytest.approx(row["high"] - row["low"], nan_ok=True)
        assert result.these == pytest.approx(row["high_these"] - row["low_these"], nan_ok=True)
        assert (result.mean, result.users) == (row["difference"], 4)


def test_the_corpora_that_are_set_side_by_side_have_as_many_intents_as_is_told() -> None:
    assert [len(corpus_of(corpus.split(",")).intents) for corpus in CORPORA[:2]] == [120, 300]
