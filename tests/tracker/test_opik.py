"""What Opik is sent is what its contract takes; what it shows is what counts; and all of it gets there once."""

import json
import re
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis import summary
from skg_bench.app import run_trackers
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.run import Run
from skg_bench.tracker import events, opik
from skg_bench.tracker.opik import Opik
from skg_bench.tracker.opik_experiments import identifier
from tests.tracker.server import Failure, Server, lines


def delivered(server: Server, run: Run, users: int | None = None) -> tuple[str, bool]:
    return run_trackers.deliver(Opik(server.url, users, None), run)


def keys(server: Server) -> Counter[int]:
    return Counter(UUID(name).int & (1 << 62) - 1 for name in server.traces)


def expected(run: Run) -> set[int]:
    return {int(event["key"], 16) for event in lines(run.path / events.EVENTS_FILE)}


@given(st.integers(0, 1 << 47), st.integers(0, 2_000_000), st.integers(0, (1 << 62) - 1))
@settings(max_examples=200, deadline=None)
def test_an_id_is_of_version_7_keeps_the_order_of_the_file_and_ends_in_the_key(ms: int, number: int, key: int) -> None:
    first, other = (
        UUID(identifier(ms, number, key)),
        UUID(identifier(ms, number + 1, 0)),
    )
    assert first.version == 7
    assert first.variant == "specified in RFC 4122"
    assert first < other
    assert first.int & (1 << 62) - 1 == key
    assert 0 <= (first.int >> 80) - ms <= number / 4096


def test_all_events_pass_the_contract_and_are_read_back(run: Run, server: Server) -> None:
    line, complete = delivered(server, run)
    assert complete
    assert server.complaints == []
    assert server.unknown_fields() == set()
    assert set(keys(server)) == expected(run)
    assert len(server.traces) == len(expected(run)) > 1000
    project = f"first-{run.manifest['identity'][:8]}"
    count = f"{len(server.traces):,}"
    assert line == f"opik: {count} traces in project {project} at {server.url} ({count} of them new), 2 experiments"
    sent = [{key: value for key, value in trace.items() if key not in ("id", "project_name")}
            for trace in server.traces.values()]  # fmt: skip
    assert sent == [event["trace"] for event in lines(run.path / events.EVENTS_FILE)]


def test_each_arm_is_an_experiment_named_by_its_verdict_whose_items_lie_beside_those_of_the_others(
    run: Run, server: Server
) -> None:
    assert delivered(server, run, users=2)[1]
    assert (server.complaints, server.unknown_fields()) == ([], set())
    figures = summary.read_summary(run)
    gap = figures.differences["skg"]["utility"]
    by_arm = {each["metadata"]["arm"]: each for each in server.experiments.values()}
    assert by_arm["never"]["name"] == "never: the reference"
    assert re.fullmatch(rf"skg: {gap.verdict}: [+-]0\.\d+ utility \(.* to .*\) against never", by_arm["skg"]["name"])
    scores = {score["name"]: score["value"] for score in by_arm["skg"]["experiment_scores"]}
    ends = [scores[f"difference in utility{part}"] for part in ("", ", low", ", high")]
    assert ends == [gap.mean, gap.low_new, gap.high_new]
    assert scores["utility"] == figures.arms["skg"]["utility"].mean
    beside = Counter((link["dataset_item_id"], link["experiment_id"]) for link in server.links.values())
    assert set(beside.values()) == {1}
    assert len(beside) == 2 * len(server.events)
    for link in server.links.values():
        trace, event = server.traces[link["trace_id"]], server.events[link["dataset_item_id"]]
        assert trace["input"]["message"] == event["data"]["message"]
        assert trace["metadata"]["arm"] == server.experiments[link["experiment_id"]]["metadata"]["arm"]
        assert (trace["metadata"]["user"], trace["metadata"]["turn"]) == (event["data"]["user"], event["data"]["turn"])


def test_experiments_that_are_whole_stay_and_others_are_made_anew(run: Run, server: Server) -> None:
    delivered(server, run, users=1)
    first, changes = dict(server.experiments), server.changes
    assert delivered(server, run, users=1)[1]
    assert (server.experiments, server.changes) == (first, changes)
    server.links.popitem()  # a delivery that was cut off
    assert delivered(server, run, users=1)[1]
    assert len(server.experiments) == len(first) == 2
    before = len(server.links)
    assert delivered(server, run, users=2)[1]  # more users
    assert len(server.experiments) == 2
    assert len(server.links) == 2 * len(server.events) > before


def test_a_run_without_figures_has_no_experiment_yet(run: Run, server: Server) -> None:
    (run.path / "summary.json").unlink()
    line, complete = delivered(server, run, users=1)
    assert complete
    assert line.endswith("of them new)")
    assert not server.experiments


