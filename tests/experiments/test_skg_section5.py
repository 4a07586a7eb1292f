"""The experiment on section 5 of the SKG paper: draws are ordinary runs side by side, verdicts are shares of draws."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import skg_bench
from experiments.skg_section5 import analysis, found, latency, picture, prior
from experiments.skg_section5 import draws as made
from experiments.skg_section5.readings import READINGS, Reading, mass, separating
from skg_bench.analysis.comparison.findings import Evidence, findings_by_id
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Table
from skg_bench.core.errors import UsageError
from skg_bench.core.grid import I64
from skg_bench.engine.vectors import Rows
from skg_bench.runfolder.run import ratings

USERS, WEEKS = 2, 5
SEED = 51_624  # its first draws are of each kind, have hits, and ask seldom
DRAWS = {"prompted": 0, "stored": 1, "procedure": 2}
Similarities = Callable[[], Rows]


@pytest.fixture(scope="module")
def study() -> made.Study:
    return made.study([f"seed={SEED}"], users=USERS, weeks=WEEKS)


@pytest.fixture(scope="module")
def similarity(study: made.Study) -> Similarities:
    vectors = study.vectors()
    return lambda: Rows(vectors)


def some(study: made.Study, similarity: Similarities, *numbers: int) -> pd.DataFrame:
    draws: I64 = np.array(numbers)
    table: pd.DataFrame = made.batch(study, similarity, draws).to_pandas()
    return table


def test_a_draw_is_the_same_bits_whichever_others_lie_beside_it(study: made.Study, similarity: Similarities) -> None:
    together = some(study, similarity, 0, 1, 3, 4)
    assert together["kind"].value_counts()["prompted"] == 3  # in one cohort
    assert together[2:3].reset_index(drop=True).equals(some(study, similarity, 3))


@pytest.mark.parametrize("kind", prior.kinds().options)
def test_a_draw_is_an_ordinary_run_with_its_parameters(
    study: made.Study, similarity: Similarities, tmp_path: Path, kind: str
) -> None:
    """Of one arm, by what a skill is in the draw."""
    draw = DRAWS[kind]
    row = some(study, similarity, draw).iloc[0]
    assert row["kind"] == kind
    values = {parameter.name: float(row[parameter.name]) for parameter in prior.parameters()}
    overrides = [f"simulator.{name}={value}" for name, value in prior.of_users(values).items()]
    names = zip(("similarity", "preference", "score"), prior.WEIGHTS, strict=True)
    overrides += [f"signals.{name}={values[weight]}" for name, weight in names]
    able = prior.of_llm({name: np.array(value) for name, value in values.items()})
    overrides += [f"llm.{name}={float(value)}" for name, value in able.items()]
    overrides += [f"users={USERS * (draw + 1)}", f"weeks={WEEKS}", f"seed={SEED}", "workers=1"]
    arms = json.dumps({kind: compose(["experiment=skg_section5"]).root["arms"][kind]})
    alone = (f"arms={arms}", f"reference={kind}", "contrasts=[]")
    run = skg_bench.run(["experiment=skg_section5", *alone, f"out={tmp_path / 'run'}", *overrides])
    users = list(range(USERS * draw, USERS * (draw + 1)))
    turns = run.turns(kind, users=users).to_pandas()
    hits = (~turns.fallback_to_llm).groupby(turns.user).mean()
    assert row["turns_per_week"] == pytest.approx(len(turns) / USERS / WEEKS)
    week = (turns.time - turns.time.min().normalize()).dt.days // 7
    assert row["hits_week_1"] == pytest.approx((~turns.fallback_to_llm)[week == 0].groupby(turns.user).mean().mean())
    assert row["hits_month_6"] == pytest.approx((~turns.fallback_to_llm)[week > 0].groupby(turns.user).mean().mean())
    assert hits.mean() > 0
    assert row["right"] == pytest.approx(turns.answer_correct.groupby(turns.user).mean().mean())
    could = (turns.answerable > 0)[week > 0].groupby(turns.user).mean().mean()
    assert row["could_be_hits_month_6"] == pytest.approx(could)
    assert row["used_up"] == pytest.approx(turns.used_up.groupby(turns.user).mean().mean())
    assert row["skills_month_6"] == pytest.approx(turns.groupby("user").book_size.last().mean())
    updates = run.updates(kind, users=users).to_pandas()
    assert row["added_per_week"] == pytest.approx((updates.op == "ADD").sum() / USERS / WEEKS)
    feedback = ratings(run.feedback(kind, users=users)).to_pandas()
    assert row["ok_of_all"] == pytest.approx((feedback.rating == "ok").groupby(feedback.user).mean().mean())


def test_what_was_stopped_goes_on_where_it_was_and_another_study_is_refused(
    study: made.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "TOGETHER", 1)
    monkeypatch.setattr(made, "write_table", lambda vectors, path: np.save(path, vectors))  # all pairs are a gigabyte
    monkeypatch.setattr(made, "open_table", lambda path: Rows(np.load(path)))
    lines: list[str] = []
    made.simulate(study, tmp_path, 2, lines.append)
    manifest, whole = made.read(tmp_path)
    assert (manifest["users"], manifest["weeks"], whole["draw"].to_pylist()) == (USERS, WEEKS, [0, 1])
    assert not list(tmp_path.glob("*.tmp*"))
    (tmp_path / "draws-000001.parquet").unlink()
    made.simulate(study, tmp_path, 2, lines.append, backwards=True)
    assert made.read(tmp_path)[1].to_pandas().equals(whole.to_pandas())
    assert [line.split(",")[0] for line in lines] == ["draws 0 to 0", "draws 1 to 1", "draws 1 to 1"]
    later = replace(study, setup=replace(study.setup, content={**study.setup.content, "code": "another"}))
    made.simulate(later, tmp_path, 2, lines.append)
    assert "holds the first 2 draws already" in lines[-1]
    with pytest.raises(UsageError, match="made by the code of commit"):
        made.simulate(later, tmp_path, 3, lines.append)
    other = replace(study, setup=replace(study.setup, data={**study.setup.data, "prior": "other"}))
    with pytest.raises(UsageError, match="holds draws of another prior"):
        made.simulate(other, tmp_path, 2, lines.append)
    with pytest.raises(UsageError, match="holds no draws"):
        made.read(tmp_path / "nowhere")


# ---------------------------------------------------------------------------------------------------------- prior


def test_each_parameter_is_drawn_evenly_within_its_limits_and_says_where_it_comes_from() -> None:
    n = 4_000
    values = prior.drawn(0, np.arange(n))
    assert list(values) == [parameter.name for parameter in prior.parameters()]
    for parameter in prior.parameters():
        assert parameter.source.strip()
        drawn = values[parameter.name]
        assert parameter.low <= drawn.min() < drawn.max() <= parameter.high
        middle = (
            (parameter.low * parameter.high) ** 0.5
            if parameter.scale == "log"
            else (parameter.low + parameter.high) / 2
        )
        assert abs((drawn < middle).mean() - 0.5) < 4 * 0.5 / n**0.5
    few = prior.drawn(0, np.array([17]))
    assert all(few[name][0] == column[17] for name, column in values.items())
    assert prior.drawn(1, np.array([17])) != few


def test_a_skill_is_each_kind_of_thing_in_a_third_of_the_draws_whatever_else_is_drawn() -> None:
    n = 9_000
    kind = prior.kinds().drawn(0, np.arange(n))
    for option in prior.kinds().options:
        assert abs((kind == option).mean() - 1 / 3) < 4 * (2 / 9 / n) ** 0.5
        for column in prior.drawn(0, np.arange(n)).values():
            assert abs(np.corrcoef(kind == option, column)[0, 1]) < 5 / n**0.5
    assert prior.kinds().drawn(0, np.array([17])) == kind[17]


def test_the_simulator_takes_every_draw_of_the_prior(study: made.Study) -> None:
    values = prior.drawn(0, np.arange(500))
    for i in range(500):
        replace(study.simulator, **prior.of_users({name: float(column[i]) for name, column in values.items()}))


# ---------------------------------------------------------------------------------------------- readings and report

RISE = Reading("K24", "much", {"hits_month_6": (0.25, 0.35)})
SAID = Reading("K25", "well", {"ok_of_hits": (0.8, 0.9)}, curve=False)


def frame(hits: list[float], used_up: list[float] | float = 0.0, **more: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"hits_month_6": hits, "used_up": used_up, **more})


def test_a_verdict_is_the_share_of_draws_in_which_a_reading_holds() -> None:
    for share, verdict in (
        (0.95, "robust"),
        (0.9, "not testable here"),  # so many draws do not tell 90 % from 89 %
        (0.5, "attainable"),
        (0.06, "not testable here"),
        (0.05, "not testable here"),
        (0.01, "strained"),
    ):
        held = round(1000 * share)
        result = mass(RISE, frame([0.3] * held + [0.1] * (1000 - held)))
        assert (result.share, result.verdict) == (share, verdict)
        assert result.limits[0] < share < result.limits[1]
    assert mass(RISE, frame([0.1] * 2_999)).verdict == "strained"  # too few to call it impossible
    assert mass(RISE, frame([0.1] * 3_000)).verdict == "impossible"


def test_draws_whose_corpus_was_used_up_count_neither_for_nor_against_a_curve() -> None:
    draws = frame([0.3] * 40 + [0.4] * 20 + [0.1] * 40, [0.2] * 60 + [0.0] * 40)
    result = mass(RISE, draws)
    assert (result.held, result.surely, result.at_most) == (40, 0, 60)
    assert result.verdict == "not testable here"
    assert result.limits[0] == 0.0
    assert result.used_up
    clear = mass(RISE, frame([0.3] * 20 + [0.1] * 80, [0.0] * 20 + [0.2] * 80))
    assert (clear.surely, clear.at_most, clear.verdict) == (20, 20, "attainable")
    assert not clear.used_up
    ok = frame([0.1] * 100, [0.2] * 100, ok_of_hits=[0.85] * 50 + [0.5] * 50)
    assert mass(SAID, ok).verdict == "attainable"


def test_draws_without_a_denominator_are_left_out() -> None:
    draws = frame([0.1] * 4, ok_of_hits=[0.85, 0.85, 0.5, float("nan")])
    assert (mass(SAID, draws).draws, mass(SAID, draws).held) == (3, 2)


def test_the_parameter_that_decides_is_found() -> None:
    rng = np.random.default_rng(0)
    decides, idle = rng.random(400), rng.random(400)
    draws = frame((0.1 + 0.2 * (decides > 0.6)).tolist(), decides=decides.tolist(), idle=idle.tolist())
    (first, p), (second, q) = separating(RISE, draws, ["idle", "decides"])
    assert (first, p, second) == ("decides", 1.0, "idle")
    assert abs(q - 0.5) < 0.1
    assert separating(RISE, frame([0.1, 0.2]), ["hits_month_6"]) == []


def test_maps_count_every_draw_once() -> None:
    rng = np.random.default_rng(0)
    n = 500
    axes = {name: rng.random(n).tolist() for name in ("rated_share", "accept", "asked_again")}
    draws = frame([0.3] * 200 + [0.1] * 300, **axes)
    share, count = picture.cells(RISE, draws)
    assert count.sum() == n
    assert (share * count).sum() == pytest.approx(200)
    drawn = ET.fromstring(picture.svg([RISE, RISE], {"one": draws, "two": draws}))  # noqa: S314
    assert len(drawn.findall(".//*[@class='cell']")) == 4 * int((count >= picture.LEAST).sum())


@pytest.mark.req("K23")
def test_two_to_five_skills_a_week_do_not_add_up_to_two_hundred() -> None:
    (_, three, need_three), (_, six, need_six) = found.contradiction()
    assert (three, six) == ("26 to 65 skills", "52 to 130 skills")
    assert (need_three, need_six) == ("15.4 to 38.5 a week", "7.7 to 19.2 a week")


def test_verdicts_are_split_by_what_a_skill_is_next_to_the_whole() -> None:
    figures = {name: [0.0] * 600 for reading in READINGS for name in reading.limits}
    draws = pd.DataFrame(figures | {"used_up": 0.0, "kind": ["stored"] * 400 + ["procedure"] * 200})
    draws["hits_month_6"] = [0.1] * 400 + [0.3] * 200
    source = found.Corpus("planted", Path(), {}, draws, [mass(reading, draws) for reading in READINGS])
    table = analysis.split(source)
    assert tuple(table.headings) == ("claim", "as read here", "all", "stored", "prompted", "procedure")
    (row,) = [row for row in table.rows if row[1] == "25-35 % of requests answered in month 6"]
    assert row[2:] == ("33.3 % (attainable)", "0.0 % (strained)", "-", "100.0 % (robust)")


@pytest.mark.req("K01", "K24", "K25", "K32")
def test_the_analysis_writes_report_picture_and_claims(
    study: made.Study, similarity: Similarities, tmp_path: Path
) -> None:
    folder = tmp_path / "draws"
    folder.mkdir()
    pq.write_table(made.batch(study, similarity, np.arange(3)), folder / "draws-000000.parquet")
    manifest = study.setup.manifest() | {"commit": "abc", "dirty": None}
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    result = analysis.analyse([folder])
    result.write(tmp_path, "skg_section5")
    assert isinstance(result.parts[0], Table)
    assert result.parts[0].title == "built-in: 3 draws"
    report = (tmp_path / "skg_section5.md").read_text("utf-8")
    assert all(parameter.source in report for parameter in prior.parameters())
    assert prior.kinds().source in report
    assert (tmp_path / "skg_section5.svg").is_file()
    reports = findings_by_id(tmp_path / "claims")
    assert set(reports) == {"K01", "K23", "K24", "K25", "K32"}
    assert [finding.verdict for _, finding in reports["K23"]].count("contradictory") == 1
    assert reports["K24"][0][1].evidence == Evidence(
        f"skg-bench experiment skg_section5/draws seed={SEED}", "abc", 6, 5, (SEED,)
    )
    file = folder / "draws-000000.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["kind"]), file)
    with pytest.raises(UsageError, match="holds draws of an earlier prior, without 'kind'"):
        analysis.analyse([folder])
    with pytest.raises(UsageError, match="nowhere holds no draws; make them: skg-bench experiment skg_section5/draws"):
        analysis.analyse([tmp_path / "nowhere"])


def test_a_time_is_reproduced_only_if_its_interval_holds_the_papers() -> None:
    evidence = Evidence("make it", "abc", 1, 0, (0,))
    for ms, verdict, words in ((11.0, "not reproduced", "less than claimed"), (50.0, "reproduced", "as claimed"),
                               (200.0, "not reproduced", "more than claimed")):  # fmt: skip
        spread = np.linspace(0.8, 1.2, 50)
        hits = latency.Hits(0.9 * ms * spread, 0.1 * ms * spread)
        finding = found.latency_findings(hits, "MiniLM", evidence)[0]
        assert (finding.verdict, words in finding.words, "MiniLM" in finding.words) == (verdict, True, True)


@pytest.mark.req("K22")
def test_a_hit_is_timed_from_the_message_to_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "SKILLS", 20)
    hits = latency.measure(["embedder=hashing"], 5)
    assert hits.whole.shape == (5,)
    assert (hits.routing > 0).all()
    assert (hits.embedding > 0).all()
