"""Files of a run that are cut, changed by a bit, or removed, and a shard of another run."""

import shutil
from pathlib import Path

from experiments.bench.faults.lab import ARMS, Bench
from experiments.bench.faults.outcomes import Outcome, instructs
from experiments.bench.faults.reader import LOGS

KINDS = ("manifest.json", *LOGS, "summary.json", "curves.csv", "timings.json", "report.html", "pieces")
FIGURES = ("manifest.json", *LOGS, "summary.json", "curves.csv")  # what `run --check` has to find changed
_REAL = 5  # one in so many goes on in a process of its own
DAMAGES = {"cut": "cut", "flip": "a bit flipped", "removed": "removed"}


def files(out: Path) -> dict[str, list[Path]]:
    """Files of a run by kind; those of unfinished work by their first folder or ending too."""
    kinds = {kind: sorted((out / kind).glob("*")) if (out / kind).is_dir() else [out / kind] for kind in KINDS}
    pieces = [file for file in sorted((out / "pieces").rglob("*")) if file.is_file()]
    kinds["pieces"] = [file for file in pieces if "checkpoint" not in str(file.relative_to(out))]
    kinds["checkpoints"] = [file for file in pieces if "checkpoint" in str(file.relative_to(out))]
    present = {kind: [file for file in names if file.is_file()] for kind, names in kinds.items()}
    return {kind: names for kind, names in present.items() if names}


def damage(bench: Bench, file: Path, how: str) -> None:
    """Cut it at a random place, flip a random bit, or remove it."""
    content = bytearray(file.read_bytes())
    if how == "cut":
        file.write_bytes(content[: int(bench.rng.integers(max(len(content), 1)))])
    elif how == "flip" and content:
        content[int(bench.rng.integers(len(content)))] ^= 1 << int(bench.rng.integers(8))
        file.write_bytes(content)
    else:
        file.unlink()


def damaged(bench: Bench) -> Outcome:
    """A file of a finished or an unfinished run is damaged and read; then the same command goes on."""
    finished = bench.trial % 2 == 0
    number = bench.trial // 2
    source = bench.lab.base if finished else bench.lab.unfinished(number)
    shutil.copytree(source, bench.out)
    kinds = files(bench.out)
    kind = list(kinds)[number % len(kinds)]
    file = kinds[kind][int(bench.rng.integers(len(kinds[kind])))]
    damage(bench, file, bench.row)
    read(bench, source, file, kind, finished=finished)
    bench.finish(real=number % _REAL == 0)
    return bench.outcome(f"{DAMAGES[bench.row]}, {'finished' if finished else 'unfinished'} run", kind)


def read(bench: Bench, source: Path, file: Path, kind: str, *, finished: bool) -> None:
    """Reads a damaged run: either what was there is read, or a message names the file."""
    arms = [file.name.partition(".")[0]] if kind in LOGS else ["learns"]
    not_there_yet = not finished and not file.exists() and kind == "turns"  # as if the run had been stopped before
    before, after = (bench.reader.reads(folder, arms) for folder in (source, bench.out))
    for name, (known, value) in after.items():
        if before.get(name) == (known, value) or (not_there_yet and known):
            continue
        if known:
            bench.ends.append(("lost", f"{name} differs with exit code 0 and no message"))
        elif not before.get(name, (True, ""))[0]:
            continue  # an unfinished run has no such figure; the message may be another one
        else:
            _refused(bench, name, value, "" if not_there_yet else file.name)
    if bench.lab.checks:
        done = bench.reader.command(["run", "--check", str(bench.out)])
        if done.code == 0 and finished and kind in FIGURES:
            bench.ends.append(("lost", f"run --check says that all is as it was written, and {kind} is not"))
        elif done.code is None:
            bench.ends.append(("hung", "run --check"))
        elif done.code not in (0, 1, 2) or "Traceback" in done.err:
            bench.ends.append(("wordless", f"run --check, exit code {done.code}: {done.err[-400:]}"))


def _refused(bench: Bench, name: str, message: str, file: str) -> None:
    bench.say(message)
    if not instructs(message) or "Traceback" in message:
        bench.ends.append(("wordless", f"{name}: {message}"))
    elif file not in message:
        bench.ends.append(("wordless", f"{name}: the message does not name {file}: {message}"))


def foreign(bench: Bench) -> Outcome:
    """A shard of a run with another seed stands in place of the run's own."""
    shutil.copytree(bench.lab.base, bench.out)
    log = LOGS[bench.trial % len(LOGS)]
    arm = list(ARMS)[int(bench.rng.integers(len(ARMS)))]
    shards, others = (sorted((folder / log).glob(f"{arm}.*.parquet")) for folder in (bench.out, bench.lab.other_seed()))
    at = int(bench.rng.integers(min(len(shards), len(others))))
    same = next((shard for shard in others if shard.name == shards[at].name), others[at])
    shutil.copy(same, shards[at])
    read(bench, bench.lab.base, shards[at], log, finished=True)
    bench.finish()
    return bench.outcome("a shard of another seed", log)
