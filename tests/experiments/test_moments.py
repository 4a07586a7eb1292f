"""Moments of public logs: tolerances by rule, the simulated users within them as the report says, and planted flaws."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.moments.analysis import (
    RULES,
    USERS,
    WEEKS,
    PublicMoment,
    analyse,
    moments_table,
    public_moments,
    source_lines,
)
from experiments.moments.flaws import FLAWS
from experiments.moments.measure import Stream, of_conversations, of_repeats, of_volumes, simulated, stream
from experiments.moments.outside import COMPUTED, near_misses, of_sgd, of_uss, word_overlap
from skg_bench.app.readmes import cell, tables
from skg_bench.core.calendar import DAY
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CHECKOUT
from skg_bench.embedder.precomputed import Precomputed
from skg_bench.simulator.answers.corpus import load_corpus
from skg_bench.simulator.datasets import datasets
from tests.simulator.users import assistant

RIGHT = 0.9  # conf/llm/simulated.yaml


@pytest.fixture(scope="module")
def values() -> dict[str, float]:
    world = assistant()
    return simulated(world, load_corpus(), Precomputed(None).embed, stream(world, USERS, WEEKS), RIGHT)


def moment(rule: str, *values: float) -> PublicMoment:
    return PublicMoment("some", "", rule, [{"value": value, "source": "some"} for value in values])


def test_a_tolerance_follows_from_the_figures_by_one_of_four_rules() -> None:
    assert moment("range", 0.4, 0.3).tolerance == pytest.approx((0.27, 0.44))
    assert moment("share", 0.4).tolerance == pytest.approx((0.25, 0.55))
    assert moment("rare", 0.03).tolerance == pytest.approx((0.01, 0.09))
    assert moment("size", 8.0).tolerance == pytest.approx((6.0, 10.0))
    assert moment("size", 8.0).within(10.0)
    assert not moment("size", 8.0).within(10.1)
    for known in public_moments().moments.values():  # the rule is that of the kind of figure, never chosen
        assert known.rule in RULES
        assert (known.rule == "range") == (len(known.figures) > 1), known.name
        assert (known.rule == "rare") == (len(known.figures) == 1 and known.values[0] < 0.15), known.name


def test_every_figure_has_a_source_and_every_source_a_figure() -> None:
    known = public_moments()
    assert len(known.moments) >= 12
    used = {figure["source"] for each in known.moments.values() for figure in each.figures}
    assert used == set(known.sources)
    assert all(line.startswith("* `") for line in source_lines(known))


def test_the_report_holds_the_simulated_users_as_they_are(values: dict[str, float]) -> None:
    known = public_moments()
    written = next(
        table for table in tables((CHECKOUT / "reports" / "moments.md").read_text("utf-8")) if "within" in table.columns
    )
    assert [tuple(row) for row in moments_table(known, values).rows] == list(written.rows)
    assert {name for name, each in known.moments.items() if not each.within(values[name])} == {
        name for name, each in known.moments.items() if each.stays
    }


def test_a_flaw_in_each_of_five_parts_moves_its_own_moment_out_of_tolerance(values: dict[str, float]) -> None:
    world, corpus, known = assistant(), load_corpus(), public_moments()
    assert {flaw.part for flaw in FLAWS} == {"habit", "gaps", "wordings", "ratings", "volumes"}
    for flaw in FLAWS:
        flawed, flawed_corpus = flaw.planted(world, corpus)
        value = simulated(flawed, flawed_corpus, Precomputed(None).embed, stream(flawed, 20, 8), RIGHT)[flaw.moment]
        assert known.moments[flaw.moment].within(values[flaw.moment]), flaw
        assert not known.moments[flaw.moment].within(value), flaw


def test_moments_are_those_of_a_stream_that_was_counted_by_hand() -> None:
    minutes = [0, 1, 120, 121, 24 * 60 + 200, 9 * 24 * 60]  # user 0, then one request of user 1
    time = np.array([60 * minute for minute in minutes] + [0], np.int64)
    requests = Stream(
        key=np.arange(7, dtype=np.uint64),
        user=np.array([0, 0, 0, 0, 0, 0, 1]),
        number=np.array([0, 1, 2, 3, 4, 5, 0]),
        time=time,
        text=np.array([10, 11, 10, 12, 13, 10, 10]),
        about=np.array([0, 1, 0, 1, 7, 0, 0]),
        intent=np.array([0, 0, 0, 0, -1, 0, 0]),
        days=14,
        users=2,
    )
    assert of_repeats(requests) == {
        "again": 3 / 7, "verbatim": 2 / 7, "own_words": 2 / 3, "within_a_day": 2 / 3, "after_a_week": 1 / 3,
    }  # fmt: skip
    # conversations: (0, 1), (0, 1), one-off, 0, and user 1's; in two of the five a value changes once
    assert of_conversations(requests) == {"turns": 7 / 5, "five_minutes": 1.0, "changed": 2 / 7}
    volumes = of_volumes(requests)
    assert volumes["a_day"] == 1.0  # days of 4, 1, 1 and 1
    assert volumes["skew"] == 7 / 4
    assert volumes["active"] == 4 / 28
    assert volumes["a_week"] == 7 / 3
    assert volumes["weekend"] == 0.0
    assert time.max() // DAY == 9


def test_wordings_are_compared_by_words_and_by_vectors() -> None:
    assert word_overlap([["egg time", "time, egg?"], ["a b", "b c"]]) == pytest.approx((1 + 1 / 3) / 2)
    vectors = np.array([[9, 0], [8, 1], [0, 9], [7, 0]], np.int16)
    assert near_misses(vectors, np.array([0, 0, 1, 1], np.int32)) == 0.75  # only the second has its own kind nearest


@pytest.mark.parametrize(("name", "compute"), [("sgd", of_sgd), ("uss", of_uss)])
def test_quoted_figures_are_those_of_the_files(
    name: str, compute: Callable[..., dict[str, float]], published: Callable[[str], Path]
) -> None:
    published(name)
    assert COMPUTED[name] is compute
    figures = compute(datasets()[name])
    quoted = {
        each.name: figure["value"]
        for each in public_moments().moments.values()
        for figure in each.figures
        if figure["source"] == name
    }
    assert {key: float(f"{value:.3g}") for key, value in figures.items()} == quoted


def test_who_asks_for_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="simulated users who ask"):
        analyse(["simulator=guardian"])
    with pytest.raises(UsageError, match="moments do not depend on users=10: 200 users and 26 weeks are fixed"):
        analyse(["simulator=clinc150", "users=10"])


def test_the_report_has_seen_all_flaws_and_the_files_of_others() -> None:
    for part in ("habit", "gaps", "wordings", "ratings", "volumes"):
        assert cell(CHECKOUT, f"moments / Planted flaws / {part} / out of tolerance") == "yes"
    for name in ("words", "overlap", "near_miss", "changed", "miss_if_right"):
        place = f"moments / Figures of public corpora, computed again / {name}"
        assert cell(CHECKOUT, f"{place} / now") == cell(CHECKOUT, f"{place} / published here")
