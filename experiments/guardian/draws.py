"""Makes the draws of an experiment, a table with a row each, on several processes: what was stopped goes on."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import getfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pandas as pd
import typer

from experiments import kept_draws, prior
from experiments.guardian.lives import Draw, Life, Lives, Measure
from experiments.guardian.replays import books_of_others
from experiments.guardian.study import PRIOR, Study, lives, study
from experiments.kept_draws import DrawSetup
from skg_bench.analysis.comparison.findings import Evidence
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment
from skg_bench.app.suggestions import nearest
from skg_bench.core.errors import UsageError
from skg_bench.core.launching import Tick

DRAWS = {"demo": 36, "paper": 300}  # by profile; of 36, a claim can be robust that holds in all, and not of fewer
TOGETHER = 4  # draws of a task: changes speed, never a result
More = Callable[[Study, Draw, Lives], Lives]  # lives that are made of others, such as with the books of others

Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Such as simulator.habit=0: a parameter that is given is not drawn."),
]
Profile = Annotated[str, typer.Option(help="How many draws: demo (a minute and a half) or paper (minutes).")]
Number = Annotated[int | None, typer.Option("--draws", help="How many draws, whatever the profile.", min=1)]
Folder = Annotated[Path | None, typer.Option("--out", help="Keeps the draws; what is there already is kept.")]
PriorFile = Annotated[Path, typer.Option("--prior", help="Another prior, in the format of the project's.")]


@dataclass(frozen=True)
class Drawn:
    """The draws of an experiment, and how to make them again."""

    study: Study
    table: pd.DataFrame  # a row a draw: `draw`, parameters by name, figures
    command: str
    manifest: Mapping[str, Any]  # of their folder: by what they were made

    @property
    def parameters(self) -> list[str]:
        """Names of what was drawn."""
        return [parameter.name for parameter in self.study.parameters]

    @property
    def evidence(self) -> Evidence:
        """Evidence for findings."""
        draws = len(self.table)
        weeks = round(self.study.triggers / self.study.world.triggers_per_week)
        users = self.study.users * draws
        return kept_draws.evidence(self.manifest, self.command, users, weeks)


def drawn(
    name: str,
    measure: Measure,
    overrides: Sequence[str] | None,
    profile: str,
    draws: int | None,
    out: Path | None,
    file: Path = PRIOR,
    more: More | None = None,
) -> Drawn:
    """Draws that an experiment's command asks for: its options, in their order; `more` lives are measured beside.

    Raises UsageError.
    """
    _check_profile(profile)
    whole = study(name, [f"profile={profile}", *(overrides or [])], file=file)
    profile = whole.root["profile"]
    _check_profile(profile)
    words = [f"skg-bench experiment {name}", f"--profile {profile}"]
    words += [f"--draws {draws}"] if draws else []
    words += [f"--prior {file}"] if file != PRIOR else []
    with TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        table = simulate(whole, measure, draws or DRAWS[profile], folder, whole.root["workers"], more)
        return Drawn(whole, table, " ".join([*words, *(overrides or [])]), kept_draws.manifest_of(folder))


def _check_profile(profile: str) -> None:
    """Raises UsageError."""
    if profile not in DRAWS:
        raise UsageError(f"profile={profile} is no number of draws; {nearest(profile, DRAWS)}; any other: --draws N")


def asked(name: str, measure: Measure, report: Callable[[Drawn], Report]) -> Experiment:
    """The entry of an experiment that needs its draws alone."""

    def analyse(
        overrides: Overrides = None,
        profile: Profile = "demo",
        draws: Number = None,
        out: Folder = None,
        prior: PriorFile = PRIOR,
    ) -> Report:
        """Draws worlds from the prior and simulates them; no figure is expected: the verdicts are what is asked for."""
        return report(drawn(name, measure, overrides, profile, draws, out, prior))

    return Experiment(analyse, one_thread=True)


def simulate(
    whole: Study, measure: Measure, draws: int, out: Path, workers: int = 2, more: More | None = None
) -> pd.DataFrame:
    """A row for each of the first `draws` draws: its number, its parameters, and what `measure` says of its lives.

    Draws are kept in `out`, and those that are there are not made again. Raises UsageError for a folder that holds
    draws of another study, and where draws are missing from a folder of other code.
    """
    here = {int(number) for file in _files(out) for number in pd.read_parquet(file, columns=["draw"])["draw"]}
    missing = [number for number in range(draws) if number not in here]
    kept_draws.begin(out, _setup(whole, measure), complete=not missing)
    tasks = [tuple(missing[i : i + TOGETHER]) for i in range(0, len(missing), TOGETHER)]
    whole.launcher.carry_out(Drawing(whole, measure, out, more), tasks, workers, out, lambda _: None)
    table = pd.concat([pd.read_parquet(file) for file in _files(out)]).sort_values("draw", ignore_index=True)
    return table[table["draw"] < draws]


def _files(out: Path) -> list[Path]:
    return sorted(out.glob("draws-*.parquet"))


def _setup(whole: Study, measure: Measure) -> DrawSetup:
    """Setup of a study with the code that measures its lives."""
    measures = (file for file in Path(getfile(measure)).parent.glob("*.py") if file.stem != "analysis")
    shared = map(Path, (prior.__file__, getfile(Life), getfile(books_of_others)))
    return replace(whole.setup, files=(*whole.setup.files, *shared, *measures))


@dataclass(frozen=True)
class Drawing:
    """Input of a process that makes draws."""

    study: Study
    measure: Measure
    out: Path
    more: More | None = None

    def begin(self) -> Callable[[tuple[int, ...], Tick], None]:
        """Makes some draws, and writes a file of them whole or not at all."""

        def run(numbers: tuple[int, ...], tick: Tick) -> None:
            rows = []
            for done, number in enumerate(numbers):
                draw = self.study.draw(number)
                known = lives(self.study, draw)
                if self.more is not None:
                    known = {**known, **self.more(self.study, draw, known)}
                figures = self.measure(draw, known)
                rows.append({"draw": number, **draw.values, **figures})  # noqa: PD011  those of a draw, not of a table
                tick(done + 1)
            file = self.out / f"draws-{numbers[0]:06d}-{len(numbers)}.parquet"
            temporary = file.with_suffix(f".{os.getpid()}.tmp")
            pd.DataFrame(rows).to_parquet(temporary)
            temporary.rename(file)

        return run
