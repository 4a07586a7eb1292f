"""`skg-bench claims --make` and `--check`: how each file of findings is made, and whether it would come out so again.

`experiments/claims.yaml` has the commands of each, with `{runs}` where their runs go, and the CPU minutes that they
took. Finished runs and draws are kept, and what was stopped goes on.
"""

import json
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skg_bench.analysis.comparison.findings import FindingsFile, digest_of, files, note_origins
from skg_bench.app.claim_inputs import REWRITTEN, analysis, refusal, surroundings
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import text_of
from skg_bench.core.package import CHECKOUT, EXPERIMENTS
from skg_bench.core.shapes import shaped
from skg_bench.runfolder.run import Run
from skg_bench.simulator.yaml_files import yaml_of

RECIPES = EXPERIMENTS / "claims.yaml"
_OUT = re.compile(r"(?:^| )(?:out=|--out )")  # before the folder into which a command writes


@dataclass(frozen=True)
class FindingRecipe:
    """How a file of findings is made; commands are words after `skg-bench`."""

    minutes: float  # of CPU time that all of it took
    small: str  # makes a small run, or draw, whose decisions are noted
    runs: tuple[str, ...]  # make what the analysis reads; none: it makes its draws itself
    analyse: str  # writes the file
    reduced: tuple[str, ...]  # make and analyse little, and write its findings elsewhere; none: `analyse` is quick

    def commands(self, runs: Path) -> list[str]:
        """Commands that make the file, in order; their runs go into the folder `runs`."""
        return _filled((self.small, *self.runs, self.analyse), runs)


def _filled(commands: Sequence[str], runs: Path) -> list[str]:
    return [text.replace("{runs}", shlex.quote(str(runs))) for text in commands]