@pytest.mark.parametrize("most", [10_000, 500])
def test_what_is_there_is_not_sent_again(run: Run, server: Server, most: int) -> None:
    server.most = most  # traces of a page
    delivered(server, run, users=1)
    before, batches = dict(server.traces), server.batches
    line, complete = delivered(server, run, users=1)
    assert complete
    assert "(0 of them new)" in line
    assert (server.traces, server.batches) == (before, batches)
    line, complete = delivered(server, run, users=2)  # more users: only theirs
    assert complete
    assert f"({len(server.traces) - len(before):,} of them new)" in line
    assert set(keys(server).values()) == {1}


@pytest.mark.parametrize(
    ("failure", "after", "why"),
    [
        ("500", 0, "answered 500"),
        ("500", 1, "answered 500"),
        ("deaf", 1, "RemoteProtocolError"),  # it took a batch, and died before it said so
        ("forgetful", 1, "shows"),  # it said that it took a batch, and lost it
        ("shy", 0, "shows 0 of"),
        ("denied", 0, "is OPIK_API_KEY set?"),
    ],
)
def test_what_a_failing_server_did_not_take_is_counted_and_delivered_later_once(
    run: Run, server: Server, failure: Failure, after: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik, "_LOOKS", (0.0, 0.01))
    monkeypatch.setattr(opik, "_BATCH", 400)
    server.fail(failure, after)
    line, complete = delivered(server, run)
    total = len(expected(run))
    assert not complete
    assert why in line
    taken = {"500": 400 * after, "deaf": 400, "forgetful": 400, "shy": 0, "denied": 0}[failure]
    assert line.startswith(f"opik: {taken:,} of {total:,} delivered (")
    assert line.endswith(f"; the rest, once: skg-bench export opik {run.path} tracker.url={server.url}")
    server.fail(None)
    line, complete = delivered(server, run)
    assert complete
    assert set(keys(server)) == expected(run)
    assert set(keys(server).values()) == {1}


@pytest.mark.parametrize("date", [False, True])
def test_a_server_that_is_busy_is_asked_again_when_it_says(run: Run, server: Server, date: bool) -> None:
    server.dated = date
    server.fail("busy")
    assert delivered(server, run)[1]
    assert set(keys(server)) == expected(run)


def test_where_nobody_listens_or_somebody_else_does_it_is_said(run: Run, server: Server, tmp_path: Path) -> None:
    line, complete = run_trackers.deliver(Opik(f"{server.url}elsewhere", 1, None), run)
    assert not complete
    assert "answered 404" in line
    server.stop()
    line, complete = delivered(server, run)
    assert not complete
    assert "ConnectError" in line
    assert f"opik: 0 of {len(expected(run)):,} delivered" in line


@pytest.mark.req("P41")
def test_without_a_server_the_event_file_is_written_and_that_is_said(run: Run) -> None:
    line, complete = run_trackers.deliver(Opik(None, 1, None), run)
    assert not complete
    assert "no server is named, by tracker.url or OPIK_URL_OVERRIDE" in line
    assert expected(run)


def test_the_environment_names_server_workspace_and_key_and_the_key_is_nowhere_else(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("URL_OVERRIDE", server.url), ("API_KEY", "sesame-open"), ("WORKSPACE", "cave")):
        monkeypatch.setenv(f"OPIK_{name}", value)
    line, complete = run_trackers.deliver(Opik(None, 1, None), run)
    assert complete
    assert {(sent["authorization"], sent["comet-workspace"]) for sent in map(_lower, server.headers)} == {
        ("sesame-open", "cave")
    }
    server.fail("denied")  # and answers with the key that it got
    server.traces.clear()
    line, complete = run_trackers.deliver(Opik(None, 1, None), run)
    assert not complete
    assert "***" in line
    written = "".join(file.read_text("utf-8") for file in run.path.glob("*.json*")) + json.dumps(server.traces) + line
    assert "sesame-open" not in written


def _lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@pytest.mark.parametrize(
    ("url", "users", "message"),
    [
        ("http://me:secret@host/api", 1, "without user, password"),
        ("http://me:se/secret@host/api", 1, "'http://***@host/api' must be"),
        ("http://me:p@secret@host/api", 1, "'http://***@host/api' must be"),
        ("http://host/api?key=secret", 1, "'http://host/api?***' must be"),
        ("http://host/api#secret", 1, "'http://host/api#***' must be"),
        ("http://host?secret", 1, "give those in the environment: OPIK_API_KEY"),
        ("host:5173/api", 1, "must begin with http:// or https://"),
        ("", 1, "must be an address"),
        (None, 0, "tracker.users=0 must be at least 1"),
    ],
)
def test_bad_parameters_are_refused(url: str | None, users: int, message: str) -> None:
    with pytest.raises(UsageError) as error:
        Opik(url, users, None)
    assert message in str(error.value)
    assert "secret" not in str(error.value)
