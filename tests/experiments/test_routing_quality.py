"""Routing quality: figures against scikit-learn, thresholds against trying all, and the recipe on small corpora."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.routing_quality import analysis, corpora, hard_negatives
from experiments.routing_quality.baselines import Entry, baselines
from experiments.routing_quality.corpora import Corpus, held_back, without_labels
from experiments.routing_quality.measure import Scored, best_threshold, bootstrap, figures, interval
from experiments.routing_quality.recipe import Messages, fit
from skg_bench.app.experiment_report import Table
from skg_bench.core.embedding_grid import quantise
from skg_bench.core.errors import UsageError
from skg_bench.embedder.precomputed import save_vectors
from skg_bench.router.exact import Exact
from skg_bench.router.maxsim import MaxSim
from tests.work import calls_in

seeds = st.integers(0, 2**32)


def scored(seed: int, n: int = 300, levels: int = 40, out: float = 0.3) -> Scored:
    """Messages of which the surer ones are more often in scope and right; with ties."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < out, -1, rng.integers(0, 5, n)).astype(np.int32)
    truth[:2] = [-1, 3]
    skill = np.where(rng.random(n) < 0.8, np.maximum(truth, 0), rng.integers(0, 5, n)).astype(np.int32)
    score = np.rint((rng.normal(size=n) + 1.5 * (truth >= 0) + (skill == truth)) * levels / 4) / levels
    return Scored(skill, score, truth)


@settings(deadline=None, max_examples=25)
@given(seed=seeds)
def test_figures_are_those_of_scikit_learn(seed: int) -> None:
    from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score  # take long to import

    sample = scored(seed)
    threshold = float(np.median(sample.score))
    acc_in, acc_all, recall, precision, f1, auroc = figures(sample, threshold)[0] / 100
    out, left = sample.out, sample.score < threshold
    assert recall == pytest.approx(recall_score(out, left))
    assert precision == pytest.approx(precision_score(out, left, zero_division=np.nan), nan_ok=True)
    assert f1 == pytest.approx(f1_score(out, left))
    assert auroc == pytest.approx(roc_auc_score(out, -sample.score))
    answered = np.where(left, -1, sample.skill)
    assert acc_all == pytest.approx((answered == sample.truth).mean())
    assert acc_in == pytest.approx((answered == sample.truth)[~out].mean())


@settings(deadline=None, max_examples=25)
@given(seed=seeds, share=st.floats(0.01, 0.99))
def test_no_other_threshold_is_more_accurate_at_the_stated_share(seed: int, share: float) -> None:
    sample = scored(seed)
    out = sample.out

    def accuracy(threshold: float) -> float:
        left = sample.score < threshold
        return (1 - share) * float((sample.right & ~left)[~out].mean()) + share * float(left[out].mean())

    best = best_threshold(sample, share)
    every = [-np.inf, np.inf, *np.unique(sample.score)]
    assert accuracy(best) == pytest.approx(max(map(accuracy, every)), abs=1e-9)


def test_a_larger_share_of_out_of_scope_messages_asks_for_a_higher_threshold() -> None:
    thresholds = [best_threshold(scored(0, 3000), share) for share in (0.01, 0.1, 0.3, 0.6, 0.95)]
    assert thresholds == sorted(thresholds)
    assert thresholds[0] < thresholds[-1]


def test_thresholds_of_3100_messages_take_no_more_calls_than_those_of_310() -> None:
    def calls(n: int) -> int:
        return calls_in(lambda: [best_threshold(scored(0, n), share) for share in (0.01, 0.05, 0.1, 0.2, 0.5)])

    calls(310)  # what is made once
    assert calls(3100) < calls(310) + 50


def test_with_equal_scores_all_or_nothing_is_answered() -> None:
    truth = np.array([0, 0, 0, -1], np.int32)
    same = Scored(np.zeros(4, np.int32), np.full(4, 0.5), truth)
    assert best_threshold(same, 0.2) == 0.5
    assert best_threshold(same, 0.8) == np.inf
    assert figures(same, 0.5)[0, 0] == 100
    assert np.isnan(figures(same, 0.5)[0, 3])  # nothing is left to the LLM: no precision
    assert figures(same, np.inf)[0, 2] == 100


