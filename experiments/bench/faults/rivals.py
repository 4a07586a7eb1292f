"""Several processes of one run, and a folder that is moved away."""

from experiments.bench.faults.lab import Bench
from experiments.bench.faults.outcomes import Outcome


def two(bench: Bench) -> Outcome:
    """Two commands of the same folder at once, the second one begun while the first one is under way."""
    other = "cohort=64" if bench.row == "two_cohorts" else "cohort=300"
    first = bench.start()
    first.until(lambda: False, float(bench.rng.uniform(0, 0.5 * bench.lab.seconds)))
    second = bench.start(other)
    ends = [running.wait() for running in (first, second)]
    for name, done in zip(("the first command", "the second command"), ends, strict=True):
        bench.note(done, name)
        if done.code == 0:
            bench.same_figures(bench.out, name)
    bench.finish()
    cohorts = "another cohort" if bench.row == "two_cohorts" else "the same cohort"
    refused = sum(done.code not in (0, None) for done in ends)
    return bench.outcome(f"two commands at once, {cohorts}", f"{refused} of 2 refused")


def three_parts(bench: Bench) -> Outcome:
    """Three processes with a part each, and then the whole."""
    running = [bench.start(f"part={number}/3") for number in range(3)]
    for number, each in enumerate(running):
        bench.note(each.wait(), f"part={number}/3")
    bench.finish()
    return bench.outcome("part=0/3, 1/3 and 2/3 at once")


def moved(bench: Bench) -> Outcome:
    """The folder is moved away while the command runs, and back: soon, or when the command has ended."""
    soon = bench.trial % 2 == 0
    running, away = bench.start(), bench.folder / "away"
    running.until(bench.out.is_dir, bench.lab.limit)
    alive = running.until(lambda: False, float(bench.rng.uniform(0, 0.5 * bench.lab.seconds)))
    bench.out.rename(away)
    if soon:
        running.until(lambda: False, 0.3)
    else:
        running.wait()
    if bench.out.exists() and not running.ended:
        running.wait()
    strays = bench.out.exists()
    if strays:
        if running.wait().code == 0:
            bench.same_figures(bench.out, "the command whose folder was moved")
        bench.out.rename(bench.folder / "stray")
    away.rename(bench.out)
    done = running.wait()
    bench.note(done, "the command whose folder was moved")
    if done.code == 0 and not strays:
        bench.same_figures(bench.out, "the command whose folder was moved")
    bench.finish()
    where = "while it ran" if alive else "after its end"
    return bench.outcome("the folder moved away and back", f"{where}, back {'soon' if soon else 'at the end'}")
