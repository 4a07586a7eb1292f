"""Planted defects: each is a line that is changed for the worse, and tests that must catch it. No part of `make test`.

`python -m tests.planted [NAME ...]` copies the checkout, plants one defect after the other in the copy, runs the tests
named beside it, and says whether they failed. It takes ten minutes of one core; the exit code is 1 where one is not
caught. `tests/test_planted.py` holds that each line still stands where it is planted.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds that the tests of one defect may take
UNSHRUNK = """
from hypothesis import Phase, settings
settings.register_profile("planted", deadline=None, phases=[Phase.explicit, Phase.generate])
settings.load_profile("planted")
"""  # an example that fails need not be the smallest one, and one that is slow does not fail


class Defect(NamedTuple):
    """A defect: what stands once in a file of the package is replaced, and some of these tests must fail."""

    name: str
    file: str  # below skg_bench/
    before: str
    after: str
    tests: str  # below tests/, parted by blanks


DEFECTS = (
    Defect("feedback is known a second early", "engine/pending.py", "now[row] + late.delay",
           "now[row] + late.delay - 1", "engine/test_pending.py"),
    Defect("feedback that is due waits", "engine/pending.py", "known_at[users] <= now[users, None]",
           "known_at[users] < now[users, None]", "engine/test_pending.py"),
    Defect("feedback of a turn out of order", "engine/pending.py", "np.lexsort((kind, turn, row))",
           "np.lexsort((turn, kind, row))", "engine/test_pending.py"),
    Defect("a draw without its item", "core/draws.py", "fold(fold(fold(fold(h, event), int(purpose)), item), n)",
           "fold(fold(fold(h, event), int(purpose)), n)", "core/test_draws.py"),
    Defect("the salt is left out of keys", "core/draws.py", "_root(max(int(seed), 0) >> 64)", "_root(0)",
           "core/test_draws.py"),
    Defect("the row in the key of decisions", "engine/cohort.py", 'key(word(setting.seed, b"arms"), cohort.user)',
           'key(word(setting.seed, b"arms"), np.arange(len(cohort.n)))', "assistant/pipeline/test_stack.py"),
    Defect("truth in a message", "engine/step.py", "truth if scene.assistant.sees_truth else None", "truth",
           "engine/test_perceive.py laws/test_cheats.py"),
    Defect("the decision is drawn by position", "assistant/pipeline/sample.py", "lineage[open_]], axis=1)",
           "np.arange(lineage.shape[1]) + 0 * lineage[open_]], axis=1)", "assistant/pipeline/test_sample.py"),
    Defect("resume takes a torn shard for whole", "engine/execute.py", "bool(shards.fault(out, run, name, shard))",
           "False", "engine/test_execute.py::test_a_torn_shard_is_made_again"),
    Defect("resume makes every shard again", "engine/execute.py", 'if shards.path(out, "turns", name, shard).exists():',
           "if False:", "engine/test_execute.py::test_a_finished_run_is_left_alone"),
    Defect("the last feedback row of a turn is dropped", "engine/logbook.py", "row, f = feedback.row, feedback",
           "f = feedback.rows(np.arange(len(feedback.row)) < len(feedback.row) - 1); row = f.row",
           "engine/test_logbook.py::test_each_row_of_feedback_of_a_turn_is_in_the_log"),
    Defect("similarity is not rounded to the grid", "core/grid.py", "return snap(share, out=share)", "return share",
           "core/test_grid.py router/test_routers.py"),
    Defect("vectors are cut, not rounded", "core/embedding_grid.py", "np.rint(rows / norm[:, None] * SCALE)",
           "np.trunc(rows / norm[:, None] * SCALE)", "core/test_grid.py"),
    Defect("archived skills are routed to", "core/shortlist.py", "best[~allowed] = BELOW_ALL",
           "best[~allowed] = best[~allowed]", "router/test_routers.py core/test_shortlist.py"),
    Defect("equal scores go to the higher id", "policy/shared/distributions.py", "combined * 2.0**40 - skill",
           "combined * 2.0**40 + skill", "policy/test_distributions.py policy/test_policies.py"),
    Defect("equal similarities go by position", "core/shortlist.py",
           "np.arange(width, dtype=np.int64) - (value.astype(np.int64) << _BITS)",
           "np.arange(width, dtype=np.int64) - ((value.astype(np.int64) >> 1) << _BITS)", "core/test_shortlist.py"),
    Defect("the threshold itself falls back", "policy/threshold.py", ">= self.threshold", "> self.threshold",
           "policy/test_policies.py"),
    Defect("rated wrong answers raise the reader's trust", "policy/chooser.py", "(helpful + harmful + 2.0)",
           "(helpful - harmful + 2.0)", "policy/test_chooser.py"),
    Defect("the reranker learns the wrong sign", "reranker/linear.py", "(training.label - before)",
           "(before - training.label)", "reranker/test_rerankers.py"),
    Defect("the margin of the best is that to itself", "assistant/pipeline/signals.py",
           "np.where(lead, second, best)", "np.where(lead, best, best)", "assistant/pipeline/test_signals.py"),
    Defect("partial ratings count in full", "assistant/pipeline/signals.py", "positions.ok + 0.5 * positions.partial)",
           "positions.ok + positions.partial)", "assistant/pipeline/test_signals.py"),
    Defect("ratings of a replaced answer stay", "assistant/pipeline/skillbook_table.py",
           "counter[row, s] = 0", "counter[row, s] += 0", "assistant/pipeline/test_skillbook_table.py"),
    Defect("a capture that was declined is learned", "curator/skg.py",
           "(reaction.code >= 0) & (reaction.code != _DECLINED)", "reaction.code >= 0", "curator/test_curators.py"),
    Defect("a skill as often right as wrong is archived", "curator/skg.py", "books.miss > books.ok",
           "books.miss >= books.ok", "curator/test_curators.py"),
    Defect("a strict batch is applied twice", "skillbook/ace/strict.py", "key is not None and key in book.batches",
           "False", "skillbook/ace/test_strict.py"),
    Defect("a stale UPDATE overwrites", "skillbook/rebase.py", "words != _words(before, read) and", "False and",
           "skillbook/test_rebase.py"),
    Defect("a flipped bit is not found", "runfolder/shards.py", 'if sha256.hexdigest() != digest.decode("ascii"):',
           "if False:", "runfolder/test_shards.py"),
    Defect("the bytes of a shard depend on the order of rows", "runfolder/shards.py",
           "table = _in_order(table.unify_dictionaries().combine_chunks())",
           "table = table.unify_dictionaries().combine_chunks()", "runfolder/test_shards.py"),
    Defect("an answer holds for a second longer", "simulator/answers/judging.py",
           "same & (age < self.ttl_of", "same & (age <= self.ttl_of", "simulator/answers/test_reactions.py"),
    Defect("a better answer is rated worse", "simulator/answers/reactions.py", "miss = draws.rating < rows[:, 2]",
           "miss = draws.rating > 1 - rows[:, 2]", "simulator/answers/test_reactions.py"),
    Defect("what is pending at the end counts as heard", "analysis/counts/tally.py", '(seconds(table, "known_at") <',
           '(0 * seconds(table, "known_at") <', "analysis/counts/test_tally.py"),
    Defect("the difference of ratios is a sum", "analysis/statistics/intervals.py", "else each[0] - each[1]",
           "else each[0] + each[1]", "analysis/statistics/test_intervals.py"),
    Defect("the variance over users lacks its degree", "analysis/statistics/intervals.py",
           "(away**2).sum() / (n * (n - 1))", "(away**2).sum() / (n * n)", "analysis/statistics/test_intervals.py"),
    Defect("Holm corrects for one test less", "analysis/statistics/intervals.py", "p[i] * (len(order) - rank)",
           "p[i] * max(len(order) - rank - 1, 1)", "analysis/statistics/test_inference.py"),
    Defect("wins and losses change sides", "analysis/comparison/compare.py", 'if metric.better == "lower" else',
           'if metric.better != "lower" else', "analysis/comparison/test_compare.py"),
    Defect("harm within the margin fails", "analysis/gate/judge.py", "lower > 0 and test.mean >= harm.margin",
           "lower > 0", "analysis/gate/test_judge.py"),
)  # fmt: skip


def copied(folder: Path) -> None:
    """Copies what git tracks, for tests that stop at the first example that fails."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, names.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    with (folder / "tests" / "conftest.py").open("a", encoding="utf-8") as file:
        file.write(UNSHRUNK)


def failing(folder: Path, tests: str) -> tuple[bool, str]:
    """Do these tests fail in the copy? With the last line that they print."""
    places = [f"tests/{test}" for test in tests.split()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *places],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=LIMIT,
        check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{tests} did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1, (done.stdout.strip().splitlines() or [""])[-1]


def main(names: Sequence[str]) -> int:
    chosen = [defect for defect in DEFECTS if not names or defect.name in names]
    missed = 0
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copied(folder)
        for defect in chosen:
            file, begun = folder / "skg_bench" / defect.file, perf_counter()
            text = file.read_text("utf-8")
            if text.count(defect.before) != 1:
                raise LookupError(f"{defect.name}: its line is gone; see tests/test_planted.py")
            file.write_text(text.replace(defect.before, defect.after), "utf-8")
            caught, line = failing(folder, defect.tests)
            file.write_text(text, "utf-8")
            missed += not caught
            word = "caught" if caught else "NOT CAUGHT"
            sys.stdout.write(f"{word:10}  {defect.name}  ({perf_counter() - begun:.0f} s: {line})\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - missed} of {len(chosen)} are caught\n")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
