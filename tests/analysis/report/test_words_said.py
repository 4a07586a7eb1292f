"""Words that users were told, in their turns on the page: in a browser."""

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

import skg_bench

ARMS = "arms={never: [policy=never, curator=none], all: [assistant=recall]}"


def test_no_turn_says_that_words_of_a_class_come_from_memory(visit: Callable[..., Page], tmp_path: Path) -> None:
    """Nobody can see it: of one whose prompts hold its memory it was said that the LLM answered, of one that says what
    it read that an earlier answer was given again.
    """
    told = {"user": "a", "time": "2026-01-05T09:00:00", "message": "My code for lunch is k7f3-9q2m."}
    asked = {"user": "a", "message": "What is my code for lunch?", "reference": "k7f3-9q2m"}
    rows = [told, *({**asked, "time": f"2026-01-0{day}T09:00:00"} for day in (6, 7))]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "echoing.py").write_text(
        "class Echo:\n"
        "    def __init__(self): self.told, self.asked = '', False\n"
        "    def answer(self, user, time, message, model):\n"
        "        again, self.asked = self.asked, message.endswith('?')\n"
        "        self.told = self.told or message\n"
        "        return self.told if again else model(message)\n",
        "utf-8",
    )
    words = ["simulator=tasks", f"simulator.path={tmp_path / 'tasks.jsonl'}", "reference=never", "learner=echo"]
    echo = f"echo: [assistant=python, 'assistant.file={tmp_path / 'echoing.py'}:Echo']"
    arms = f"arms={{never: [policy=never, curator=none], {echo}}}"
    run = skg_bench.run([*words, arms, "workers=1", f"out={tmp_path / 'run'}"])
    page = visit(run.path / "report.html", "#user=0&turn=2")
    page.locator("#u0-t2 .why").wait_for()
    text = page.locator("#u0-t2").inner_text()
    assert "It answered without its LLM: from memory, by a rule, or with nothing." in text
    person = page.locator("#person").inner_text()
    assert "Answered without the LLM 1" in person
    assert "no LLM, right" in person
    assert "memory, right" not in person
    assert "Answered from memory" not in person
    page.locator("#u0-t1 summary").click()
    page.locator("#u0-t1 .why").wait_for()
    assert "It asked its LLM. What of the prompt is memory cannot be seen." in page.locator("#u0-t1").inner_text()


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
