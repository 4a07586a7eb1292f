"""The baseline file: what is written is read, and what is not whole is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skg_bench.analysis.gate import baseline as baselines
from skg_bench.analysis.gate.baseline import BUDGET, Baseline
from skg_bench.analysis.gate.panel import Panel
from skg_bench.analysis.gate.rules import HARMED, RULES, Rule
from skg_bench.core.errors import UsageError
from tests.analysis.gate.panels import made, worse


def content(panel: Panel, anchor: Panel | None = None) -> str:
    return baselines.baseline_text(Baseline(panel, anchor or panel, RULES, BUDGET))


def file(
    folder: Path, change: dict[str, Any] | None = None, panel: Panel | None = None, anchor: Panel | None = None
) -> Path:
    path = folder / "baseline.json"
    path.write_text(content(panel or worse([50, 60]), anchor), "utf-8")
    if change:
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    return path


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32), st.booleans())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, users: int, turns: int, seed: int, anchored: bool
) -> None:
    rng = np.random.default_rng(seed)
    panel = made(rng.random((users, turns)) < 0.3, rng.random((users, turns)) < 0.2, "x", first=int(rng.integers(9)))
    panel = replace(panel, rated=rng.integers(0, 4, panel.wrong.size).astype(np.uint8) * ~panel.hit)
    anchor = replace(panel, digests={**panel.digests, "answer_correct": "y"}) if anchored else None
    path = file(tmp_path_factory.mktemp("b"), panel=panel, anchor=anchor)
    again = baselines.read_baseline(path)
    assert (again.rules, again.budget, again.drifts) == (RULES, BUDGET, anchored)
    for name in ("arm", "digests", "made"):
        assert getattr(again.panel, name) == getattr(panel, name)
    for name in ("users", "turns", "hit", "wrong", "rated"):
        assert np.array_equal(getattr(again.panel, name), getattr(panel, name)), name
    assert all(np.array_equal(again.panel.counts[name], panel.counts[name]) for name in panel.counts)
    assert baselines.baseline_text(again) == path.read_text("utf-8")


def test_a_user_is_a_line_so_that_a_diff_names_who_changed(tmp_path: Path) -> None:
    before, after = (content(worse(lost)) for lost in ([5, 5, 5], [5, 6, 5]))
    changed = [b for a, b in zip(before.splitlines(), after.splitlines(), strict=True) if a != b]
    assert [line.split(":")[0].strip(' "') for line in changed if "[" in line] == [str(u) for u in range(1, 100, 3)]
    assert len(before) < 100 * 200 + 3000


def test_what_a_person_edited_counts(tmp_path: Path) -> None:
    metrics = {
        "rated_ok": {"role": "errors", "better": "higher", "margin": 0.02},
        "harmed_users": {"role": "tail", "better": "lower", "margin": 0.1, "beyond": 0.05},
        "hit_rate": {"role": "informs"},
    }
    baseline = baselines.read_baseline(file(tmp_path, {"metrics": metrics, "budget": 3}))
    assert baseline.rules == (
        Rule("rated_ok", "errors", "higher", 0.02),
        Rule(HARMED, "tail", "lower", 0.1, 0.05),
        Rule("hit_rate", "informs"),
    )
    assert baseline.budget == 3.0


ERRORS = {"err_per_request": {"role": "errors", "better": "lower", "margin": 0.005}}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (None, 'declares no roles; write "metrics": {"utility": {"role": "utility", "better": "higher", "margin"'),
        ({}, "declares no roles"),
        ({"utility": 0.01}, 'metrics.utility has the role None; write "role": one of lead, utility, errors'),
        ({"utility": {"role": "worth"}}, "metrics.utility has the role 'worth'"),
        ({"utility": {"role": "utility", "margin": 0.01}}, 'blocks and has no direction; write "better": "higher"'),
        (
            {"utility": {"role": "utility", "better": "lower", "margin": 0.01}},
            "says that 'lower' is better; write \"better\": \"higher\"",
        ),
        ({"utility": {"role": "utility", "better": "higher"}}, "margin is None, and must be a number above 0; write"),
        ({"utility": {"role": "utility", "better": "higher", "margin": 0}}, "margin is 0, and must be"),
        ({"utility": {"role": "utility", "better": "higher", "margin": True}}, "margin is True, and must be"),
        ({"worst_users": {"role": "tail", "better": "lower", "margin": 0.03}}, 'write for example "share": 0.05'),
        ({"harmed_users": {"role": "tail", "better": "lower", "margin": 0.03}}, 'write for example "beyond": 0.02'),
        ({**ERRORS, "hit_rate": {"role": "efficiency"}}, 'hits inform only, write "role": "informs"'),
        ({"uility": {"role": "utility"}}, 'metrics.uility: it cannot have the role "utility"; metrics that can are'),
        ({"skills": {"role": "informs"}}, "metrics.skills"),
        ({"hit_rate": {"role": "informs"}}, "no metric blocks"),
        ({"lead": {"role": "lead", "better": "higher"}}, "share is None, and must be a number above 0 and below 1"),
        ({"lead": {"role": "lead", "better": "higher", "share": 1.5}}, "share is 1.5, and must be"),
        (
            {**ERRORS, "hit_rate": {"role": "informs", "better": "higher", "margin": 0.01}},
            "metrics.hit_rate: a metric of role \"informs\" has no 'better' here; valid are role",
        ),
        (
            {"lead": {"role": "lead", "better": "higher", "share": 0.5, "margin": 0.01}},
            "metrics.lead: a metric of role \"lead\" has no 'margin' here; valid are role, better, share",
        ),
        (
            {"utility": {"role": "utility", "better": "higher", "margin": 0.01, "floor": 0.5}},
            "metrics.utility: a metric of role \"utility\" has no 'floor' here; valid are role, better, margin",
        ),
        ({"utility": {"role": "lead"}}, 'it cannot have the role "lead"; metrics that can are lead'),
        ({**ERRORS, "right_hits": {"role": "efficiency", "better": "higher", "margin": 0.005}}, '"floor": 0.25'),
        (
            {"right_hits": {"role": "efficiency", "better": "higher", "margin": 0.005, "floor": 0.2}},
            'write "err_per_request": {"role": "errors", "better": "lower", "margin": 0.005}',
        ),
    ],
)  # fmt: skip
def test_a_file_whose_roles_or_directions_are_missing_says_what_to_write(
    tmp_path: Path, metrics: Any, message: str
) -> None:
    path = file(tmp_path, {"metrics": metrics})
    with pytest.raises(UsageError, match=str(path)) as error:
        baselines.read_baseline(path)
    assert message in str(error.value)


def test_a_file_of_the_format_before_roles_is_refused(tmp_path: Path) -> None:
    old = {"format": 1, "margins": {"utility": 0.01, "hit_rate": 0.005}, "cumulative": 2.0}
    with pytest.raises(UsageError, match=r"format 1, this version reads 3; .* delete it and write it with .*--update"):
        baselines.read_baseline(file(tmp_path, old))


def test_an_anchor_of_another_world_or_panel_is_refused(tmp_path: Path) -> None:
    base = worse([50])
    made = {**base.made, "config": {**base.made["config"], "simulator": {"rated_share": 0.9}}}
    other = replace(base, made=made, digests={**base.digests, "answer_correct": "other"})
    again = r"[\s\S]*write both from one run: `skg-bench gate --baseline .* --update --move-anchor RUN`"
    with pytest.raises(UsageError, match=r"anchor in .* is of another world; it differs in\s+simulator.rated" + again):
        baselines.read_baseline(file(tmp_path, panel=base, anchor=other))
    with pytest.raises(UsageError, match="anchor in .* is of another panel: 40 users there, 100 in the run" + again):
        baselines.read_baseline(file(tmp_path, panel=base, anchor=worse([50], users=40)))


def test_a_world_that_a_person_edited_is_refused(tmp_path: Path) -> None:
    made = {**worse([50, 60]).made}
    made["config"] = {**made["config"], "simulator": {"rated_share": 0.9}}
    with pytest.raises(UsageError, match=r"world\.simulator is not the digest of what it declares"):
        baselines.read_baseline(file(tmp_path, {"made": made}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 4}, "format 4"),
        ({"budget": 0.5}, "budget=0.5"),
        ({"budget": True}, "corrupt"),
        ({"bugdet": 3}, "unknown key 'bugdet', which no verdict would read; valid are format, arm, metrics, budget"),
        ({"anchor": 3}, "corrupt"),
        ({"world": {}}, "world.simulator"),
        ({"users": {}}, "corrupt"),
        ({"users": {"0": [4, [4, 0, 0, 0, 0, 0], "????"]}}, "corrupt"),
        ({"users": {"0": [4, [4, 0], "AAAA"]}}, "corrupt"),
        ({"digests": {}}, "corrupt"),
        ({"made": None}, "corrupt"),
        ({"counts": ["turn", "hit", "wrong", "wrong_hit", "latency", "cash"]}, "corrupt"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = file(tmp_path, change)
    with pytest.raises(UsageError, match=str(path)) as error:
        baselines.read_baseline(path)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("count", "totals"), [("wrong", "[1000, 100, 40,"), ("turn", "[0, 100, 50,"), ("turn", "[1001, 100, 50,")]
)
def test_totals_that_are_not_those_of_the_turns_are_refused(tmp_path: Path, count: str, totals: str) -> None:
    path = file(tmp_path)
    text = path.read_text("utf-8")
    assert "[1000, [1000, 100, 50," in text
    path.write_text(text.replace("[1000, [1000, 100, 50,", f"[1000, {totals}", 1), "utf-8")
    with pytest.raises(UsageError, match=f"totals of {count} are not those of the outcomes"):
        baselines.read_baseline(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"form": 2}', "\x00\xff"])
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="corrupt"):
        baselines.read_baseline(path)


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--baseline .*nothing.json --update RUN"):
        baselines.read_baseline(tmp_path / "nothing.json")
