"""The description refuses malformed requests, so that a passing delivery says something."""

from tests.tracker.contract import contract
from tests.tracker.server import BATCH


def test_a_malformed_batch_of_traces_is_refused_and_an_unknown_field_is_noted() -> None:
    match = contract().route(*BATCH)
    assert match is not None
    route, operation = match
    assert route == BATCH[1]
    assert contract().errors(operation, {"traces": "no"}) != []
    assert contract().errors(operation, {"traces": [{"name": "no start time"}]}) != []
    started = {"start_time": "2026-01-05T09:00:00Z", "nmae": "x", "end_time": None}
    assert contract().errors(operation, {"traces": [started]}) == []
    assert contract().unknown == {".traces[].nmae"}


def test_a_path_that_the_description_lacks_has_no_route() -> None:
    assert contract().route("get", "/v1/private/traces/a/b/c") is None
    assert contract().route("get", "/v1/private/traces/5")