@pytest.mark.parametrize(
    ("truth", "share", "says"),
    [([0, 1], 0.2, "no out-of-scope message among 2"), ([-1, -1], 0.2, "no in-scope"), ([0, -1], 0.0, r"share=0\.0"),
     ([0, -1], 1.0, r"share=1\.0"), ([0, -1], float("nan"), "share=nan")],
)  # fmt: skip
def test_a_threshold_needs_messages_of_both_kinds_and_a_share_between(
    truth: list[int], share: float, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        best_threshold(Scored(np.zeros(2, np.int32), np.array([0.1, 0.2]), np.array(truth, np.int32)), share)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(UsageError, match="1 of 2 scores are NaN or infinite"):
        Scored(np.zeros(2, np.int32), np.array([0.1, np.nan]), np.array([0, -1], np.int32))


def test_intervals_hold_the_value_of_other_messages_and_repeat() -> None:
    large = scored(1, 100_000, 10_000)
    threshold = float(np.quantile(large.score, 0.35))
    population = figures(large, threshold)[0]
    held, rng = np.zeros(6), np.random.default_rng(0)
    outs, ins = np.flatnonzero(large.out), np.flatnonzero(~large.out)
    for repeat in range(40):
        rows = np.concatenate([rng.choice(outs, 90), rng.choice(ins, 210)])
        sample = Scored(large.skill[rows], large.score[rows], large.truth[rows])
        drawn = bootstrap([(sample, threshold)], seed=repeat, resamples=300)[0]
        limits = np.array([interval(drawn[:, i]) for i in range(6)])
        held += (limits[:, 0] <= population) & (population <= limits[:, 1])
    assert (held[[0, 1, 2, 4, 5]] >= 33).all()  # of 40; 33 has a probability of 1 % at 95 %
    again = bootstrap([(sample, threshold)], seed=39, resamples=300)[0]
    assert np.array_equal(again, drawn, equal_nan=True)
    with pytest.raises(ValueError, match="the same messages"):
        bootstrap([(sample, 1.0), (scored(3), 1.0)])


# ------------------------------------------------------------------------------------------------------ recipe


def corpus(out: tuple[int, int, int] = (30, 30, 200), skills: int = 8, noise: float = 2.0) -> Corpus:
    """Half of a vector says which skill, of three clusters each; the other half how it is said."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(skills, 1, 32)) + rng.normal(size=(skills, 3, 32))

    def split(each: int, outs: int) -> Messages:
        skill = np.concatenate([np.repeat(np.arange(skills), each), np.full(outs, -1)]).astype(np.int32)
        meant = centres[np.maximum(skill, 0), rng.integers(0, 3, len(skill))]
        meant[skill < 0] = 1.5 * rng.normal(size=(outs, 32))
        return Messages(quantise(np.hstack([meant, noise * rng.normal(size=meant.shape)])), skill)

    return Corpus("clusters", tuple("abcdefgh"[:skills]), split(30, out[0]), split(12, out[1]), split(60, out[2]))


def test_where_wordings_vary_the_recipe_is_better_than_maxsim_with_the_best_threshold() -> None:
    sample = corpus()
    entries = [*baselines(sample), analysis.recipe(sample)[1]]
    lines = {line.name: line for line in analysis.table(entries, 0.2)}
    assert len(lines) == 8
    ours, peer = lines[analysis.RECIPE], lines[analysis.PEER]
    for figure in (1, 5):  # accuracy, AUROC
        assert interval(ours.resampled[:, figure] - peer.resampled[:, figure])[0] > 0
    parts = analysis.section(sample, entries, list(lines.values()), 0.2)
    figures, of_figures, shares = (part for part in parts if isinstance(part, Table))
    assert [row[0] for row in figures.rows] == [*lines, "recipe - MaxSim, same messages"]
    assert len(shares.rows) == 7
    assert [row[0] for row in of_figures.rows] == ["acc all", "OOS F1", "AUROC"]


def test_by_each_figure_the_best_router_and_what_the_recipe_is_ahead_of_the_best_other_one_are_said() -> None:
    def line(name: str, accuracy: float, f1: float, area: float) -> analysis.Line:
        values = np.array([0.0, accuracy, 0.0, 0.0, f1, area])
        return analysis.Line(name, 0.5, values, np.stack([values, values]), 0.0)

    lines = [line("a", 80.0, 70.0, 95.0), line(analysis.RECIPE, 82.0, 69.0, 94.0), line("b", 81.0, 60.0, 96.5)]
    assert analysis.best(lines) == [
        ("acc all", analysis.RECIPE, "b", "+1.0 (+1.0 to +1.0)", "+1.0 (+1.0 to +1.0)"),
        ("OOS F1", "a", analysis.RECIPE, "+1.0 (+1.0 to +1.0)", "-1.0 (-1.0 to -1.0)"),
        ("AUROC", "b", "a", "+1.5 (+1.5 to +1.5)", "-2.5 (-2.5 to -2.5)"),
    ]


def test_where_they_do_not_the_recipe_is_as_good() -> None:
    sample = corpus(noise=0.1)
    lines = {line.name: line for line in analysis.table([*baselines(sample), analysis.recipe(sample)[1]], 0.2)}
    ours, peer = lines[analysis.RECIPE], lines[analysis.PEER]
    for figure in (0, 1, 5):
        assert ours.values[figure] > peer.values[figure] - 2


@pytest.mark.parametrize("out", [(30, 30, 200), (0, 30, 200)])
def test_no_router_chooses_anything_on_the_test_messages(out: tuple[int, int, int]) -> None:
    """Test messages of other labels change neither a threshold, nor a score of validation, nor which router it is."""
    sample = corpus(out=out)
    rng = np.random.default_rng(1)
    other = replace(sample, test=Messages(rng.permutation(sample.test.vectors), rng.permutation(sample.test.skill)))
    first, second = ([*baselines(c), analysis.recipe(c)[1]] for c in (sample, other))
    for a, b in zip(first, second, strict=True):
        assert a.name == b.name
        assert np.array_equal(a.validation.score, b.validation.score), a.name
        assert np.array_equal(a.validation.skill, b.validation.skill), a.name
        assert not np.array_equal(a.test.score, b.test.score), a.name
    thresholds = [[line.threshold for line in analysis.table(entries, 0.2)] for entries in (first, second)]
    assert thresholds[0] == thresholds[1]


def test_thresholds_for_other_shares_are_those_of_validation_as_well() -> None:
    validation = Scored(np.zeros(4, np.int32), np.array([0.1, 0.4, 0.6, 0.9]), np.array([-1, 0, 0, 0], np.int32))
    test = Scored(np.zeros(4, np.int32), np.array([0.1, 0.4, 0.6, 0.9]), np.array([-1, -1, -1, 0], np.int32))
    entry = Entry("one", validation, test)  # best on validation: 0.25, best on test: 0.75
    assert [line.threshold for line in analysis.table([entry], 0.2)] == [0.25]
    assert analysis.shifted([entry], (0.2,)) == [("one", [50.0])]


def test_labelled_out_of_scope_messages_help_rivals_too_and_one_that_they_do_not_help_ignores_them() -> None:
    """They are near to those of test here, all in one corner, which looks like a skill."""
    sample = corpus(noise=0.5)
    corner = quantise(np.random.default_rng(3).normal(size=64) + 0.2 * np.random.default_rng(4).normal(size=(600, 64)))

    def outside(messages: Messages, rows: slice) -> Messages:
        known, vectors = messages.rows(messages.skill >= 0), corner[rows]
        skill = np.concatenate([known.skill, np.full(len(vectors), -1, np.int32)])
        return Messages(np.concatenate([known.vectors, vectors]), skill)

    given = replace(
        sample, train=outside(sample.train, slice(0, 100)), validation=outside(sample.validation, slice(100, 200)),
        test=outside(sample.test, slice(200, 600)),
    )  # fmt: skip
    having, lacking = (
        {e.name.split(",")[0]: figures(e.test, 0.0)[0, 5] for e in baselines(c)} for c in (given, without_labels(given))
    )
    for name in ("MaxSim", "centroid", "half MaxSim", "logistic probe"):
        assert having[name] > 99.5, name
        assert having[name] >= lacking[name], name
    assert having["SKG's rule: MaxSim"] == lacking["SKG's rule: MaxSim"]


def test_held_back_intents_are_out_of_scope_and_nothing_before_has_a_message_of_them() -> None:
    sample = corpus()
    held = held_back(sample)
    assert set(held.train.skill.tolist()) == {-1, 2, 3, 4, 7}
    assert held.skills == ("c", "d", "e", "h")
    assert int((held.train.skill < 0).sum()) == 30  # the corpus' own
    for part, of, outside in ((held.validation, sample.validation, (1, 6)), (held.test, sample.test, (0, 5))):
        expected = of.rows(np.isin(of.skill, (*outside, 2, 3, 4, 7)))
        assert np.array_equal(part.vectors, expected.vectors)
        assert np.array_equal(part.skill, np.where(np.isin(expected.skill, outside), -1, expected.skill))
    assert not (without_labels(held).train.skill < 0).any()


def test_nothing_of_the_test_messages_goes_into_the_recipe() -> None:
    sample = corpus()
    model, entry = analysis.recipe(sample)
    again, less = analysis.recipe(replace(sample, test=sample.test.rows(np.arange(40))))
    assert again.threshold == model.threshold
    assert np.allclose(less.test.score, entry.test.score[:40], atol=1e-5)  # float32: the batch may change the last bit


@pytest.mark.parametrize("out", [(0, 30, 200), (0, 0, 200), (30, 0, 200)])
def test_without_out_of_scope_messages_left_out_skills_stand_in(out: tuple[int, int, int]) -> None:
    sample = corpus(out=out)
    model = fit(sample.train, sample.validation)
    assert np.isfinite(model.threshold)
    made = figures(model.score(sample.test), model.threshold)[0]
    assert made[5] > 80
    assert made[1] > 60


def test_one_skill_is_told_from_what_is_out_of_scope() -> None:
    sample = corpus(skills=1)
    model = fit(sample.train, sample.validation)
    routed = model.route(sample.test)
    assert set(routed.tolist()) == {0, -1}
    assert np.mean(routed == sample.test.skill) > 0.8


def test_what_cannot_be_fitted_is_said() -> None:
    sample, single = corpus(), corpus(skills=1, out=(0, 0, 9))
    none = sample.train.rows(sample.train.skill < 0)
    narrow = Messages(sample.validation.vectors[:, :32], sample.validation.skill)
    cases: list[tuple[Messages, Messages, str]] = [
        (none, sample.validation, "no training message has a skill"),
        (sample.train, none, "no validation message has a skill"),
        (sample.train, narrow, "64 dimensions, validation vectors 32"),
        (single.train, single.validation, "with one skill none can stand in"),
    ]
    for train, validation, says in cases:
        with pytest.raises(UsageError, match=says):
            fit(train, validation)
    with pytest.raises(UsageError, match="vectors of 32 dimensions, the router was fitted on 64"):
        fit(sample.train, sample.validation).score(narrow)


# ----------------------------------------------------------------------------------------------------- corpora


def clinc_file(folder: Path, **changed: Any) -> Path:
    content = {
        "train": [["hello there", "greet"], ["good morning", "greet"], ["bye now", "leave"]], "oos_train": [],
        "val": [["hi", "greet"], ["see you", "leave"]], "oos_val": [["what is love", "oos"]],
        "test": [["hey", "greet"]], "oos_test": [["why", "oos"]],
    }  # fmt: skip
    file = folder / "tiny.json"
    file.write_text(json.dumps(content | changed))
    return file


def test_a_corpus_in_clinc150s_format_is_read_with_its_cached_vectors(tmp_path: Path) -> None:
    from hashlib import blake2b

    file = clinc_file(tmp_path)
    texts = ["hello there", "good morning", "bye now", "hi", "see you", "what is love", "hey", "why"]
    vectors = quantise(np.random.default_rng(0).normal(size=(8, 16)))
    save_vectors(tmp_path / blake2b(file.read_bytes(), digest_size=8).hexdigest(), texts, vectors, "test")
    sample = corpora.read(file, tmp_path)
    assert sample.skills == ("greet", "leave")
    assert sample.train.skill.tolist() == [0, 0, 1]
    assert sample.validation.skill.tolist() == [0, 1, -1]
    assert sample.test.skill.tolist() == [0, -1]
    assert np.array_equal(sample.test.vectors, vectors[6:])


@pytest.mark.parametrize(
    ("content", "says"),
    [("[]", "no corpus in CLINC150's format"), ("{", "no corpus"), ('{"train": [["a", "b"]]}', "no messages for")],
)
def test_another_format_is_refused(content: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=says):
        corpora.read(file)
    with pytest.raises(UsageError, match=says):
        analysis.analyse(corpus=[file])


def test_the_built_in_corpus_is_split_by_wording_with_out_of_scope_messages_in_each_part() -> None:
    sample = corpora.builtin()
    assert len(sample.skills) == 120
    for part in (sample.train, sample.validation, sample.test):
        assert set(part.skill.tolist()) == set(range(-1, 120))


@pytest.mark.req("K08")
def test_clinc150_is_found_and_has_its_splits(
    published: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "clinc150").symlink_to(published("clinc150"))
    monkeypatch.setenv("SKG_BENCH_SHARED", str(tmp_path))
    content = json.loads(corpora.clinc150().read_text("utf-8"))
    assert {k: len(v) for k, v in content.items()} == {
        "train": 15_000, "val": 3_000, "test": 4_500, "oos_train": 100, "oos_val": 100, "oos_test": 1_000,
    }  # fmt: skip
    monkeypatch.setenv("SKG_BENCH_SHARED", "/nowhere")
    with pytest.raises(UsageError, match=r"get data_full\.json"):
        corpora.clinc150()


# ---------------------------------------------------------------------------------------------- hard negatives


def test_the_suite_has_four_kinds_of_pairs_that_share_most_words_and_paraphrases_that_do_not() -> None:
    s = hard_negatives.suite()
    assert len(s.kind) >= 120
    assert (np.bincount(s.kind) >= 30).all()
    assert len(s.vectors) == 3 * len(s.kind)

    def common(first: np.ndarray, other: np.ndarray) -> float:
        shares = []
        for a, b in zip(first, other, strict=True):
            x, y = (set(s.vocabulary.term[s.vocabulary.start[t] : s.vocabulary.start[t + 1]].tolist()) for t in (a, b))
            shares.append(len(x & y) / len(x | y))
        return float(np.mean(shares))

    assert common(s.said, s.other) > 0.6
    assert common(s.said, s.same) < 0.35
    cosine = np.einsum("nd,nd->n", s.vectors[s.said].astype(float), s.vectors[s.other].astype(float)) / 4000**2
    assert np.mean(cosine > 0.7) > 0.7  # they look alike to the model, too


def test_an_exact_cache_confuses_nothing_and_a_router_that_always_answers_everything() -> None:
    never = hard_negatives.confusion(Exact(300), 0.5)
    assert never.all == never.answered == never.nearer == 0
    always = hard_negatives.confusion(MaxSim(300), 0.0)
    rule = hard_negatives.confusion(MaxSim(300), 0.5)
    strict = hard_negatives.confusion(MaxSim(300), 0.9)
    assert always.all >= rule.all > strict.all
    assert rule.all > 80  # the SKG paper's rule takes nearly every opposite for the request itself
    assert always.nearer == rule.nearer > 0
    assert hard_negatives.table([("rule", MaxSim(300), 0.5)])[0][-3] == f"{rule.all:.0f} %"
