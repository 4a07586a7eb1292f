"""Progressive disclosure: counts of words of descriptions and of bodies in the prompts of an arm with texts.

A skill is chosen by its description (issue), and its body (insight) is read once it is served. The prompt lists all
shortlisted descriptions (`router=described`), all shortlisted skills (`in_prompt`), or only the served skill.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skg_bench.analysis.counts.columns import column
from skg_bench.core.grid import I64, Bool
from skg_bench.runfolder.run import Run


@dataclass(frozen=True)
class PromptWords:
    """Words in prompts, summed over all turns of an arm."""

    turns: int
    listed: int  # of descriptions
    read: int  # of bodies
    whole: int  # of bodies, if those of all shortlisted skills stood in each prompt


def prompt_words(run: Run, arm: str) -> PromptWords | None:
    """Words of an arm's skills in prompts; None if they have no texts, or do not go into a prompt."""
    composition = run.manifest["compositions"].get(arm, {})
    if composition.get("serving") != "prompted":
        return None
    updates = run.updates(arm, ["user", "turn", "skill", "issue", "insight"])
    says = updates.filter(updates["issue"].is_valid())
    if not len(says):
        return None
    module = str(composition["router"]["_target_"]).split(".")[-2]
    turns = run.turns(arm, ["skill", "shortlist", "serving"])
    prompted = pa.compute.equal(turns["serving"].cast(pa.string()), "prompted").to_numpy()
    lists = turns["shortlist"].combine_chunks()
    row = np.repeat(np.arange(len(turns)), lists.value_lengths().to_numpy())
    each = lists.flatten().to_numpy()
    row, each = row[each >= 0], each[each >= 0]
    served = (each == column(turns, "skill")[row]) & prompted[row]
    descriptions, bodies = _words(says, turns, row, each)
    in_list: Bool = np.full(len(row), module in ("described", "in_prompt"))
    return PromptWords(
        turns=len(turns),
        listed=int(descriptions[in_list | served].sum()),
        read=int(bodies[in_list if module == "in_prompt" else served].sum()),
        whole=int(bodies.sum()),
    )


def _words(says: pa.Table, turns: pa.Table, row: I64, skill: I64) -> tuple[I64, I64]:
    """Words of descriptions and of bodies that skills had at turns (rows of `turns`)."""
    user, turn = column(turns, "user").astype(np.int64)[row], column(turns, "turn").astype(np.int64)[row]
    order = np.lexsort((column(says, "turn"), column(says, "skill"), column(says, "user")))
    width = int(max(column(says, "skill").max(), skill.max(initial=0))) + 1
    late = int(column(turns, "turn").max(initial=0)) + 4  # turns of seeds lie below 0

    def place(user: I64, skill: I64, turn: I64) -> I64:
        return (user * width + skill) * late + turn + 2

    known = place(*(column(says, name).astype(np.int64)[order] for name in ("user", "skill", "turn")))
    at = np.searchsorted(known, place(user, skill, turn)) - 1
    counts = [
        np.array([0 if text is None else len(text.split()) for text in says[name].cast(pa.string()).to_pylist()])[order]
        for name in ("issue", "insight")
    ]
    return counts[0][at], counts[1][at]
