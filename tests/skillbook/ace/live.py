"""The published packages as live oracles: each in an environment of its own, cases over a pipe (`make peers-ace`)."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skg_bench.skillbook.ace import published_prompts
from skg_bench.skillbook.ace.book import Era, dumps, to_dict
from tests.skillbook.ace.play import Case, Player, observed

ROOT = Path(__file__).parents[3]
VERSIONS: dict[Era, str] = {"v1": "0.7.1", "v09": "0.9.7", "v2": "0.13.0"}
SCRIPT = ROOT / "tests" / "oracles" / "ace" / "published.py"


def python(era: Era) -> Path:
    """The interpreter of the package's environment; it need not be there."""
    return ROOT / "runs" / "peers" / f"ace-{VERSIONS[era]}" / "bin" / "python"


def published(era: Era, cases: Sequence[Case]) -> Iterator[Case]:
    """What the package of that format does with each case."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [python(era), SCRIPT, era], input=lines, capture_output=True, text=True, check=True, encoding="utf-8"
    )
    yield from map(json.loads, done.stdout.splitlines())


def ours(case: Case) -> Case:
    """What our documents do with a case that goes on after errors."""
    player = Player(case["schema"])
    outcomes = [player.load(case["initial"])]
    if "error" in outcomes[0]:
        return {"outcomes": outcomes, "skillbook": None}
    texts = [observed(dumps, player.book)]
    for step in case["steps"]:
        outcomes.append(player.step(step))
        texts.append(observed(dumps, player.book))
    return {
        "outcomes": outcomes,
        "skillbook": observed(to_dict, player.book),
        "active_ids": [skill.id for skill in player.book.active],
        "as_prompt": observed(published_prompts.as_prompt, player.book),
        "stats": observed(published_prompts.stats, player.book),
        "texts": texts,
    }


def text_of(value: Any) -> str:
    """Compares what JSON tells apart: `true` from 1, one NaN equal to another."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True)


def difference(theirs: Case, mine: Case) -> str | None:
    """The first thing in which they differ; None for none."""
    for name in theirs:
        listed = name in ("outcomes", "texts")
        pairs = list(zip(theirs[name], mine[name], strict=True)) if listed else [(theirs[name], mine[name])]
        for i, (their, our) in enumerate(pairs):
            if text_of(their) != text_of(our):
                return f"{name}[{i}]: theirs {their}\nours {our}"
    return None
