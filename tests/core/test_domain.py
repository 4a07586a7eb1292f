"""Domains are values: declared once, checked where they are made, and read from a manifest without their world."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from skg_bench.core.domain import (
    Domain,
    FeedbackKind,
    OutcomeField,
    OutcomeMetric,
    domain_of,
    outcome_field,
    outcome_fields,
)
from skg_bench.core.errors import RowError, UsageError
from skg_bench.core.feedback import FEEDBACK_KINDS, feedback_rows
from skg_bench.core.grid import F64, I32, Bool
from skg_bench.simulator.advice.outcome import Outcome, advice


@dataclass(frozen=True, slots=True)
class Errand:
    minutes: F64 = outcome_field("until it was there", unit="min", truth=False)
    mood: I32 = outcome_field("how it was taken", levels=("calm", "cross"))
    again: Bool = outcome_field("had to go twice")
    steps: I32 = outcome_field("stairs climbed")


FIELDS = outcome_fields(Errand)
SHARE = OutcomeMetric("cross", "cross users", "mood", ("cross",), "share", "lower", "Share that annoyed.")


def test_fields_of_an_outcome_are_said_once() -> None:
    assert (
        OutcomeField("minutes", "float", (), "until it was there", "min", False),
        OutcomeField("mood", "words", ("calm", "cross"), "how it was taken", "", True),
        OutcomeField("again", "bool", (), "had to go twice", "", True),
        OutcomeField("steps", "int", (), "stairs climbed", "", True),
    ) == FIELDS


def test_a_domain_comes_back_from_a_manifest() -> None:
    kind = FeedbackKind("doorstep", ("thanks", "grumbles"), "said at the door")
    domain = Domain("errands", (kind,), FIELDS, (SHARE,))
    assert domain_of(json.loads(json.dumps({"domain": domain.plain()}))) == domain
    assert domain.number("doorstep") == len(FEEDBACK_KINDS)
    assert list(domain.feedback()) == [*FEEDBACK_KINDS, "doorstep"]


def test_columns_are_the_fields_of_the_outcome() -> None:
    zeros = np.zeros(2)
    made = Errand(zeros, zeros.astype(np.int32), zeros > 0, zeros.astype(np.int32))
    assert list(Domain("errands", outcome=FIELDS).columns(made)) == ["minutes", "mood", "again", "steps"]
    assert Domain("answers").columns(None) == {}


def test_strategies_are_levels_of_a_column_of_advice() -> None:
    by_name = {each.name: each for each in advice(["delay", "compare"]).outcome}
    assert by_name["strategy"].levels == ("delay", "compare")
    assert [name for name, each in by_name.items() if not each.truth] == ["tier", "outcome"]
    assert [each.name for each in outcome_fields(Outcome)] == list(by_name)


@dataclass(frozen=True)
class Wordy:
    note: str = outcome_field("in words")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Domain("d", (FeedbackKind("rating", ("a",), ""),)), "feedback 'rating' is the name of one that every"),
        (lambda: Domain("d", (FeedbackKind("mood", (), ""),)), "feedback 'mood' has no levels"),
        (lambda: Domain("d", outcome=(FIELDS[0], FIELDS[0])), "outcome 'minutes' is named twice"),
        (lambda: Domain("d", metrics=(SHARE,)), "metric 'cross' is of 'mood', and the fields of the outcome are none"),
        (
            lambda: Domain(
                "d", outcome=FIELDS, metrics=(OutcomeMetric("x", "x", "mood", ("sad",), "share", "lower", ""),)
            ),
            r"metric 'x' has levels \('sad',\), and 'mood' has calm, cross",
        ),
        (
            lambda: Domain("d", outcome=FIELDS, metrics=(OutcomeMetric("x", "x", "mood", (), "", "lower", ""),)),
            "metric 'x' has levels",
        ),
        (lambda: outcome_fields(Wordy), "outcome field 'note' is annotated .*; valid are Bool, I32 and F64"),
        (lambda: domain_of({"domain": {"name": "d"}}), "the manifest says nothing sound of the domain"),
    ],
)
def test_a_domain_that_contradicts_itself_is_refused(made: object, says: str) -> None:
    assert callable(made)
    with pytest.raises(UsageError, match=says):
        made()


def test_codes_that_are_no_levels_are_refused_with_their_row() -> None:
    domain = Domain("errands", (FeedbackKind("doorstep", ("thanks", "grumbles"), ""),), FIELDS)
    zeros, n = np.zeros(3), len(FEEDBACK_KINDS)
    made = Errand(zeros, np.array([1, 0, 2], np.int32), zeros > 0, zeros.astype(np.int32))
    with pytest.raises(RowError, match=r"outcome\.mood is 2, valid are -1 to 1, codes of its levels") as found:
        domain.columns(made)
    assert found.value.row == 2
    for kind, value, says in ((n, 2, "Feedback.value is 2, valid are 0 to 1"), (n + 1, 0, f"Feedback.kind is {n + 1}")):
        with pytest.raises(RowError, match=says) as found:
            domain.check_feedback(feedback_rows(kind, np.array([-1, value], np.int32)))
        assert found.value.row == 1
    domain.check_feedback(feedback_rows(n, np.array([0, 1], np.int32)))
