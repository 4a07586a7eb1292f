"""Makes the draws of an experiment, a table with a row each, on several processes: what was stopped goes on."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from inspect import getfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import pandas as pd
import typer

from experiments import prior
from experiments.guardian.lives import Draw, Life, Lives, Measure
from experiments.guardian.replays import books_of_others
from experiments.guardian.study import PRIOR, Study, lives, study
from skg_bench.analysis.comparison.findings import UNCOMMITTED, Evidence
from skg_bench.app.experiment_report import Report
from skg_bench.app.experiments import Experiment
from skg_bench.app.run_identity import provenance, write_json
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

    @property
    def parameters(self) -> list[str]:
        """Names of what was drawn."""
        return [parameter.name for parameter in self.study.parameters]

    @property
    def evidence(self) -> Evidence:
        """For findings."""
        made = provenance()
        commit = str(made["commit"] or "an installed package") + (UNCOMMITTED if made["dirty"] else "")
        draws = len(self.table)
        weeks = round(self.study.triggers / self.study.world.triggers_per_week)
        users = self.study.users * draws
        return Evidence(self.command, commit, users, weeks, (self.study.seed,), (self.study.source,))


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
    """What an experiment's command asks for: the options above, in their order; `more` lives are measured beside.

    Raises UsageError.
    """
    _check_profile(profile)
    whole = study(name, [f"profile={profile}", *(overrides or [])], file=file)
    profile = whole.root["profile"]
    _check_profile(profile)
    words = [f"skg-bench experiment {name}", f"--profile {profile}"]
    words += [f"--draws {draws}"] if draws else []
    words += [f"--prior {file}"] if file != PRIOR else []
    table = simulate(whole, measure, draws or DRAWS[profile], out, whole.root["workers"], more)
    return Drawn(whole, table, " ".join([*words, *(overrides or [])]))


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
    whole: Study, measure: Measure, draws: int, out: Path | None, workers: int = 2, more: More | None = None
) -> pd.DataFrame:
    """A row for each of the first `draws` draws: its number, its parameters, and what `measure` says of its lives.

    With `out`, draws are kept there, and those that are there are not made again. Raises UsageError for a folder that
    holds draws of another study.
    """
    if out is None:
        with TemporaryDirectory() as folder:
            return simulate(whole, measure, draws, Path(folder), workers, more)
    _begin(whole, measure, out)
    here = {int(number) for file in _files(out) for number in pd.read_parquet(file, columns=["draw"])["draw"]}
    missing = [number for number in range(draws) if number not in here]
    tasks = [tuple(missing[i : i + TOGETHER]) for i in range(0, len(missing), TOGETHER)]
    whole.launcher.carry_out(Drawing(whole, measure, out, more), tasks, workers, out, lambda _: None)
    table = pd.concat([pd.read_parquet(file) for file in _files(out)]).sort_values("draw", ignore_index=True)
    return table[table["draw"] < draws]


def _files(out: Path) -> list[Path]:
    return sorted(out.glob("draws-*.parquet"))


def _begin(whole: Study, measure: Measure, out: Path) -> None:
    """The folder with its manifest.

    Raises UsageError where it is that of another study.
    """
    file, key = out / "manifest.json", _identity(whole, measure)
    if file.is_file():
        if json.loads(file.read_text("utf-8")).get("identity") != key:
            raise UsageError(f"{out} holds draws of another prior, configuration or code; name another folder")
        return
    if out.is_dir() and _files(out):
        raise UsageError(f"{out} holds draws and no manifest.json that says of which study; name another folder")
    out.mkdir(parents=True, exist_ok=True)
    sizes = {"experiment": whole.name, "seed": whole.seed, "users": whole.users, "triggers": whole.triggers}
    write_json(file, {"identity": key, **sizes, **provenance()})


def _identity(whole: Study, measure: Callable[..., Any]) -> str:
    """Of the study, and of the code that makes and measures lives."""
    digest = sha256(whole.identity.encode())
    made = {file for file in Path(getfile(measure)).parent.glob("*.py") if file.stem != "analysis"}
    shared = (prior.__file__, getfile(Life), getfile(Study), getfile(books_of_others))
    for file in (*map(Path, shared), *sorted(made)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Drawing:
    """What a process needs to make draws."""

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
