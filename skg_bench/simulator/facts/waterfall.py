"""Causes why requests for facts are answered wrongly, from the logs of a run: the first link of the chain that failed.

    the fact            the prompt                  the book                cause
    told (or its end)   states it                   -                       model
                        states another value        -                       outdated, or mistaken
                        states nothing              a skill is about it     kept_not_found
                                                    none is                 told_not_kept
    never told          none, or any                -                       never_told: what is guessed without one
                        states another value        -                       outdated, or mistaken: the rest
                        is about something else     -                       should_have_declined: the rest

A turn counts by its chance of a wrong answer, so that causes add up to what an arm loses, free of luck. Of what was
never told a model guesses a share whatever its prompt: no arm can change that. Of a request for two facts both must be
kept for `kept_not_found`. A stored answer has no prompt, and counts by its quality.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

FACT_CAUSES = (
    "model", "never_told", "told_not_kept", "kept_not_found", "outdated", "mistaken", "should_have_declined", "stored",
)  # fmt: skip
TURN_COLUMNS = ("user", "turn", "request_type", "need", "prompt", "chance", "answer_correct", "known_by")
Losses = dict[str, float]


def fact_losses(
    turns: pa.Table, updates: pa.Table, feedback: pa.Table, pairs: Mapping[str, Sequence[str]], guesses: float
) -> Losses:
    """Chances of wrong answers by cause, over all requests for facts of an arm, from its logs in order of user and
    turn. `pairs`: by the name of a request for two facts, their request types; `guesses`: share at which a model
    without a prompt guesses what it does not know.
    """
    losses = dict.fromkeys(FACT_CAUSES, 0.0)
    stated = dict[tuple[int, int], str]()  # the fact that the answer of a user's turn is about
    ledger = set[tuple[int, str]]()  # users, and facts that they told, or of which they told the end
    corrected = {
        (row["user"], row["turn"]) for row in feedback.select(["user", "turn", "kind"]).to_pylist()
        if row["kind"] == "correction"
    }  # fmt: skip
    kept = _kept(updates)
    for row in turns.select(list(TURN_COLUMNS)).to_pylist():
        at, type_ = (row["user"], row["turn"]), row["request_type"]
        name, value, _ = (type_ or "").partition("=")
        if row["need"] is not None:
            sources = kept.get(at[0], ())
            has = {stated.get((at[0], source)) for skill in sources for source in skill.before(at[1])}
            needed = set(pairs.get(name, (name,)))
            lost = float(not row["answer_correct"]) if row["chance"] is None else 1.0 - row["chance"]
            in_ledger = all((at[0], fact) in ledger for fact in needed)
            guessed = 0.0 if in_ledger or row["prompt"] is None else min(lost, guesses)
            losses["never_told"] += guessed
            losses[_cause(row["prompt"], in_ledger=in_ledger, kept=needed <= has)] += lost - guessed
        if row["known_by"] == "telling":
            ledger.add((at[0], name))
            stated[at] = name
        elif value and (row["answer_correct"] or at in corrected):
            stated[at] = name
    return losses


@dataclass(frozen=True, slots=True)
class KeptSkill:
    """Sources of a skill of a user, in order: turn of the operation, and turn whose answer it stores (-1: none)."""

    sources: list[tuple[int, int]]

    def before(self, turn: int) -> Sequence[int]:
        """The turn whose answer it stores just before `turn`, if there is one."""
        earlier = [source for at, source in self.sources if at < turn]
        return earlier[-1:]


def _kept(updates: pa.Table) -> Mapping[int, Sequence[KeptSkill]]:
    """Skills by user."""
    skills = dict[tuple[int, int], KeptSkill]()
    for row in updates.select(["user", "turn", "op", "skill", "source_turn"]).to_pylist():
        if row["op"] == "REMOVE" or row["source_turn"] >= 0:
            skill = skills.setdefault((row["user"], row["skill"]), KeptSkill([]))
            skill.sources.append((row["turn"], row["source_turn"]))
    by_user = dict[int, list[KeptSkill]]()
    for (user, _), skill in skills.items():
        by_user.setdefault(user, []).append(skill)
    return by_user


def _cause(prompt: object, *, in_ledger: bool, kept: bool) -> str:
    match prompt, in_ledger:
        case None, _:
            return "stored"
        case ("outdated" | "mistaken") as stated, _:
            return str(stated)
        case "fact", _:
            return "model"
        case _, True:
            return "kept_not_found" if kept else "told_not_kept"
        case _:
            return "should_have_declined"
