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


def test_each_item_is_looked_at_although_one_like_it_was_sent_before() -> None:
    match = contract().route("post", "/v1/private/experiments/items")
    assert match is not None
    item = {key: f"0{n}9a0000-0000-7000-8000-000000000000" for n, key in enumerate(
        ("id", "experiment_id", "dataset_item_id", "trace_id"))}  # fmt: skip
    other = {**item, "id": item["trace_id"]}
    assert contract().errors(match[1], {"experiment_items": [item, other]}) == []
    assert contract().errors(match[1], {"experiment_items": [item, other, item]}) != []  # twice
    assert contract().errors(match[1], {"experiment_items": [item, {**other, "trace_id": 5}]}) != []
    assert contract().errors(match[1], {"experiment_items": [item, {"id": item["id"]}]}) != []
    contract().unknown.clear()
    for _ in range(2):
        assert contract().errors(match[1], {"experiment_items": [{**item, "nmae": "x"}]}) == []
        assert contract().unknown == {".experiment_items[].nmae"}
        contract().unknown.clear()


def test_a_path_that_the_description_lacks_has_no_route() -> None:
    assert contract().route("get", "/v1/private/traces/a/b/c") is None
    assert contract().route("get", "/v1/private/traces/5")
