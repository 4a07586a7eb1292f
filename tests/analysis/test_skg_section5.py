"""The experiment on section 5 of the SKG paper: draws are ordinary runs side by side, verdicts are shares of draws."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skg_bench
from experiments.skg_section5 import draws as made
from experiments.skg_section5 import prior
from skg_bench.core.grid import I64
from skg_bench.engine.vectors import Rows

USERS, WEEKS, DRAW = 3, 5, 2


@pytest.fixture(scope="module")
def study() -> made.Study:
    return made.study([], users=USERS, weeks=WEEKS)


@pytest.fixture(scope="module")
def similarity(study: made.Study) -> Rows:
    return Rows(study.vectors())


def some(study: made.Study, similarity: Rows, *numbers: int) -> pd.DataFrame:
    draws: I64 = np.array(numbers)
    return made.batch(study, similarity, draws).to_pandas()


def test_a_draw_is_the_same_bits_whichever_others_lie_beside_it(study: made.Study, similarity: Rows) -> None:
    together = some(study, similarity, 0, 1, 2)
    assert together[1:2].reset_index(drop=True).equals(some(study, similarity, 1))
    assert together[:2].equals(some(study, similarity, 0, 1))


def test_a_draw_is_an_ordinary_run_with_its_parameters(study: made.Study, similarity: Rows, tmp_path: Path) -> None:
    found = some(study, similarity, DRAW).iloc[0]
    values = {one.name: float(found[one.name]) for one in prior.parameters()}
    overrides = [f"simulator.{name}={value}" for name, value in prior.of_users(values).items()]
    overrides += [f"users={USERS * (DRAW + 1)}", f"weeks={WEEKS}", f"llm.right={values['llm_right']}"]
    run = skg_bench.run(["experiment=skg_section5", f"out={tmp_path / 'run'}", *overrides])
    own = list(range(USERS * DRAW, USERS * (DRAW + 1)))
    turns = run.turns("skg", users=own).to_pandas()
    hits = (~turns.fallback_to_llm).groupby(turns.user).mean()
    assert found["turns_per_week"] == pytest.approx(len(turns) / USERS / WEEKS)
    week = (turns.time - turns.time.min().normalize()).dt.days // 7
    assert found["hits_week_1"] == pytest.approx((~turns.fallback_to_llm)[week == 0].groupby(turns.user).mean().mean())
    assert found["hits_month_6"] == pytest.approx((~turns.fallback_to_llm)[week > 0].groupby(turns.user).mean().mean())
    assert hits.mean() > 0
    assert found["right"] == pytest.approx(turns.answer_correct.groupby(turns.user).mean().mean())
    could = (turns.answerable > 0)[week > 0].groupby(turns.user).mean().mean()
    assert found["could_be_hits_month_6"] == pytest.approx(could)
    assert found["used_up"] == pytest.approx(turns.used_up.groupby(turns.user).mean().mean())
    assert found["skills_month_6"] == pytest.approx(turns.groupby("user").book_size.last().mean())
    updates = run.updates("skg", users=own).to_pandas()
    assert found["added_per_week"] == pytest.approx((updates.op == "ADD").sum() / USERS / WEEKS)
    feedback = run.feedback("skg", users=own).to_pandas()
    assert found["ok_of_all"] == pytest.approx((feedback.rating == "ok").groupby(feedback.user).mean().mean())
