"""The figure of estimated policies: a mark for each value at its place, grey where it is withheld, with the reason."""

import xml.etree.ElementTree as ET
from math import isnan, nan

import numpy as np
import pytest

from skg_bench.analysis.policy_value.decision_sums import DecisionSums, LoggedDecisions, PolicyChoices, needed_terms
from skg_bench.analysis.policy_value.estimates import LOG, PolicyEstimates
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
    return [g for g in ET.fromstring(text).iter(f"{SVG}g") if g.get("class") in ("given", "withheld")]  # noqa: S314


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
