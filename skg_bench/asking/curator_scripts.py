"""Rules by which a stand-in for a model answers the curators that write a skillbook in one step.

All of them note the same things as the reflector of the scripts, so that such curators differ by what they keep of it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from skg_bench.asking.asking import Prompt
from skg_bench.asking.prompts import data_of

_RATINGS = {
    "correct": "ok", "positive_reinforcement": "ok", "incorrect": "miss", "negative_reinforcement": "miss",
    "neutral": "partial",
}  # fmt: skip
"""Beginnings of feedback in words (core/domain.py: signals), as ratings."""


def rating_of(feedback: Mapping[str, str]) -> str | None:
    """Rating of a turn, or the one that what the user did amounts to; None: neither."""
    return feedback.get("rating") or _RATINGS.get(feedback.get("signal", "").partition(" ")[0])


def noted(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Section and words of what a turn teaches: a good answer without a skill, or something else to say where a
    suggestion was overridden; None: nothing.
    """
    feedback, question = data["feedback"], data["question"]
    if feedback.get("rating") == "ok" and not data.get("skills_used"):
        return "answers", f"The answer to '{question}' was right: give it again when asked in other words."
    if feedback.get("signal", "").startswith("incorrect"):
        return "strategies", f"Before '{question}', name the hours of work that it costs, and offer to wait for a day."
    return None


def _cheatsheet(prompt: Prompt) -> str:
    """The text as it was, and one more paragraph."""
    data = data_of(prompt)
    text, note = data["cheatsheet"], noted(data)
    more = [note[1]] if note and note[1] not in text else []
    return "\n\n".join(["<cheatsheet>", *filter(None, [text]), *more, "</cheatsheet>"])


def _success(prompt: Prompt) -> str:
    """The note of a good answer, or that a suggestion was heeded."""
    data = data_of(prompt)
    note = noted(data)
    heeded = f"What was said before '{data['question']}' was heeded: say such a thing again."
    return _lessons("Again", heeded if note is None else note[1])


def _failure(prompt: Prompt) -> str:
    note = noted(data_of(prompt))
    return _lessons("Otherwise", None if note is None else note[1])


def _lessons(title: str, content: str | None) -> str:
    lesson = {"title": title, "description": "For such requests.", "content": content}
    return json.dumps({"lessons": [] if content is None else [lesson]}, ensure_ascii=False)


def _facts(prompt: Prompt) -> str:
    note = noted(data_of(prompt))
    return json.dumps({"facts": [] if note is None else [note[1]]}, ensure_ascii=False)


def _memory(prompt: Prompt) -> str:
    """ADDs for facts that no memory has word for word."""
    data = data_of(prompt)
    known = {fact: fact in data["skillbook"] for fact in data["facts"]}
    events = [{"event": "NONE" if known[fact] else "ADD", "id": None, "text": fact} for fact in data["facts"]]
    return json.dumps({"memory": events}, ensure_ascii=False)


def _write(prompt: Prompt) -> str:
    data = data_of(prompt)
    return json.dumps({"prompt": f"{data['question']} {data['answer']}"}, ensure_ascii=False)


CURATOR_SCRIPTS: Mapping[str, Callable[[Prompt], str]] = {
    "cheatsheet": _cheatsheet, "lessons_of_success": _success, "lessons_of_failure": _failure, "mem0_facts": _facts,
    "mem0_memory": _memory, "skill_writer": _write,
}  # fmt: skip
