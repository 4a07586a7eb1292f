"""Effects over s and t, the worth of books, and the order control, from runs and by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skg_bench
from experiments.learning_over_time import analysis
from skg_bench.analysis.comparison.learning_effect import _doubling, learning_effect
from skg_bench.analysis.comparison.order_control import order_control, rises
from skg_bench.analysis.comparison.transfer_matrix import hindsight, split, transfer_matrix
from skg_bench.analysis.comparison.turn_bins import bin_names, bin_table, by_bin, utility
from skg_bench.analysis.counts.metrics import Utility
from skg_bench.analysis.counts.tally import events
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from tests.runs import logs_alone

BOOKS = (0, 20, 45)
DENSE = (
    "users=9", "workers=1", "weeks=2", "simulator.rated_share=0.5", "simulator.accept=0.9", "policy.threshold=0.3",
    "simulator.concentration=3", "seed=14", "simulator.volume_spread=0.1", "simulator.active_low=0.9",
)  # fmt: skip
ARMS = ", ".join([
    "skg: []", "never: [policy=never, curator=none]",
    *(f"frozen_{s}: [freeze=all, freeze_at={s}]" for s in BOOKS),
    *(f"book_{s}: ['fork=skg@{s}', book=hindsight, curator=none]" for s in BOOKS),
])  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two weeks of nine users."""
    with logs_alone():
        return skg_bench.run([*DENSE, f"arms={{{ARMS}}}", f"out={tmp_path_factory.mktemp('turns') / 'run'}"])


def g(run: Run, arm: str) -> dict[tuple[int, int], float]:
    """Utility by user and turn, by the definition."""
    prices = Utility.of(run.config)
    rows = run.turns(arm, ["answer_correct", "cost_usd", "latency_ms", "offer"]).to_pylist()
    return {
        (r["user"], r["turn"]): (1.0 if r["answer_correct"] else -prices.wrong)
        - prices.usd * r["cost_usd"]
        - prices.second * r["latency_ms"] / 1000
        - prices.offer * (r["offer"] is not None)
        for r in rows
    }


def stretch(values: dict[tuple[int, int], float], first: int, last: int, least: int = 0) -> list[float]:
    """Means of the users who have more than `least` turns, over turns from `first` until before `last`."""
    users = sorted({u for u, _ in values})
    groups = [[x for (v, t), x in values.items() if v == u and first <= t < last] for u in users]
    n = [sum(v == u for v, _ in values) for u in users]
    return [float(np.mean(x)) if x and k > least else float("nan") for x, k in zip(groups, n, strict=True)]


def test_a_stretch_is_the_mean_of_a_users_turns_in_it(run: Run) -> None:
    requests = events(run)
    means = by_bin(utility(run, "skg", requests, Utility.of(run.config)), requests, [0, 20, 45])
    for k, (first, last) in enumerate(((0, 20), (20, 45), (45, 10_000))):
        assert means[:, k] == pytest.approx(stretch(g(run, "skg"), first, last), nan_ok=True)
    later = by_bin(np.ones(len(requests)), requests, [30, 60])  # turns before the first are in none
    assert set(later[~np.isnan(later)]) == {1.0}
    assert np.isnan(by_bin(np.ones(len(requests)), requests, [0, 100_000])[:, 1]).all()


def test_a_table_has_the_mean_and_the_number_of_users_of_each_cell(run: Run) -> None:
    requests = events(run)
    values = np.random.default_rng(0).normal(size=(2, len(requests.users), 3))
    values[1, :, 0] = np.nan
    values[0, 2:, 2] = np.nan
    cells = bin_table(values, requests)
    assert cells.n.tolist() == [[9, 9, 2], [0, 9, 9]]
    assert cells.mean[0, 2] == pytest.approx(values[0, :2, 2].mean())
    assert np.isnan(cells.mean[1, 0])
    wide = (cells.high - cells.low)[~np.isnan(cells.mean)]
    assert (wide > 0).all()
    # a band that holds for one cell is narrower than one that holds for all
    single = bin_table(values[:1, :, :1], requests)
    assert cells.high[0, 0] - cells.low[0, 0] > single.high[0, 0] - single.low[0, 0]


def test_bands_of_a_table_hold_all_of_it_in_nineteen_of_twenty_runs() -> None:
    """Correlated columns, as those of one user are."""
    rng, held = np.random.default_rng(1), []

    class On:
        users = np.arange(30)
        seed = 0

    for _ in range(300):
        values = rng.normal(size=(1, 30, 1)) + rng.normal(size=(3, 30, 4))
        cells = bin_table(values, On)
        held.append(((cells.low <= 0) & (cells.high >= 0)).all())
    assert 0.91 <= np.mean(held) <= 0.99