def recipes() -> dict[str, FindingRecipe]:
    """Recipes by experiment, in the order of the file.

    Raises UsageError.
    """
    try:
        rows: Mapping[str, Any] = yaml_of(RECIPES)
        return {
            name: shaped(FindingRecipe, {**row, "minutes": float(row["minutes"])}, name) for name, row in rows.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{RECIPES} does not say how findings are made: {error}") from error


def chosen_recipes(names: Sequence[str]) -> dict[str, FindingRecipe]:
    """Recipes of some experiments, default all.

    Raises UsageError for an experiment that has none.
    """
    every = recipes()
    for name in names:
        if name not in every:
            raise UsageError(f"no findings are made by {name!r}; {nearest(name, every)}")
    return {name: every[name] for name in names} or every


def make(names: Sequence[str], runs: Path | None, *, dry: bool) -> None:
    """Print what the files of some experiments, default all, cost; then make them. `dry`: print only.

    Raises UsageError for a name without a recipe, and for a command that fails.
    """
    wanted, folder = chosen_recipes(names), (runs or CHECKOUT / "runs" / "claims").absolute()
    screen = console()
    for name, recipe in wanted.items():
        screen.print(f"{name}: about {recipe.minutes:g} CPU minutes", soft_wrap=True)
        for command in recipe.commands(folder):
            screen.print(f"  skg-bench {command}", soft_wrap=True)
    total = sum(recipe.minutes for recipe in wanted.values())
    screen.print(f"about {total:g} CPU minutes in all; finished runs in {folder} are kept", soft_wrap=True)
    if dry:
        return
    for name, recipe in wanted.items():
        for command in recipe.commands(folder):
            if not _kept(command):
                _carry_out(command)
        _check_one_code(recipe.commands(folder))
        file = CHECKOUT / "reports" / "claims" / f"{name}.json"
        note_origins(file, decisions=decisions(_out(recipe.commands(folder)[0])), reduced=reduced_findings(recipe))
        (made,) = (each for each in files(file.parent) if each.experiment == name)
        if reason := refusal(made):
            raise UsageError(f"{file} was written and is refused: {reason}")
        note_origins(file, surroundings=surroundings())
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    screen.print(f"took {(spent.ru_utime + spent.ru_stime) / 60:.1f} CPU minutes")


def check_findings(names: Sequence[str]) -> None:
    """Print of each file whether it counts, and whether a small run still decides what it decided then. A file whose
    analysis was rewritten counts again, and that is noted in it, if a reduced study gives the findings of before.

    Raises UsageError where one does not.
    """
    screen, wrong, folder = console(), [], CHECKOUT / "reports" / "claims"
    by_name = {file.experiment: file for file in files(folder)}
    for name, recipe in chosen_recipes(names).items():
        reason = refusal(by_name[name]) if name in by_name else "there is none"
        if reason == REWRITTEN and _finds_the_same(recipe, by_name[name]):
            note_origins(folder / f"{name}.json", analysis=analysis(name))
            screen.print(f"{name}: its analysis was rewritten, and finds the same; that is noted", soft_wrap=True)
            reason = ""
        if not reason:
            with TemporaryDirectory() as runs:
                small = recipe.commands(Path(runs))[0]
                _carry_out(small)
                if decisions(_out(small)) != by_name[name].made.decisions:
                    reason = "a small run decides otherwise than by the code that made it"
        screen.print(f"{name}: {reason or 'counts'}", soft_wrap=True)
        wrong += [name] if reason else []
    if wrong:
        raise UsageError(f"{len(wrong)} files do not count; make them again: skg-bench claims --make {' '.join(wrong)}")


def _finds_the_same(recipe: FindingRecipe, file: FindingsFile) -> bool:
    return bool(file.made.reduced) and reduced_findings(recipe) == file.made.reduced


def reduced_findings(recipe: FindingRecipe) -> str:
    """Digest of what today's analysis finds in the reduced study; empty: the recipe has none."""
    if not recipe.reduced:
        return ""
    with TemporaryDirectory() as runs:
        commands = _filled(recipe.reduced, Path(runs))
        for command in commands:
            _carry_out(command)
        written = Path(shlex.split(commands[-1])[-1]) / "claims"
        (findings,) = files(written)
    return digest_of(findings)


def decisions(folder: Path) -> str:
    """Digest of all that the arms of a run did, or of the figures of draws, in `folder`."""
    digest = sha256()
    if tables := sorted(folder.glob("draws-*.parquet")):
        import pandas as pd

        draws = pd.concat([pd.read_parquet(file) for file in tables]).sort_values("draw", ignore_index=True)
        digest.update(draws.to_csv(index=False, float_format="%.17g").encode())
        return digest.hexdigest()[:32]
    from skg_bench.analysis.counts.tally import events, tallies

    run = Run(folder)
    requests = events(run)
    for arm in run.arms:
        digest.update(f"{arm}\0".encode() + tallies(run, arm, requests)[0].digest)
    return digest.hexdigest()[:32]


def _out(command: str) -> Path:
    """The folder into which a command writes."""
    words = shlex.split(command)
    given = [word.removeprefix("out=") for word in words if word.startswith("out=")]
    given += [after for word, after in pairwise(words) if word == "--out"]
    if len(given) != 1:
        raise UsageError(f"{RECIPES}: `{command}` names {len(given)} folders, and must name one by out= or --out")
    return Path(given[0])


def _kept(command: str) -> bool:
    """Is it a run that is finished, of today's configuration and data? Then its logs are read again, whatever the code
    has become since. Commands that make draws look at that themselves (`skg_bench/study/kept_draws.py`).
    """
    if not command.startswith("run "):
        return False
    manifest = _out(command) / "manifest.json"
    if not manifest.is_file() or json.loads(text_of(manifest)).get("incomplete", True):
        return False
    from skg_bench.analysis.comparison.findings import Evidence
    from skg_bench.app.claim_inputs import source_change

    (source,) = Evidence.of([Run(manifest.parent)], command).sources
    return not source_change(source)


def _check_one_code(commands: Sequence[str]) -> None:
    """Raises UsageError where runs or draws of the same findings were made by different code: the small one speaks for
    all.
    """
    made: dict[str, Path] = {}
    for folder in (_out(command) for command in commands if _OUT.search(command)):
        for manifest in (folder / "manifest.json", *folder.glob("*/manifest.json")):
            if manifest.is_file():
                made.setdefault(str(json.loads(text_of(manifest)).get("code")), manifest.parent)
    if len(made) > 1:
        raise UsageError(f"{' and '.join(map(str, made.values()))} were made by different code; "
                         "remove one of them, or take another folder: --runs FOLDER")  # fmt: skip


def _carry_out(command: str) -> None:
    """Raises UsageError if it fails."""
    console().print(f"skg-bench {command}", soft_wrap=True)
    words = [sys.executable, "-m", "skg_bench", *shlex.split(command)]
    done = subprocess.run(words, cwd=CHECKOUT, check=False)  # noqa: S603  words of our own file, and no shell
    if done.returncode not in (0, 1):  # 1: figures are not as a README expects, which is a finding
        raise UsageError(f"`skg-bench {command}` ended with exit code {done.returncode}; mend that, and give it again")
