"""Makes the draws of an experiment, a table with a row each, on several processes: what was stopped goes on."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import getfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from skg_bench.analysis.comparison.findings import Evidence
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment, Folder, Number, Overrides, PriorFile, Profile
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.launching import Tick
from skg_bench.study import kept_draws
from skg_bench.study.guardian.lives import Draw, Lives, Measure
from skg_bench.study.guardian.study import PRIOR, DrawStudy, lives, study
from skg_bench.study.kept_draws import DrawSetup

DRAWS_BY_PROFILE = {"demo": 36, "paper": 300}  # of 36, a claim can be robust that holds in all, and not of fewer
TOGETHER = 4  # draws of a task: changes speed, never a result
More = Callable[[DrawStudy, Draw, Lives], Lives]  # lives that are made of others, such as with the books of others


@dataclass(frozen=True)
class DrawRequest:
    """Draws that an experiment's command asks for."""

    name: str  # of the experiment
    measure: Measure
    more: More | None = None  # makes lives that are measured beside those of the arms
    overrides: tuple[str, ...] = ()
    profile: str = "demo"  # key of `sizes`
    draws: int | None = None  # whatever the profile
    out: Path | None = None  # keeps the draws; None: nothing does
    prior: Path = PRIOR
    sizes: Mapping[str, int] = field(default_factory=lambda: DRAWS_BY_PROFILE)

    def drawn(self) -> "Drawn":
        """The draws; those that are kept already are read.

        Raises UsageError.
        """
        _check_profile(self.profile, self.sizes)
        whole = study(self.name, [f"profile={self.profile}", *self.overrides], file=self.prior)
        _check_profile(whole.root["profile"], self.sizes)
        with TemporaryDirectory() as temporary:
            folder = self.out or Path(temporary)
            draws = self.draws or self.sizes[whole.root["profile"]]
            table = simulate(whole, self.measure, draws, folder, whole.root["workers"], more=self.more)
            return Drawn(whole, table, self, kept_draws.kept_manifest(folder))


def _check_profile(profile: str, sizes: Mapping[str, int]) -> None:
    """Raises UsageError."""
    if profile not in sizes:
        raise UsageError(f"profile={profile} is no number of draws; {nearest(profile, sizes)}; any other: --draws N")


@dataclass(frozen=True)
class Drawn:
    """Draws of an experiment, and how to make them again."""

    study: DrawStudy
    table: pd.DataFrame  # a row a draw: `draw`, parameters by name, figures
    request: DrawRequest
    manifest: Mapping[str, Any]  # of their folder: by what they were made

    @property
    def command(self) -> str:
        """The command that makes them again."""
        request = self.request
        words = [f"skg-bench experiment {request.name}", f"--profile {self.study.root['profile']}"]
        words += [f"--draws {request.draws}"] if request.draws else []
        words += [f"--prior {request.prior}"] if request.prior != PRIOR else []
        return " ".join([*words, *request.overrides])

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

    def again(self, overrides: Sequence[str], draws: int, folder: str) -> "Drawn":
        """The first `draws` draws under these overrides as well, kept in a folder inside of the other draws' folder.

        Raises UsageError.
        """
        request = self.request
        out = None if request.out is None else request.out / folder
        return replace(request, overrides=(*request.overrides, *overrides), draws=draws, out=out).drawn()


def draws_experiment(
    name: str,
    measure: Measure,
    report: Callable[[Drawn], Report],
    more: More | None = None,
    sizes: Mapping[str, int] = DRAWS_BY_PROFILE,
) -> Experiment:
    """The entry of an experiment that reports its draws; `sizes`: how many, by profile."""

    def analyse(
        overrides: Overrides = None,
        profile: Profile = "demo",
        draws: Number = None,
        out: Folder = None,
        prior: PriorFile = PRIOR,
    ) -> Report:
        """Draws worlds from the prior and simulates them. The verdicts by prior mass are what is asked for."""
        request = DrawRequest(
            name, measure, more, overrides=tuple(overrides or ()), profile=profile, draws=draws, out=out, prior=prior,
            sizes=sizes,
        )  # fmt: skip
        return report(request.drawn())

    return Experiment(analyse, one_thread=True)


def simulate(
    whole: DrawStudy, measure: Measure, draws: int, out: Path, workers: int = 2, *, more: More | None = None
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


def _setup(whole: DrawStudy, measure: Measure) -> DrawSetup:
    """Setup of a study with the code that measures its lives."""
    measures = (file for file in Path(getfile(measure)).parent.glob("*.py") if file.stem != "analysis")
    return replace(whole.setup, files=tuple(measures))


@dataclass(frozen=True)
class Drawing:
    """Work of a process that makes draws."""

    study: DrawStudy
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
