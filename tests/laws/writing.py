"""What holds for arms that write texts, whatever kind of text it is."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from unittest.mock import patch

import numpy as np

from skg_bench.core.launching import Result, Task, WorkerJob
from skg_bench.engine import execute as engine
from skg_bench.engine.plan import Plan
from skg_bench.launcher.local import Local
from skg_bench.runfolder.run import Run
from skg_bench.simulator.answers.corpora_by_name import corpus_of
from skg_bench.simulator.answers.corpus import Corpus
from tests.laws import world


def check_cohorts(
    folder: Path, plan: Callable[..., Plan], arms: Sequence[str], users: int, before: Run, *, looked_up: bool
) -> None:
    """The arms are the same bits in a cohort of 1,000, whose similarities may be looked up, and in cohorts that compute
    them; those of `before` are what they were there, in fewer stacks; and a fork that changes nothing is the arm that
    it forks from. Two runs have all of these differences at once.
    """
    with patch.object(engine, "_PAIRS_A_TURN", 10**9 if looked_up else 0):
        whole = world.carry_out(plan(*arms, users=users), folder / "whole", users, 1000)
    with patch.object(engine, "_PAIRS_A_TURN", 0):
        small = world.carry_out(plan(*arms, users=users), folder / "small", users, 30)
    assert world.differences(whole, small, range(users)) == []
    assert world.differences(before, small, range(users), list(before.arms)) == []
    for log in world.LOGS:
        live, fork = (world.rows(small, log, arm, range(users)).drop_columns(["arm"]) for arm in ("skg", "as_before"))
        assert live.equals(fork), log


@dataclass(frozen=True)
class FewWords:
    """A corpus with four wordings of each request: the table of all pairs of the whole one has 240 million places."""

    def load(self) -> Corpus:
        """Made of the built-in one."""
        return _few_words()


@cache
def _few_words() -> Corpus:
    whole = corpus_of("builtin_120")
    said, one_offs = whole.wordings[:, :4], whole.one_offs
    kept = np.union1d(said[said >= 0], one_offs)
    places = np.where(said < 0, -1, np.searchsorted(kept, said)).astype(np.int32)
    return replace(
        whole,
        messages=tuple(whole.messages[text] for text in kept.tolist()),
        wordings=places,
        n_wordings=np.minimum(whole.n_wordings, places.shape[1]),
        one_offs=np.searchsorted(kept, one_offs).astype(np.int32),
        digest="four wordings",
    )


class Dealt:
    """A launcher without processes: it deals copies of the tasks to copies of the job, the last first."""

    def carry_out(
        self,
        job: WorkerJob[Task, Result],
        tasks: Sequence[Task],
        workers: int,
        folder: Path,
        progress: Callable[[int], None],
    ) -> list[Result]:
        """Results in order of tasks."""
        if workers == 1:
            return Local().carry_out(job, tasks, workers, folder, progress)
        sent = pickle.dumps((job, list(tasks)))
        begun = [pickle.loads(sent)[0].begin() for _ in range(workers)]  # noqa: S301  it was pickled just now
        last = enumerate(reversed(pickle.loads(sent)[1]))  # noqa: S301
        return [begun[place % workers](task, lambda _: None) for place, task in last][::-1]


def shards(folder: Path, plan: Plan, users: int, workers: int) -> dict[str, str]:
    """Digest of each shard of a run in cohorts of 10."""
    run = world.carry_out(plan, folder / str(workers), users, 10, workers, Dealt())
    files = sorted(run.path.glob("*/*.parquet"))
    return {str(file.relative_to(run.path)): sha256(file.read_bytes()).hexdigest() for file in files}
