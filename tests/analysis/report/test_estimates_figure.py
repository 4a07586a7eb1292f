"""The figure of estimated policies: a mark for each value at its place, grey where it is withheld, with the reason."""

import xml.etree.ElementTree as ET
from math import isnan, nan

import numpy as np
import pytest

from skg_bench.analysis.policy_value.decision_sums import DecisionSums, LoggedDecisions, PolicyChoices, needed_terms
from skg_bench.analysis.policy_value.estimates import LOG, PolicyEstimates, PolicyValue, ReplayedPolicy
from skg_bench.analysis.policy_value.estimators import ESTIMATORS
from skg_bench.analysis.policy_value.step_values import step_values
from skg_bench.analysis.report.estimates_figure import estimates_svg

SVG = "{http://www.w3.org/2000/svg}"


def estimates(missing: int = 0) -> PolicyEstimates:
    """Values of a log, of a policy that it carries, and of one that it does not."""
    rng = np.random.default_rng(0)
    user, action = np.repeat(np.arange(40), 20), rng.integers(0, 2, 800)
    reward = (rng.random(800) < 0.3 + 0.4 * action).astype(np.float64)
    reward[:missing] = nan
    propensity = np.full(800, 0.5)
    wanted = {LOG: [ESTIMATORS["ips"]], "<second> & more": [ESTIMATORS["ips"], ESTIMATORS["snips"]],
              "half": [ESTIMATORS["ips"]]}  # fmt: skip
    sums = DecisionSums([needed_terms(each) for each in wanted.values()], rows=False)
    choices = [propensity, action.astype(np.float64), 0.2 * action]
    sums.add(LoggedDecisions(propensity, reward, user=user), [PolicyChoices(each) for each in choices])
    return step_values(sums.total(), wanted, reference=LOG, users=True)


def groups(text: str) -> list[ET.Element]:
    marks = ET.fromstring(text).iter(f"{SVG}g")  # noqa: S314
    return [g for g in marks if {"given", "withheld"} & set(g.get("class", "").split())]


def test_each_value_has_a_mark_at_its_place_within_its_interval() -> None:
    made = estimates()
    marks = groups(estimates_svg(made))
    assert [mark.get("class") for mark in marks] == ["given", "given", "given", "withheld"]
    dots = [float(mark.find(f"{SVG}circle").get("cx")) for mark in marks]  # type: ignore[union-attr,arg-type]
    assert np.corrcoef([value.value for value in made.values], dots)[0, 1] == pytest.approx(1.0, abs=1e-4)
    for mark, dot in zip(marks[:3], dots, strict=False):
        line = mark.find(f"{SVG}line")
        assert line is not None
        assert float(line.get("x1", "nan")) < dot < float(line.get("x2", "nan"))
    assert marks[3].find(f"{SVG}line") is None


def test_it_says_what_it_is_and_why_something_is_withheld() -> None:
    text = estimates_svg(estimates())
    words = " ".join(element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text"))  # noqa: S314
    assert "not the value of an arm that learns" in words
    assert "half is withheld: its mean weight" in words
    assert "<second> & more, snips" in words
    assert "800 decisions, 40 users; verdicts on the difference to log" in words
    assert "&lt;second&gt; &amp; more by ips" in text


def test_values_that_are_all_unknown_are_named_and_have_no_mark() -> None:
    made = estimates(missing=100)
    assert all(isnan(value.value) for value in made.values)
    marks = groups(estimates_svg(made))
    assert len(marks) == 4
    assert all(mark.find(f"{SVG}circle") is None for mark in marks)


def test_replayed_arms_have_both_intervals_and_a_band_and_a_withheld_one_its_band_alone() -> None:
    values = [
        PolicyValue("log", "loop", "replay", 0.70, (0.68, 0.72), None, 0.0, (0.0, 0.0), "reference"),
        PolicyValue("strict", "loop", "replay", 0.75, (0.72, 0.78), None, 0.05, (0.02, 0.08), "higher"),
        PolicyValue("lax", "loop", "replay", 0.66, (nan, nan), None, nan, (nan, nan), "withheld"),
        PolicyValue("wide", "loop", "replay", 0.66, (0.6, 0.7), None, nan, (nan, nan), "withheld"),
        PolicyValue("strict", "step", "snips", 0.74, (0.71, 0.77), None, 0.04, (0.01, 0.07), "higher"),
    ]
    replays = [
        ReplayedPolicy("strict", 0.98, 0.02, 0.0, 0.0, (0.74, 0.76), (0.04, 0.06), (0.045, 0.053), (0.6, 0.8), ""),
        ReplayedPolicy("lax", 0.9, 0.0, 0.1, 0.0, (nan, nan), (nan, nan), (-0.08, 0.02), (0.5, 0.8), "too few"),
    ]
    text = estimates_svg(PolicyEstimates(LOG, 800, 40, 0, tuple(values), (), tuple(replays)))
    log, strict, lax, wide, hollow = groups(text)
    assert [mark.get("class") for mark in (lax, wide, hollow)] == ["withheld replayed", "withheld replayed", "given"]
    assert len(hollow.findall(f"{SVG}line")) == 1
    assert hollow.find(f"{SVG}rect") is None
    assert "strict, step" in text
    assert "Hollow:" in text
    thin, thick = strict.findall(f"{SVG}line")
    assert (thin.get("class"), thick.get("class")) == ("ends", "these")
    assert float(thin.get("x1", "nan")) < float(thick.get("x1", "nan")) < float(thick.get("x2", "nan"))
    (dot,), band, log_dot = strict.findall(f"{SVG}circle"), strict.find(f"{SVG}rect"), log.find(f"{SVG}circle")
    assert band is not None
    assert log_dot is not None
    scale = (float(dot.get("cx", "nan")) - float(log_dot.get("cx", "nan"))) / 0.05  # pixels a unit
    assert float(band.get("x", "nan")) == pytest.approx(float(log_dot.get("cx", "nan")) + 0.045 * scale, abs=0.2)
    assert float(band.get("width", "nan")) == pytest.approx(0.008 * scale, abs=0.2)
    assert log.find(f"{SVG}rect") is None
    assert lax.findall(f"{SVG}line") == []
    assert lax.find(f"{SVG}rect") is not None
    assert "lax is withheld: too few." in text
    assert "Thick: 95 %, these users" in text
