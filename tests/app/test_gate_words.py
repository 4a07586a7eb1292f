"""`skg-bench gate` on a class in a world that judges words: nobody can see what it answers from memory."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from skg_bench.app import launch
from skg_bench.app.run_identity import provenance
from tests.app.test_cli import call, refused

pytestmark = pytest.mark.usefixtures("clean")
CLASS = """
class Mine:
    def __init__(self): self.earlier, self.words = [], {}
    def answer(self, user, time, message, model):
        if AGAIN and message in self.words: return self.words[message]
        if not FORGETS: self.earlier.append(message)
        self.words[message] = model("\\n".join([*self.earlier, message]))
        return self.words[message]
"""
ANCHORS = "never: [policy=never,curator=none], oracle: [router=oracle,policy=always,curator=oracle]"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A run of a class that puts all messages in its prompt, repeats words where messages are equal, or forgets."""
    monkeypatch.setattr(launch, "provenance", lambda: {**provenance(), "dirty": None})

    def run(*, again: bool = False, forgets: bool = False) -> str:
        (tmp_path / "my.py").write_text(f"AGAIN, FORGETS = {again}, {forgets}\n{CLASS}", "utf-8")
        mine = f"[assistant=python, assistant.controls=false, 'assistant.file={tmp_path}/my.py:Mine']"
        size = ("simulator=told", "llm=in_words", "users=30", "weeks=2", "workers=1", "contrasts=[]")
        out = tmp_path / f"{again}-{forgets}"
        words = ("run", *size, f"arms={{mine: {mine}, {ANCHORS}}}", "reference=never", f"out={out}")
        assert call(*words)[0] == 0
        return str(out)

    return run


def test_no_rule_is_about_hits_that_nobody_can_see(told: Callable[..., str], tmp_path: Path) -> None:
    """Once, a build that asked its model in place of repeating words had lost *right hits*."""
    file = tmp_path / "b.json"
    code, out, _ = call("gate", "--baseline", str(file), "--update", "--arm", "mine", told(again=True))
    assert code == 0
    assert "right_hits does not block: this world judges words, and nobody can see what" in " ".join(out.split())
    content = json.loads(file.read_text("utf-8"))
    assert not {"right_hits", "hit_rate", "err_per_hit"} & set(content["metrics"])
    code, out, _ = call("gate", "--baseline", str(file), told())
    assert not re.search(r"\b(right hits|hit rate|per hit|skillbook)\b", out)
    code, out, _ = call("gate", "--baseline", str(file), told(forgets=True))
    assert code == 1
    assert set(re.findall(r'": (.*?);', out)) == {"right -> wrong"}
    content["metrics"]["right_hits"] = {"role": "efficiency", "better": "higher", "margin": 0.005, "floor": 0.25}
    file.write_text(json.dumps(content), "utf-8")
    for words in ((told(),), ("--update", told())):
        assert "remove metrics.right_hits" in refused("gate", "--baseline", str(file), *words)