@pytest.mark.req("P31")
def test_effects_are_live_minus_frozen_from_the_freeze_on(run: Run) -> None:
    twins = learning_effect(run)
    assert (twins.live, twins.frozen, twins.since) == ("skg", ("frozen_0", "frozen_20", "frozen_45"), BOOKS)
    median = np.median(np.bincount(run.turns("skg")["user"].to_numpy()))
    assert twins.edges == (*BOOKS, *(edge for edge in (50, 100, 200) if edge < median))
    bounds = [*twins.edges, 10_000]
    for i, s in enumerate(BOOKS):
        for k in range(len(twins.edges)):
            if bounds[k] < s:
                assert twins.effect.n[i, k] == 0
                continue
            live, frozen = (stretch(g(run, arm), bounds[k], bounds[k + 1]) for arm in ("skg", f"frozen_{s}"))
            assert twins.effect.mean[i, k] == pytest.approx(np.nanmean(np.subtract(live, frozen)))
    assert twins.effect.mean[0, 2] != 0
    with pytest.raises(UsageError, match="has no arm that is never frozen at a turn"):
        learning_effect(run, "never")


def test_the_matrix_holds_the_worth_of_every_book_in_every_stretch(run: Run) -> None:
    transfer = transfer_matrix(run)
    assert (transfer.trunk, transfer.books) == ("skg", BOOKS)
    bounds = [*BOOKS, 10_000]
    for i, s in enumerate(BOOKS):
        for k in range(3):
            value, none = (stretch(g(run, arm), bounds[k], bounds[k + 1], s) for arm in (f"book_{s}", "book_0"))
            assert transfer.value.mean[i, k] == pytest.approx(np.nanmean(value))
            assert transfer.worth.mean[i, k] == pytest.approx(np.nanmean(np.subtract(value, none)))
    assert transfer.worth.mean[2, 0] != 0  # a later book on earlier requests
    assert transfer.forward_transfer is not None
    own, empty = (
        np.array([stretch(g(run, arm.format(s)), s, bounds[k + 1], s) for k, s in enumerate(BOOKS) if s])
        for arm in ("book_{}", "book_0")
    )
    assert transfer.forward_transfer.mean == pytest.approx(np.nanmean(np.nanmean(own - empty, axis=0)))
    assert transfer.backward_transfer is not None
    assert transfer.backward_transfer.mean == pytest.approx(transfer.backward.mean[0, 0])


