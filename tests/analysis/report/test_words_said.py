"""Words that users were told, in their turns on the page: in a browser."""

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

import skg_bench

ARMS = "arms={never: [policy=never, curator=none], all: [assistant=recall]}"


def test_a_turn_shows_what_was_said_as_text_and_not_as_markup(visit: Callable[..., Page], tmp_path: Path) -> None:
    told = {"user": "a", "time": "2026-01-05T09:00:00", "message": "My <b>code</b> for lunch is k7f3-9q2m."}
    asked = {"user": "a", "time": "2026-01-06T09:00:00", "message": "What is my code for lunch?"}
    rows = [told, {**asked, "reference": "k7f3-9q2m"}]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    words = ["simulator=tasks", f"simulator.path={tmp_path / 'tasks.jsonl'}", ARMS, "reference=never", "learner=all"]
    run = skg_bench.run([*words, "workers=1", f"out={tmp_path / 'run'}"])
    page = visit(run.path / "report.html", "#user=0&turn=1")
    turn = page.locator("#u0-t1")
    turn.wait_for()
    text = turn.inner_text()
    assert "“My <b>code</b> for lunch is k7f3-9q2m.”" in text
    assert "✓ right" in text
    assert turn.locator("b", has_text="code").count() == 0
