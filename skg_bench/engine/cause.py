"""Why a turn was not answered by a right skill: the first link of the chain that failed. Truth, for the logs alone.

A skill is *about* the request if an answer to its source's request, given rightly just now, would be right; it *holds*
if that answer is not too old; it is *right* if it holds and its source answer was right. Where a skill's prompt is
served, which stores no answer, every skill of the intent is right. Active skills count, no others.

    a right skill       what was done                               cause
    answered            -                                           none
    is not shortlisted  -                                           routing
    is shortlisted      the LLM answered, and it was the best       threshold
                        else: another was served, or was better     score
    there is none       a skill about it that holds was served      wrong_source
                        another skill about it was served           staleness
                        a skill about something else was served     threshold
                        the LLM answered; and the user has
                          no earlier answer that still holds        novelty
                          no skill about it                         capture
                          a skill about it that holds               wrong_source
                          other skills about it                     staleness

*score* and *threshold* are the policy's: the choice among skills, and that between a skill and the LLM. A wrong skill
that answered where no right one was is booked to what was served: the LLM would have lost less.
"""

import numpy as np

from skg_bench.core.grid import F64, I32, I64, Bool
from skg_bench.core.types import CAUSES, NEAR, RIGHT, Simulator
from skg_bench.engine.skillbook_table import SkillbookTable

_NONE, _NOVELTY, _CAPTURE, _ROUTING, _SCORE, _THRESHOLD, _STALENESS, _WRONG_SOURCE = range(len(CAUSES))
_FRESH = np.zeros((1, 1), np.int64)
_RIGHTLY = np.ones((1, 1), np.bool_)


def causes(
    simulator: Simulator,
    table: SkillbookTable,
    type_: I32,
    now: I64,
    answerable: I32,
    shortlist: I32,
    combined: F64,
    skill: I32,
    *,
    prompted: bool,
) -> I32:
    """Codes in CAUSES `[B]` of turns that `skill` answered (-1: the LLM), before the book learns from them.

    `shortlist` and `combined` `[B, K]`: the candidates and their combined scores, -1 beyond the end.
    """
    a = len(skill)
    quality = simulator.judge(type_[:, None], table.source_type[:a], _RIGHTLY, _FRESH)
    about = np.flatnonzero(table.active[:a] & (quality >= (NEAR if prompted else RIGHT)))
    row, s = np.divmod(about, quality.shape[1])  # np.nonzero of two dimensions takes half as long as all the rest
    if prompted:
        holds = right = np.ones(len(row), np.bool_)
    else:
        source, age = table.source_type[row, s], now[row] - table.born[row, s]
        holds = simulator.judge(type_[row], source, np.ones(len(row), np.bool_), age) == RIGHT
        right = holds & table.source_right[row, s]

    def some(mask: Bool) -> Bool:
        """Rows with such a skill."""
        rows = np.zeros(a, np.bool_)
        rows[row[mask]] = True
        return rows

    hit = skill >= 0
    every, served = np.ones(len(row), np.bool_), skill[row] == s
    listed = shortlist[row] == s[:, None]
    at_best = (listed & (combined[row] == combined.max(axis=1)[row, None])).any(axis=1)
    fallback = np.where(some(every), np.where(some(holds), _WRONG_SOURCE, _STALENESS), _CAPTURE)
    fallback[answerable == 0] = _NOVELTY
    wrong_hit = np.where(some(served), np.where(some(served & holds), _WRONG_SOURCE, _STALENESS), _THRESHOLD)
    missed = np.where(~hit & some(right & at_best), _THRESHOLD, _SCORE)
    missed[~some(right & listed.any(axis=1))] = _ROUTING
    cause = np.where(some(right), missed, np.where(hit, wrong_hit, fallback))
    cause[some(right & served)] = _NONE
    return cause.astype(np.int32)