def test_the_empty_book_and_one_more_are_enough(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    trunk, arms = hindsight(run)
    two = {s: arms[s] for s in BOOKS[:2]}
    monkeypatch.setattr("skg_bench.analysis.comparison.transfer_matrix.hindsight", lambda _: (trunk, two))
    assert transfer_matrix(run).books == BOOKS[:2]


def test_a_book_is_worth_after_its_turn_what_the_frozen_arm_is(run: Run) -> None:
    requests, prices = events(run), Utility.of(run.config)
    for s in BOOKS:
        book, frozen = (utility(run, f"{kind}_{s}", requests, prices) for kind in ("book", "frozen"))
        assert np.array_equal(book[requests.turn > s], frozen[requests.turn > s])


def test_what_a_book_is_worth_changes_by_learning_and_drift_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    value = rng.normal(size=(5, 40, 5))
    part = split(value)
    change = part.diagonal[:, 1:] - part.diagonal[:, :-1]
    assert change == pytest.approx(part.learning[:, 1:] + part.drift[:, 1:], abs=1e-12)
    assert (part.worth[0] == 0).all()
    assert np.isnan(part.learning[:, 0]).all()
    assert np.isnan(part.backward[:, -2:]).all()
    assert part.backward[:, 1] == pytest.approx(value[4, :, 1] - value[2, :, 1])


def growing(fade: float) -> np.ndarray:
    """Books of which each knows a tenth more than the one before, and whose worth fades from stretch to stretch."""
    book, stretch, part = np.meshgrid(np.arange(4), np.arange(4), np.arange(4), indexing="ij")
    known = np.where(part < book, 0.1 * (1 - fade) ** np.maximum(stretch - 1 - part, 0), 0.0)
    value: np.ndarray = known.sum(axis=2)
    return value[:, None]


@pytest.mark.parametrize(("fade", "drift"), [(0.0, 0), (0.3, -1)])
def test_drift_is_there_only_if_an_unchanged_book_fades(fade: float, drift: int) -> None:
    part = split(growing(fade))
    assert np.sign(np.round(part.drift[0, 2:], 9)).tolist() == [drift] * 2
    assert part.learning[0, 1:] == pytest.approx([0.1] * 3)


def test_what_is_forgotten_shows_as_a_negative_backward_transfer() -> None:
    value = growing(0.0)
    value[3, 0, 0] -= 0.4  # the last book has lost what it knew of the first stretch
    assert split(value).backward[0, 0] == pytest.approx(-0.2)
    assert split(value).backward[0, 1] == pytest.approx(0.1)  # of the second it knows more


def test_a_run_without_books_says_which_arms_it_takes(run: Run) -> None:
    few = Run(run.path)
    few.__dict__["manifest"] = {**run.manifest, "compositions": {"book_20": run.manifest["compositions"]["book_20"]}}
    with pytest.raises(UsageError, match=r"has books of skg at turns \[20\]; 0 and another one are needed"):
        transfer_matrix(few)
    few.__dict__["manifest"] = {**run.manifest, "compositions": {}}
    with pytest.raises(UsageError, match=r"none of the arms that it takes: .fork=ARM@TURN,book=hindsight"):
        transfer_matrix(few)


# --------------------------------------------------------------------------------------------------------- order


def test_a_rise_is_the_last_quarter_less_the_first(run: Run) -> None:
    requests = events(run)
    values = requests.turn.astype(np.float64)
    n = np.bincount(requests.row)
    rise = rises(values, requests)
    for u in range(len(n)):
        quarter = np.arange(n[u]) * 4 // n[u]
        expected = np.arange(n[u])[quarter == 3].mean() - np.arange(n[u])[quarter == 0].mean()
        assert rise[u] == pytest.approx(expected)


@pytest.mark.req("P31")
@pytest.mark.usefixtures("bare")
def test_the_order_control_sets_a_rise_beside_that_of_the_same_requests_permuted(run: Run, tmp_path: Path) -> None:
    few = "arms={skg: [], never: [policy=never, curator=none]}"
    other = skg_bench.run([*DENSE, few, "simulator.order=permuted", f"out={tmp_path / 'permuted'}"])
    controls = order_control(run, other, "skg")
    assert [control.what for control in controls] == ["utility", "hit_rate"]
    for control in controls:
        assert control.by_order.mean == pytest.approx(control.ordered.mean - control.permuted.mean)
        assert control.by_order.se > 0
    hits = {(r["user"], r["turn"]): float(not r["fallback_to_llm"]) for r in other.turns("skg").to_pylist()}
    users = sorted({u for u, _ in hits})
    each = []
    for u in users:
        user_hits = [hits[u, t] for t in range(sum(v == u for v, _ in hits))]
        quarter = [t * 4 // len(user_hits) for t in range(len(user_hits))]
        means = [np.mean([h for h, q in zip(user_hits, quarter, strict=True) if q == k]) for k in (0, 3)]
        each.append(means[1] - means[0])
    assert controls[1].permuted.mean == pytest.approx(np.mean(each))
    for pair, message in (((other, run), "they have permuted and time"), ((run, run), "differ in nothing")):
        with pytest.raises(UsageError, match=message):
            order_control(*pair)


def test_runs_that_differ_in_more_than_the_order_are_no_order_control(run: Run) -> None:
    other: Any = Run(run.path)
    config = {**run.config, "refit_every": 7, "simulator": {**run.config["simulator"], "order": "permuted"}}
    other.__dict__["manifest"] = {**run.manifest, "config": config}
    with pytest.raises(UsageError, match=r"differ in refit_every, simulator\.order"):
        order_control(run, other)


def test_the_tables_of_the_experiment_are_drawn(run: Run) -> None:
    twins, books = learning_effect(run), transfer_matrix(run)
    assert bin_names(books.books) == ["0–19", "20–44", "45 on"]
    assert analysis.cell(twins.effect, 1, 0) == ""
    mean, low, high = (getattr(twins.effect, name)[0, 0] for name in ("mean", "low", "high"))
    assert analysis.cell(twins.effect, 0, 0) == f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"
    drawn = analysis.effect_table(twins), analysis.worth_table(books), analysis.parts_table(books)
    assert [len(table.rows) for table in drawn] == [4, 3, 4]
    assert analysis.said(None) == "nobody got there"


def test_a_run_without_swaps_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match=r"has no arm 'swap_threshold'.*skg-bench run experiment=learning_over_time"):
        analysis.analyse(run)


@pytest.mark.parametrize(
    ("turns", "edges"), [(50, []), (51, [50]), (100, [50]), (101, [50, 100]), (401, [50, 100, 200, 400])]
)
def test_bins_double_as_long_as_half_of_the_users_reach_them(turns: int, edges: list[int]) -> None:
    assert _doubling(np.array([5, turns, 1000])) == edges
