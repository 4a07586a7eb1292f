"""The columns of a run's logs: the paper's own names, documented, and marked where they hold the truth."""

import pyarrow as pa
import pytest

from skg_bench.core.batch import OPERATIONS
from skg_bench.core.domain import outcome_fields
from skg_bench.core.types import RATINGS
from skg_bench.core.world import OFFERS
from skg_bench.runfolder import schema
from skg_bench.simulator.advice.outcome import Outcome

TURNS = schema.turns(5)
PAPER = {
    "user_msg_id": pa.string(),
    "message": pa.string(),
    "max_sim": pa.float32(),
    "matched_skill": pa.string(),
    "skill_score": pa.float32(),
    "fallback_to_llm": pa.bool_(),
    "user_satisfaction": pa.string(),
    "skill_learned": pa.bool_(),
}


@pytest.mark.req("K14", "K07")
def test_the_turn_log_opens_with_the_papers_signal_table() -> None:
    assert TURNS.names[: len(PAPER)] == list(PAPER)
    for name, kind in PAPER.items():
        column = TURNS.field(name).type
        assert (column.value_type if pa.types.is_dictionary(column) else column) == kind


@pytest.mark.req("K15")
def test_satisfaction_is_ok_partial_miss_or_nothing() -> None:
    assert RATINGS == ("ok", "partial", "miss")
    assert TURNS.field("user_satisfaction").nullable
    assert OPERATIONS == ("ADD", "UPDATE", "TAG", "REMOVE")
    assert "declined" in OFFERS


def test_truth_columns_are_marked_and_no_other() -> None:
    truth = [f.name for f in TURNS if f.metadata[b"truth"] == b"yes"]
    answers = ["skill_correct", "answer_correct", "cause", "intent", "request_type", "answerable", "used_up"]
    assert truth == [*answers, "same_intent"]
    for log in (schema.UPDATES, schema.FEEDBACK, schema.LEARNING_LOG):
        assert not [f.name for f in log if f.metadata[b"truth"] == b"yes"]


def test_an_outcome_has_its_columns_in_its_domain_only() -> None:
    advised = schema.turns(5, outcome_fields(Outcome))
    more = [f for f in advised if f.name not in TURNS.names]
    worths = ["worth", "worth_expected", "worth_fresh", "worth_book", "worth_best"]
    assert [f.name for f in more if f.metadata[b"truth"] == b"yes"] == ["wanted", "strategy", *worths]
    assert [f.name for f in more if f.metadata[b"truth"] == b"no"] == ["tier", "outcome"]
    assert all(f.nullable for f in more)


def test_every_log_carries_the_version() -> None:
    for log in (TURNS, schema.UPDATES, schema.FEEDBACK, schema.LEARNING_LOG):
        assert log.metadata[b"skg_bench_schema"] == str(schema.SCHEMA_VERSION).encode()


def test_places_are_lists_as_long_as_the_shortlist() -> None:
    assert schema.turns(7).field("combined").type.list_size == 7
