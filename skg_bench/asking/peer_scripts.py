"""Rules by which a scripted model answers the roles of a published package, which ask with tools.

Its decisions are those of the scripted reflector and skill manager, so that the package and `curator=reflecting` get
the same decisions at a turn.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from skg_bench.asking.asking import Prompt
from skg_bench.asking.curator_scripts import noted, rating_of
from skg_bench.asking.wire import ChatChoice, in_chat

_DONE = "final_result"  # tool by which a role hands over its result
_QUESTION = re.compile(r"^Question: (.*?)\nModel Reasoning:", re.MULTILINE | re.DOTALL)
_FEEDBACK = re.compile(r"^Environment Feedback: (.*?)\n\n", re.MULTILINE | re.DOTALL)
_APPLIED = re.compile(r"^\[([\w-]+-\d+)\] Issue: ", re.MULTILINE)
_REFLECTIONS = re.compile(r"<reflections>\n(.*?)\n</reflections>", re.DOTALL)
_HELPED, _HARMED = (re.compile(rf"\b{word}: ([\w-]+-\d+)") for word in ("Helpful", "Harmful"))
_WORDS = re.compile("[a-z0-9]+")


def answer_peer(prompt: Prompt) -> str:
    """Scripted answer: a reflection, changes of the book, or the report that they are done; else words."""
    raw = prompt.raw or {}
    tools = [tool["function"]["name"] for tool in raw.get("tools", ())]
    if _DONE not in tools:
        return in_chat("I do not know.").text
    if "add_skill" not in tools:
        return _called([(_DONE, _reflection(prompt.user))])
    answered = any(message.get("role") == "tool" for message in raw["messages"])
    return _called((not answered and _changes(prompt.user)) or [(_DONE, {"reasoning": "as the reflection says"})])


def _reflection(words: str) -> Mapping[str, Any]:
    """Result of the reflector: skills that helped or harmed, and what is worth noting."""
    question, feedback = _QUESTION.search(words), _FEEDBACK.search(words)
    lines = dict(line.partition(": ")[::2] for line in (feedback[1] if feedback else "").splitlines())
    used, rating = _APPLIED.findall(words), rating_of(lines)
    effect = {"ok": "Helpful", "miss": "Harmful"}.get(rating or "")
    tags = [f"{effect}: {label}" for label in used] if effect else []
    note = noted({"question": question[1] if question else "", "feedback": lines, "skills_used": used})
    reasoning = ". ".join([f"The user said {rating or 'nothing'}; {len(used)} skills were used", *tags])
    return {"reasoning": reasoning, "correct_approach": "", "key_insight": note[1] if note else ""}


def _changes(words: str) -> list[tuple[str, Mapping[str, Any]]]:
    """A tag for each skill that helped or harmed, and a skill for what is worth noting."""
    match = _REFLECTIONS.search(words)
    (reflection,) = json.loads(match[1]) if match else ({"reasoning": "", "key_insight": ""},)
    calls: list[tuple[str, Mapping[str, Any]]] = [
        ("tag_skill", {"skill_id": label, "delta": delta})
        for pattern, delta in ((_HELPED, 1), (_HARMED, -1))
        for label in pattern.findall(reflection["reasoning"])
    ]
    if text := reflection["key_insight"]:
        keywords = list(dict.fromkeys(_WORDS.findall(text.lower())))[:3]
        calls.append(("add_skill", {"section": "context", "issue": text, "insight": text, "keywords": keywords}))
    return calls


def _called(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """A choice that calls tools."""
    listed = [
        {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    return ChatChoice({"tool_calls": listed}, "tool_calls").text
