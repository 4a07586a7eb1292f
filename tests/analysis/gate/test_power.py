"""How often the gate is wrong, reduced; the whole table: `skg-bench experiment gate_power`."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.gate_power.analysis import ENOUGH, NOT_FAILED, NOT_PASSED, Line, better, lines, markdown
from experiments.gate_power.builds import MEANS, TAILS, Few, Jittered, Pool, build, groups, planted, play, pool
from skg_bench.analysis.gate.judge import GateState
from skg_bench.analysis.gate.panel import Panel
from skg_bench.core.grid import SCALE
from skg_bench.core.package import DATA
from skg_bench.embedder.precomputed import Precomputed
from tests.runs import logs_alone

SIZE = ("users=40", "weeks=2", "seed=1", "simulator.messages_per_day=6", "simulator.volume_spread=0.1")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Panel, Panel]]:
    """A small population before, with jittered vectors, and with another threshold."""
    folder = tmp_path_factory.mktemp("runs")
    with logs_alone():
        before = play(folder / "before", SIZE)
        jittered = play(folder / "jittered", SIZE, jitter=1)
        other = play(folder / "other", (*SIZE, "policy.threshold=0.4"))
    return {"jittered": (before, jittered), "threshold": (before, other)}


def made(seed: int = 0, n: int = 400) -> Pool:
    """A pool of which the law is known."""
    rng = np.random.default_rng(seed)
    harm = {rule.metric: rng.normal(0.0, 2.5 * rule.margin, n) for rule in MEANS}
    trials, turns = {name: np.full(n, 1000.0) for name in harm}, np.full((n, 2), 500)
    return Pool("made", harm, trials, rng.normal(0.0, 0.005, (n, 2)), turns).harmless


def test_a_jittered_build_changes_answers_and_fails_nothing(pairs: dict[str, tuple[Panel, Panel]]) -> None:
    (held,) = groups(*pairs["jittered"], 40)
    assert not held.same
    tails = {rule.metric for rule in TAILS}  # which 40 users are too few for
    assert {judged.metric for judged in held.judged if judged.state != "pass"} == tails


def test_groups_are_panels_of_their_own(pairs: dict[str, tuple[Panel, Panel]]) -> None:
    (whole,) = groups(*pairs["threshold"], 40)
    tails = {rule.metric for rule in TAILS}
    halves = list(groups(*pairs["threshold"], 20))
    assert len(halves) == 2
    for at, harm in enumerate(whole.harms):
        if harm.metric in tails:  # of the worst of all
            continue
        assert np.array_equal(harm.each, np.concatenate([half.harms[at].each for half in halves]))


def test_a_pool_has_no_true_harm_and_a_build_what_is_added(pairs: dict[str, tuple[Panel, Panel]]) -> None:
    source = pool("both", [pairs["threshold"], pairs["jittered"]]).harmless
    assert len(source) == 80
    everybody, means = np.arange(80), [rule.metric for rule in MEANS]
    for harm in build(source, everybody, {})[: len(means)]:
        assert harm.each.mean() == pytest.approx(0.0, abs=1e-15)
    shifted = {harm.metric: harm.each.mean() for harm in build(source, everybody, {"right_hits": 0.02})}
    assert shifted.keys() >= set(means)
    assert [shifted[name] for name in means] == pytest.approx([0.02 * (n == "right_hits") for n in means], abs=1e-15)


def test_harm_to_few_is_planted_with_its_true_value(pairs: dict[str, tuple[Panel, Panel]]) -> None:
    source = made()
    for rule in TAILS:
        few = planted(source, rule, rule.margin)
        rows = np.random.default_rng(1).integers(0, len(source), 40_000)
        harms = {harm.metric: harm.each.mean() for harm in build(source, rows, {}, few)}
        assert harms[rule.metric] == pytest.approx(rule.margin, rel=0.05)
    harms = {harm.metric: harm.each.mean() for harm in build(source, rows, {}, Few(0.05, 0.05))}
    assert harms["err_per_request"] == pytest.approx(0.0025, abs=5e-4)
    assert harms["worst_users"] == pytest.approx(0.05, rel=0.05)


def test_harm_is_planted_with_its_true_value_in_a_pool_that_is_sorted() -> None:
    """A pool holds the users of one run after another."""
    source = made(n=4000)
    source = replace(source, halves=source.halves[np.argsort(source.halves.sum(axis=1))])
    for rule in TAILS:
        few = planted(source, rule, rule.margin)
        rows = np.random.default_rng(1).integers(0, len(source), 40_000)
        harms = {harm.metric: harm.each.mean() for harm in build(source, rows, {}, few)}
        assert harms[rule.metric] == pytest.approx(rule.margin, rel=0.05)


def test_the_gate_is_wrong_as_rarely_as_it_may_be() -> None:
    results = list(lines(made(), 120, seed=3))
    assert len(results) == 2 + 2 * len((*MEANS, *TAILS)) + 3
    for line in results:
        assert line.holds, line.cells()
    none, *_, five, drift, lost = results
    assert (none.mistakes, none.states.count("fail")) == (0, 0)
    assert five.states.count("fail") >= 0.95 * 120
    assert drift.states.count("fail") <= 0.05 * 120
    assert lost.states.count("fail") >= 0.95 * 120
    assert markdown(results, 400).count("\n| made |") == len(results)


def test_an_improvement_has_to_pass() -> None:
    source = made()
    gain = {"utility": -0.02, "utility_late": -0.02, "err_per_request": -0.01, "right_hits": 0.01}
    harm = {name: each / 5 + gain.get(name, 0.0) for name, each in source.harm.items()}
    improved = Pool("better", harm, source.trials, source.halves - 0.01, source.half_turns)
    assert better(improved, 60, seed=3).mistakes <= 3
    assert better(source, 60, seed=3).wrong == NOT_PASSED


def states(**times: int) -> tuple[GateState, ...]:
    known: tuple[GateState, ...] = ("pass", "fail", "inconclusive")
    return tuple(state for state in known for _ in range(times.get(state.replace("pass", "passed"), 0)))


def test_a_line_knows_when_it_is_not_as_due() -> None:
    assert not Line("x", "none", "100", states(fail=60, passed=ENOUGH - 60), ("fail",)).holds  # upper limit 7.7 %
    assert Line("x", "none", "100", states(fail=50, passed=ENOUGH - 50), ("fail",)).holds
    assert not Line("x", "m", "100", states(passed=70, fail=ENOUGH - 70), ("pass",)).holds
    assert Line("x", "2 m", "50", states(fail=960, inconclusive=40), NOT_FAILED).mistakes == 40


def test_jitter_moves_every_vector_a_little_and_repeats() -> None:
    built_in = Precomputed(None)
    texts = (DATA / "corpus" / "one_offs.txt").read_text("utf-8").splitlines()[:200]
    before, after, other = built_in.embed(texts), Jittered(built_in, 1).embed(texts), Jittered(built_in, 2).embed(texts)
    assert np.array_equal(after[::-1], Jittered(built_in, 1).embed(texts[::-1]))
    assert Jittered(built_in, 1).digest != Jittered(built_in, 2).digest != built_in.digest
    assert (after != other).any(axis=1).all()
    moved = (after - before.astype(np.float64)) / SCALE
    assert moved.std() == pytest.approx(1e-3, rel=0.1)
    cosine = (after.astype(np.float64) * before).sum(axis=1) / SCALE**2
    assert (np.abs(1 - cosine) < 1e-3).all()
