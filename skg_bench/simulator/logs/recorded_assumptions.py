"""Assumptions that a log of answers needs, in words for its page."""

from collections.abc import Collection, Sequence

from skg_bench.simulator.logs.recorded_dialogues import ASSUMES
from skg_bench.simulator.logs.recorded_rows import one_but_for_case

NEWEST_FIRST = "each user's last turn stands first in the log, so of turns with the same time the last was the first"


def assumptions(
    knows: Collection[str], accept: float, invented: Collection[str], users: Sequence[str]
) -> dict[str, str]:
    """Sentences by subject. `knows`: fields that the log has; `invented`: keys of ASSUMES, which it does not say;
    `users`: their names.
    """
    simulated = [name for name, field in (("price", "cost_usd"), ("wait", "latency_ms")) if field not in knows]
    assumes = {
        "offers": f"a log has no offers to name a skill: each is accepted with probability {accept:g}, under "
        "the first words of the message",
        "cost and wait": f"{', '.join(['tokens', *simulated])} of the LLM are simulated",
    }
    if "action" not in knows:
        assumes["answers"] = "all answers of the log are an LLM's, which answers the same again"
    if "answer" in knows:
        assumes["right answers"] = (
            "of the bounds on wrong answers from memory: what the log answered was right to its own request, "
            "unless the user rated it partial or miss, and what was rated a miss was wrong"
        )
    if len(simulated) < 2:
        assumes["cost and wait"] += (
            f"; {' and '.join(sorted({'price', 'wait'} - set(simulated)))} of its answers are those of the log, which "
            "an answer from memory does without"
        )
    if "intent" in knows:
        assumes["intents"] = "no answer fits two intents: one that was given to another intent is wrong"
    if words := one_but_for_case(users):
        assumes["users by name"] = words
    return {what: words for what, words in ASSUMES.items() if what in invented} | assumes
