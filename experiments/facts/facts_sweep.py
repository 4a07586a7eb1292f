"""Which verdicts on memories of facts turn with the five shares that nobody knows, and by how small a change?"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from experiments.facts.played import cpu_minutes, overrides_of, played
from experiments.facts.worths import FactClaim, Worth, worths
from skg_bench.app.compose import compose
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.app.progress import console
from skg_bench.study.turning import turn

COMMAND = "skg-bench experiment facts/facts_sweep --write reports"
SHARES: Mapping[str, tuple[float, ...]] = {  # beside their values in the yaml
    "told_twice": (0.0, 0.5, 1.0),
    "facts_change": (0.0, 0.6, 1.0),
    "asked_before_told": (0.0, 0.5, 1.0),
    "users_correct": (0.0, 0.6, 1.0),
    "persists_by_type": (0.0, 0.5, 0.8),
}
CLAIMS = (
    FactClaim("skg", "never", "utility", ""),
    FactClaim("full_history", "never", "utility", ""),
    FactClaim("keeps", "never", "utility", ""),
    FactClaim("keeps", "never", "recall", ""),
    FactClaim("keeps", "keeps_first", "renewal", ""),
    FactClaim("keeps", "never_declines", "abstention", ""),
)
ARMS = ("never", "skg", "full_history", "keeps", "keeps_first", "never_declines")
HEADINGS = ("claim", "share", "verdicts by its value", "turns")


def lines(share: str, by_value: Mapping[float, Mapping[FactClaim, Worth]], usual: float) -> list[tuple[str, ...]]:
    """Cells under HEADINGS, one line a claim."""
    rows: list[tuple[str, ...]] = []
    for claim in CLAIMS:
        values = {value: by_claim[claim] for value, by_claim in sorted(by_value.items())}
        words = "; ".join(f"{value:g}: {worth.size} {worth.word}" for value, worth in values.items() if worth.measured)
        smallest = turn({value: worth for value, worth in values.items() if worth.measured}, usual)
        rows.append((claim.name, share, words, "no" if smallest is None else str(smallest)))
    return rows


def _scope(usual: Mapping[str, float], users: int, weeks: int, given: Sequence[str]) -> str:
    size = ", ".join([f"{users} users", f"{weeks} weeks", *given])
    values = ", ".join(f"{share} {value:g}" for share, value in usual.items())
    return (
        f"{size}; the built-in corpus. One share is changed at a time; as they are: {values}. Differences with 95 % "
        "intervals for new users. *Turns*: the smallest change of the share that turns the verdict, where the end of "
        "the interval passes 0 on a straight line between the values that were tried."
    )


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as seed=2; for all runs.")
    ] = None,
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 16,
    weeks: Annotated[int, typer.Option(help="Of each run.", min=1)] = 8,
    out: Folder = None,
) -> Report:
    """Makes its own runs; prints beforehand how many CPU minutes they take."""
    shared = [f"users={users}", f"weeks={weeks}", "workers=1", *(overrides or ())]
    plain = overrides_of("built-in", ARMS, shared)
    world = compose(plain).root["simulator"]
    usual = {share: float(world[share]) for share in SHARES}
    runs = 1 + sum(len({*values} - {usual[share]}) for share, values in SHARES.items())
    console().print(f"{runs} runs, about {cpu_minutes(plain, runs):.0f} CPU minutes")
    with tempfile.TemporaryDirectory() as folder:
        place, seed = out or Path(folder), [int(compose(plain).root["seed"])]
        base = worths(played(plain, seed, place / "as_it_is"), CLAIMS)
        rows = []
        for share, values in SHARES.items():
            by_value = {usual[share]: base}
            for value in {*values} - {usual[share]}:
                changed = [*plain, f"simulator.{share}={value:g}"]
                by_value[value] = worths(played(changed, seed, place / f"{share}_{value:g}"), CLAIMS)
            rows += lines(share, by_value, usual[share])
    table = Table("Verdicts by five shares that nobody knows", HEADINGS, sorted(rows))
    turned = sorted({row[0] for row in rows if row[3] != "no"})
    words = f"Verdicts that turn: {', '.join(turned) or 'none'}."
    text = page(
        "Verdicts on memories of facts by five shares", COMMAND, _scope(usual, users, weeks, overrides or ()), words,
        table,
    )  # fmt: skip
    return Report([table, words], text)


EXPERIMENT = Experiment(analyse, one_thread=True)
