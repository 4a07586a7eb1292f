"""Asks of a model that are played again: the files of the recording are read once, and no model is asked."""

import time
from collections.abc import Iterator
from dataclasses import replace
from tempfile import TemporaryDirectory

from skg_bench.asking import recording
from skg_bench.asking.asking import Prompt
from skg_bench.asking.prompts import load_prompt
from skg_bench.llm.recorded import RecordedModel
from skg_bench.llm.scripted import Scripted

ASKS = 10_000
MARK = 5_000.0  # asks a second
SKILLS = 20  # in the skillbook that each prompt shows
LEARNED = 3  # in the reflection, so that the answers are of some length


def prompts(n: int) -> list[Prompt]:
    """Prompts of a skill manager, a thousand tokens each."""
    file = load_prompt("skill_manager", None, ("reflection", "skills_used", "skillbook"))
    book = "\n".join(
        f"[answers-{i:05}] a skill of some {i} words, which the user taught the assistant" for i in range(SKILLS)
    )
    learned = [
        {"section": "answers", "content": f"what was learned {i}", "atomicity_score": 0.9} for i in range(LEARNED)
    ]
    reflection = {"helpful_skill_ids": ["answers-00001"], "harmful_skill_ids": [], "new_learnings": learned}
    data = {"skills_used": ["answers-00001"], "skillbook": book}
    return [file.ask({**data, "reflection": {**reflection, "analysis": f"of ask {i}"}}, i, 1_000) for i in range(n)]


def measure(n: int) -> tuple[float, float, float]:
    """Seconds to record `n` asks, to read the files and play them in one call, and to play each in its own call: of the
    core, as other work on the machine takes its share of the clock's.
    """
    asks = prompts(n)
    with TemporaryDirectory() as folder:
        recorded = RecordedModel(Scripted("learner", 3.0, 15.0, 4000), "both", folder)
        play = replace(recorded, mode="play")
        seconds = []
        for model, calls in ((recorded, [asks]), (play, [asks]), (play, [[ask] for ask in asks])):
            if model is play and len(calls) == 1:
                recording.opened_recording.cache_clear()
            begun = time.process_time()
            for call in calls:
                model.complete(call)
            seconds.append(time.process_time() - begun)
    return seconds[0], seconds[1], seconds[2]


def rows(n: int = ASKS) -> Iterator[tuple[str, str, str, str]]:
    """Figure, measured, mark, ratio to the mark: for the table of all that is timed."""
    record, play, alone = (n / seconds for seconds in measure(n))
    yield f"record {n:,} asks of a scripted model, core time", f"{record:,.0f} asks/s", "", ""
    yield "  play them, the files read anew", f"{play:,.0f} asks/s", f"{MARK:,.0f}", f"{play / MARK:.2f}x"
    yield "  play them, each in its own call", f"{alone:,.0f} asks/s", f"{MARK:,.0f}", f"{alone / MARK:.2f}x"
