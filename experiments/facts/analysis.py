"""Worth of a memory of facts, and what it loses: runs of `facts` on two corpora with several seeds."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from experiments.facts.causes import KNOWER_COLUMNS, arm_facts, cause_table, knowers
from experiments.facts.played import CORPORA, cpu_minutes, overrides_of, played
from experiments.facts.worths import CONTROLS, MEMORIES, FactClaim, Worth, verdict, worths
from skg_bench.analysis.comparison.seeds import SeedRuns
from skg_bench.app.experiment_report import Report, Table, page
from skg_bench.app.experiments import Experiment, Folder
from skg_bench.app.progress import console

COMMAND = "skg-bench experiment facts --write reports"
MOST_WITHOUT_MEMORY = 0.1  # of told facts that are answered rightly
Worths = Mapping[str, Mapping[FactClaim, Worth]]  # by corpus


def claim_table(title: str, claims: Sequence[FactClaim], by_corpus: Worths) -> Table:
    """Each claim with its worth on each corpus and its verdict."""
    rows = []
    for claim in claims:
        each = {corpus: by_claim[claim] for corpus, by_claim in by_corpus.items() if claim in by_claim}
        if each:
            cells = (each[corpus].size if corpus in each else "-" for corpus in by_corpus)
            rows.append((claim.name, *cells, verdict(each)))
    return Table(title, ("claim", *by_corpus, "verdict"), rows)


def unexpected(by_corpus: Worths) -> list[str]:
    """Claims whose verdict is not the expected one, in words."""
    lines = []
    for claim in (*MEMORIES, *CONTROLS):
        each = {corpus: by_claim[claim] for corpus, by_claim in by_corpus.items() if claim in by_claim}
        words = {worth.word for worth in each.values()}
        match claim.expected:
            case "better":
                holds = "better" in words and "worse" not in words
            case "not better":
                holds = "better" not in words
            case _:
                holds = True
        if each and not holds:
            lines.append(f"{claim.name} reads {verdict(each)}, expected was {claim.expected}.")
    return lines


def _scope(runs: Mapping[str, SeedRuns]) -> str:
    sizes = [(len(group.runs), group.manifest["users"], group.manifest["weeks"]) for group in runs.values()]
    seeds, users, weeks = sizes[0]
    return f"{seeds} seeds of {users} users and {weeks} weeks each, on each corpus."


def report(runs: Mapping[str, SeedRuns]) -> Report:
    """Report on runs by corpus; as expected if told facts need a memory, and if all claims read as expected."""
    by_corpus = {corpus: worths(group, (*MEMORIES, *CONTROLS)) for corpus, group in runs.items()}
    never = {corpus: arm_facts(group, "never") for corpus, group in runs.items()}
    rows = [row for corpus, group in runs.items() for row in knowers(corpus, group, "never")]
    wrong = unexpected(by_corpus)
    words = [f"Without a memory {100 * arm.told:.1f} % of told facts are answered rightly on {corpus}."
             for corpus, arm in never.items()]  # fmt: skip
    parts = (
        Table("Who can know what is asked", KNOWER_COLUMNS, rows),
        claim_table("Worth of memories, with and without facts", MEMORIES, by_corpus),
        claim_table("Controls", CONTROLS, by_corpus),
        *(cause_table(corpus, group) for corpus, group in runs.items()),
    )
    about = (
        f"{_scope(runs)} Differences are utility a request, or shares of requests for facts, with 95 % intervals for "
        "new users: random effects over seeds. Where one corpus shows a difference and the other has the other sign, "
        "the verdict is that it depends on the corpus. Wrong answers by cause are sums of their chances, by the "
        "first link that failed."
    )
    findings = "\n".join(f"* {line}" for line in (*words, *(wrong or ["All verdicts are as expected."])))
    text = page("What a memory of facts is worth", COMMAND, about, findings, *parts)
    holds = not wrong and all(arm.told <= MOST_WITHOUT_MEMORY for arm in never.values())
    return Report([*parts, *words, *wrong], text, holds=holds)


def analyse(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Such as simulator.implied=0; for all runs.")
    ] = None,
    corpus: Annotated[list[str] | None, typer.Option(help="built-in or clinc150; repeatable. Default: both.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each corpus.", min=1)] = 5,
    users: Annotated[int, typer.Option(help="Of each run.", min=2)] = 12,
    weeks: Annotated[int, typer.Option(help="Of each run.", min=1)] = 8,
    arm: Annotated[list[str] | None, typer.Option(help="Of the experiment; repeatable. Default: all.")] = None,
    out: Folder = None,
) -> Report:
    """Makes its own runs; prints beforehand how many CPU minutes they take."""
    given = [f"users={users}", f"weeks={weeks}", "workers=1", *(overrides or ())]
    chosen = {name: overrides_of(name, arm or (), given) for name in corpus or CORPORA}
    minutes = sum(cpu_minutes(each, seeds) for each in chosen.values())
    console().print(f"{seeds * len(chosen)} runs, about {minutes:.0f} CPU minutes")
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: played(each, range(1, seeds + 1), (out or Path(folder)) / name) for name, each in chosen.items()}
        return report(runs)


EXPERIMENT = Experiment(analyse, one_thread=True)
