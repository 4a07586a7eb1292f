"""A panel against a baseline: same bits, other panels, and what adds up between releases."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skg_bench.analysis.gate.against import Held, hold
from skg_bench.analysis.gate.baseline import CUMULATIVE, MARGINS
from skg_bench.analysis.gate.panel import EVENTS, Panel, panel
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import Bool
from skg_bench.core.run import Run
from tests.analysis.gate.panels import made, worse
from tests.analysis.synthetic import World, make_run


def held(new: Panel, base: Panel, factor: float = 1.0) -> Held:
    return hold(new, base, {name: factor * margin for name, margin in MARGINS.items()}, "baseline", "file.json")


def test_the_same_bits_pass_at_once() -> None:
    outcome = held(worse([50]), worse([50]))
    assert (outcome.state, outcome.same, outcome.judged) == ("pass", True, ())


def test_other_bits_with_the_same_totals_are_judged_and_pass() -> None:
    base = worse([50])
    outcome = held(replace(base, digests={**base.digests, "answer_correct": "other"}), base)
    assert (outcome.state, outcome.same, outcome.changed) == ("pass", False, ("answer_correct",))
    assert all(judgement.mean == 0 for judgement in outcome.judged)


def test_a_column_that_the_baseline_does_not_know_is_no_change_and_one_that_went_is() -> None:
    base = worse([50])
    assert held(replace(base, digests={**base.digests, "new": "x"}), base).same
    assert held(base, replace(base, digests={**base.digests, "old": "x"})).changed == ("old",)


def test_harm_is_positive_where_it_is_worse() -> None:
    hit, wrong = np.zeros((40, 100), np.bool_), np.zeros((40, 100), np.bool_)
    hit[:, :20], wrong[:, :4] = True, True
    fewer_hits, more_wrong = hit.copy(), wrong.copy()
    fewer_hits[:, 10:20], more_wrong[:, :6] = False, True
    base = made(hit, wrong, "a")
    harms = {judgement.metric: judgement.mean for judgement in held(made(fewer_hits, wrong, "b"), base).judged}
    assert harms == pytest.approx({"utility": 0.0, "err_per_request": 0.0, "err_per_hit": 0.2, "hit_rate": 0.1})
    harms = {judgement.metric: judgement.mean for judgement in held(made(hit, more_wrong, "c"), base).judged}
    assert harms == pytest.approx({"utility": 0.04, "err_per_request": 0.02, "err_per_hit": 0.1, "hit_rate": 0.0})


def test_users_without_a_hit_are_left_out_and_counted() -> None:
    base, new = worse([50]), worse([50])
    hit = new.hit.reshape(60, -1).copy()
    hit[:5] = False
    by_metric = {
        judgement.metric: judgement for judgement in held(made(hit, new.wrong.reshape(60, -1), "x"), base).judged
    }
    assert (by_metric["err_per_hit"].n, by_metric["err_per_hit"].excluded) == (55, 5)
    assert (by_metric["hit_rate"].n, by_metric["hit_rate"].excluded) == (60, 0)


def test_ten_passes_of_half_a_margin_do_not_lose_five() -> None:
    """Half a margin of utility is 2.5 wrong answers in 1,000 turns: two users of three lose 2, the third 4, or so."""
    versions = [worse([50 + 5 * step // 2, 51 + 5 * step // 2]) for step in range(11)]
    each = [held(new, base) for base, new in pairwise(versions)]
    assert [outcome.state for outcome in each] == ["pass"] * 10
    assert all(any(judged.worse for judged in outcome.judged) for outcome in each)
    since_release = [held(new, versions[0], CUMULATIVE).state for new in versions[1:]]
    stopped = since_release.index("fail")
    assert set(since_release[stopped:]) == {"fail"}
    lost = {
        judgement.metric: judgement.mean / judgement.margin
        for judgement in held(versions[stopped + 1], versions[0]).judged
    }
    assert max(lost.values()) <= CUMULATIVE + 0.5 < 5


def nothing(users: int) -> tuple[Bool, Bool]:
    return np.zeros((users, 9), np.bool_), np.zeros((users, 9), np.bool_)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (made(*nothing(60), "x", seed=7), "seed=7 there, 0 in the run"),
        (made(*nothing(60), "x", first=60), "60 users there, 60 in the run, 0 of them the same"),
        (made(*nothing(20), "x"), "20 users there, 60 in the run, 20 of them the same"),
        (made(*nothing(60), "x", events="f"), "the events differ"),
    ],
)  # fmt: skip
def test_a_baseline_of_another_panel_is_refused(other: Panel, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        held(worse([50]), other)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("uility", "'uility' cannot block; those that can are utility, hit_rate"),
        ("skills", "'skills' cannot block"),
        ("rated_ok", "no counts of ok, rated for metric 'rated_ok'; write it with --update"),
    ],
)
def test_a_metric_that_is_absent_is_refused(metric: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hold(worse([51]), worse([50]), {metric: 0.01}, "baseline", "file.json")


def test_another_price_list_is_another_panel() -> None:
    base = worse([50])
    dearer = replace(base, made={**base.made, "config": {**base.made["config"], "utility": {"wrong": 2.0}}})
    with pytest.raises(UsageError, match="utility="):
        held(base, dearer)


# ---------------------------------------------------------------------------------------------- read from a run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(
        tmp_path_factory.mktemp("runs") / "a", users=12, weeks=2, arms={"skg": World(), "never": World(hit=0)}
    )


def test_digests_do_not_depend_on_shards_or_on_the_order_of_a_dictionary(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "b"
    shutil.copytree(run.path, other)
    first, second = Run(other).shards("turns", "skg")
    whole = pa.concat_tables([pq.read_table(second), pq.read_table(first)]).unify_dictionaries()
    plain = [pc.cast(pa.string()) if pa.types.is_dictionary(pc.type) else pc for pc in whole.columns]
    mixed = [
        column.dictionary_encode() if pa.types.is_dictionary(old.type) else column
        for old, column in zip(whole.columns, plain, strict=True)
    ]
    pq.write_table(pa.table(mixed, whole.schema), first)
    second.unlink()
    assert panel(Run(other), "skg").digests == panel(run, "skg").digests


def test_every_column_has_a_digest_of_its_own_that_a_changed_value_changes(run: Run, tmp_path: Path) -> None:
    other = tmp_path / "b"
    shutil.copytree(run.path, other)
    shard = Run(other).shards("turns", "skg")[0]
    table = pq.read_table(shard)
    before = panel(run, "skg")
    for name, index, value in (("skill_score", 3, 0.123), ("answer_correct", 5, None), ("book_hash", 0, b"x" * 16)):
        values = table[name].to_pylist()
        values[index] = (not values[index]) if value is None else value
        at = table.schema.get_field_index(name)
        changed = table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))
        pq.write_table(changed, shard)
        after = panel(Run(other), "skg")
        assert [key for key in before.digests if before.digests[key] != after.digests[key]] == [name]
    assert EVENTS in before.digests


def test_totals_are_those_of_the_turns(run: Run) -> None:
    skg_panel = panel(run, "skg")
    table = run.turns("skg").to_pandas()
    assert skg_panel.counts["hit"].tolist() == (~table.fallback_to_llm).groupby(table.user).sum().tolist()
    assert skg_panel.counts["cost"] == pytest.approx(table.groupby("user").cost_usd.sum().to_numpy(), rel=1e-8)
    assert skg_panel.turns.tolist() == table.groupby("user").size().tolist()
    assert skg_panel.wrong.tolist() == (~table.answer_correct).tolist()
    assert set(skg_panel.made["compositions"]) == {"skg"}


def test_an_arm_that_the_run_lacks_and_an_unfinished_run_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no arm 'live', which the baseline is of; it has skg, never"):
        panel(run, "live")
    unfinished = Run(run.path)
    unfinished.manifest["incomplete"] = True
    with pytest.raises(UsageError, match="unfinished"):
        panel(unfinished, "skg")
