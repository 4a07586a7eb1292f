"""Assumptions that a log of answers needs, in words for its page."""

from collections.abc import Collection

from skg_bench.simulator.logs.recorded_dialogues import ASSUMES
from skg_bench.simulator.logs.recorded_rows import LeftOut


def assumptions(knows: Collection[str], unread: LeftOut, accept: float, invented: Collection[str]) -> dict[str, str]:
    """Sentences by subject. `knows`: fields that the log has; `unread`: cells that could not be read; `invented`: keys
    of ASSUMES, which the log does not say.
    """
    assumes = {
        "offers": f"a log has no offers to name a skill: each is accepted with probability {accept:g}, under "
        "the first words of the message",
        "cost and wait": "tokens, price and wait of the LLM are simulated",
    }
    if "action" not in knows:
        assumes["answers"] = "all answers of the log are an LLM's, which answers the same again"
    if "answer" in knows:
        assumes["right answers"] = (
            "of the bounds on wrong answers from memory: what the log answered was right to its own request, "
            "unless the user rated it partial or miss, and what was rated a miss was wrong"
        )
    for what, cells in unread.found.items():
        where = ", ".join(map(str, cells["first"]))
        assumes[what] = f"{cells['rows']:,} cells are no number, and count as not known (the first in rows {where})"
    if "intent" in knows:
        assumes["intents"] = "no answer fits two intents: one that was given to another intent is wrong"
    return {what: words for what, words in ASSUMES.items() if what in invented} | assumes
