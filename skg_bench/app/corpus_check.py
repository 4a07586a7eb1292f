"""Checks of a labelled corpus: what a run on it can show and what it cannot, before one is made."""

import shlex

import numpy as np

from skg_bench.analysis.statistics.intervals import LEAST_INTENTS
from skg_bench.analysis.summary.saturation import LIMIT
from skg_bench.app.building import build
from skg_bench.app.compose import compose
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.core.record import left_out
from skg_bench.core.text import plural
from skg_bench.simulator.answers.corpus import Corpus
from skg_bench.simulator.answers.world import AssistantUsers
from skg_bench.simulator.logs.labelled_rows import Columns, heading

_USERS = 16  # from whom is estimated when the corpus is used up
_WEEKS = (4, 26)  # of the profiles smoke, and demo and paper
_LOGGED = ("time", "date", "user", "session", "conversation")  # in names of columns that say who asked, and when


def is_labelled_corpus(path: str) -> bool:
    """Is there a corpus at `path` that `simulator=labelled` reads by the usual names of its columns?"""
    names = heading(path)
    return names is not None and Columns(None, None).known(names) and not _log(names)


def corpus_sentences(path: str) -> list[str]:
    """Sentences on the corpus that `simulator=labelled` reads at `path`, and the command of a first run.

    Raises UsageError for a corpus that cannot be read.
    """
    command = ["run", "simulator=labelled", f"simulator.corpus.path={path}"]
    users: AssistantUsers = build("simulator", compose(command[1:]).root["simulator"], COMMAND_LINE)
    corpus, lines = users.corpus.load(), list[str]()  # type: ignore[union-attr]
    per = np.bincount(corpus.intent, corpus.n_wordings, len(corpus.intents)).astype(int)
    lines.append(
        f"{corpus.source} is a labelled corpus: {per.sum():,} messages of {len(corpus.intents):,} intents, "
        f"{per.min():,} to {per.max():,} of an intent (median {int(np.median(per)):,}), and "
        f"{len(corpus.one_offs):,} one-offs"
    )
    if reasons := left_out(corpus.left_out):
        lines.append(f"Left out: {'; '.join(reasons)}")
    lines.append(
        "A run can show how often each arm answers from memory, and how often with the answer to another intent"
    )
    lines.append(
        "It has no answers, slot values, times, users or ratings: all messages of an intent count as the same request, "
        "its answer holds for ever, and who asks what when, and rates it, is simulated. What goes stale or depends on "
        "values shows only with simulator.corpus.table=FILE (in the format of data/clinc150.yaml)"
    )
    if not len(corpus.one_offs):
        lines.append(
            "It has no messages that nobody asks twice, so every message has an intent, and what is captured in vain "
            "does not show"
        )
    lines += [_used_up(users, corpus, weeks) for weeks in _WEEKS]
    if len(corpus.intents) < LEAST_INTENTS:
        lines.append(
            f"It has fewer than {LEAST_INTENTS:g} intents: what holds for other intents than these is not known, and "
            "no verdict is drawn"
        )
    return [*lines, f"A first run: skg-bench {shlex.join([*command, 'profile=smoke'])}"]


def _log(names: list[str]) -> bool:
    """Do the columns say who asked, or when? HWU64's have a `userid`: of annotators."""
    return "scenario" not in names and any(word in name.lower() for name in names for word in _LOGGED)


def _used_up(users: AssistantUsers, corpus: Corpus, weeks: int) -> str:
    """How much of the corpus a run of so many weeks takes; as `Saturation.types_used_up`."""
    events = users.population(0, np.arange(_USERS, dtype=np.int32), weeks)
    kind, real = events.truth.type, events.truth.type >= 0
    row = np.broadcast_to(np.arange(_USERS)[:, None], kind.shape)
    cell, used = (row * len(corpus.types) + kind)[real], events.truth.used_up[real]
    kinds = np.bincount(cell // len(corpus.types), weights=_firsts(cell), minlength=_USERS)
    exhausted = np.unique(cell[used])
    share = float((np.bincount(exhausted // len(corpus.types), minlength=_USERS) / np.maximum(kinds, 1)).mean())
    verdict = "are tested" if share <= LIMIT else "are not testable: take fewer weeks, or a larger split"
    return (
        f"In {plural(weeks, 'week')} about {share:.0%} of a user's intents have no wording left (limit {LIMIT:.0%}): "
        f"claims about curves and utility {verdict}"
    )


def _firsts(values: np.ndarray) -> np.ndarray:
    """1 where a value stands for the first time."""
    first = np.zeros(len(values))
    first[np.unique(values, return_index=True)[1]] = 1
    return first
