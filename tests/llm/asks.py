"""Endpoints and prompts for tests of models of texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from skg_bench.app.building import build
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking.asking import Prompt
from skg_bench.asking.prompts import load_prompt
from skg_bench.llm.endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]
REFLECTOR = load_prompt("reflector", None, ("question", "answer", "feedback", "skills_used", "skillbook"))
MANAGER = load_prompt("skill_manager", None, ("reflection", "skills_used", "skillbook"))
NOTHING_LEARNED: dict[str, Any] = {"helpful_skill_ids": [], "harmful_skill_ids": [], "new_learnings": []}


def endpoint(address: str, **changes: Any) -> Endpoint:
    """`conf/llm/endpoint.yaml` at a server of a test, which wants no key."""
    packaged = build("llm", yaml.safe_load((ROOT / "conf" / "llm" / "endpoint.yaml").read_text("utf-8")), COMMAND_LINE)
    assert isinstance(packaged, Endpoint)
    return replace(packaged, **{"address": address, "key_from": None, **changes})


def reflection(n: int = 0, **changes: Any) -> Prompt:
    """What a learner asks about the turn of user `n`."""
    data = {"question": f"question {n}", "answer": "yes", "feedback": {"rating": "ok"}, "skills_used": []}
    return replace(REFLECTOR.ask({**data, "skillbook": ""}, draw=n, limit=300), **changes)


def reflections(n: int) -> list[Prompt]:
    """Of `n` users."""
    return [reflection(i) for i in range(n)]


def skill_update() -> Prompt:
    """What a learner asks next."""
    data = {"reflection": {"analysis": "good", **NOTHING_LEARNED}, "skills_used": [], "skillbook": ""}
    return MANAGER.ask(data, draw=0, limit=300)


def free(text: str = "hello") -> Prompt:
    """Any text will do as its answer."""
    return Prompt("cheatsheet", "Be short.", text, None, 0, 50)
