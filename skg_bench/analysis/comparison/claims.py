"""What the sources claim, what carries each claim, and what was found. `skg-bench claims` prints it.

`data/claims.yaml` lists every statement by id. Three words say what carries one:

* *built so*: the code is made so, a contract; `by` links to the assertions, tests that carry the id by
  `@pytest.mark.req("K14")`.
* *configured*: a constant or a choice of this project makes it so, with the same links.
* *measured*: an experiment found it so or not, in `reports/claims/<experiment>.json`, a list of findings that the
  experiment's analysis writes (`write`), never a hand.

A mark alone carries nothing. All other ids are open, unless they are about somebody's environment (kind E).
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import inf, isfinite
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from skg_bench.analysis.statistics.intervals import Estimate
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, json_file
from skg_bench.core.paths import DATA
from skg_bench.core.run import Run
from skg_bench.core.shapes import shaped

Verdict = Literal[
    "reproduced", "not reproduced", "robust", "attainable", "strained", "impossible", "contradictory",
    "not testable here",
]  # fmt: skip
VERDICTS: tuple[str, ...] = get_args(Verdict)
ONLY_LESS = "it is ahead, but not of an arm that reuses nothing: such a difference may come from reusing less"
KINDS = {"T": "a contract of the code", "S": "a claim, measured by an experiment", "E": "outside the project"}
HELD = ("built so", "configured")


@dataclass(frozen=True)
class Claim:
    """A statement of a source, in our words."""

    id: str
    source: str  # D, K or U: see the head of data/claims.yaml
    statement: str
    kind: str  # T, S, T+S or E: see KINDS
    why: str | None = None  # E: why it is outside the project
    held: str | None = None  # of HELD
    by: Sequence[str] = ()  # the assertions that hold it, as pytest names them
    note: str | None = None  # what ran, or what an open claim waits for

    def __post_init__(self) -> None:
        if (self.held is None) != (not self.by) or self.held not in (None, *HELD):
            raise UsageError(
                f"{self.id}: held={self.held!r} by {len(self.by)} assertions; valid are {' and '.join(HELD)} with at "
                "least one assertion in `by`, or neither"
            )


@dataclass(frozen=True)
class Measured:
    """A figure with its interval."""

    value: float
    low: float
    high: float
    unit: str  # "share" is shown in percent, any other unit is shown as it is

    @classmethod
    def of(cls, e: Estimate, unit: str = "utility per request") -> "Measured":
        """That of an estimate, for new users and new requests; an interval that is withheld has no ends."""
        low, high = e.interval(new=True)
        return cls(e.mean, -inf, inf, unit) if e.withheld else cls(e.mean, low, high, unit)

    def __str__(self) -> str:
        scale, unit = (100.0, "%") if self.unit == "share" else (1.0, self.unit)
        value, low, high = (f"{scale * x:.3g}" for x in (self.value, self.low, self.high))
        return f"{value} {unit} ({f'{low} to {high}' if isfinite(self.low) else 'no interval: too few intents'})"


@dataclass(frozen=True)
class Evidence:
    """How to make the figures again."""

    command: str
    commit: str  # of the code that measured; what was not committed then is said
    users: int
    weeks: int
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, runs: Sequence[Run], command: str) -> "Evidence":
        """That of runs which differ in their seeds."""
        first = runs[0].manifest
        commit = str(first.get("commit") or "an installed package")
        if any(run.manifest.get("dirty") for run in runs):
            commit += ", with uncommitted changes"
        return cls(command, commit, first["users"], first["weeks"], tuple(run.manifest["seed"] for run in runs))


@dataclass(frozen=True)
class Finding:
    """What an experiment found about a claim. A claim of several figures has several findings."""

    id: str
    claimed: str  # the figure, or the statement, that was tested
    measured: Measured | str  # a text where no figure can be given
    verdict: Verdict
    words: str  # one sentence; of "not testable here": the reason
    evidence: Evidence
    beyond: Measured | None = None  # the arm that the claim speaks for, beyond one that reuses nothing

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UsageError(f"{self.id}: verdict={self.verdict!r}, valid are {', '.join(VERDICTS)}")
        for name in ("claimed", "words"):
            if not getattr(self, name).strip():
                raise UsageError(f"{self.id}: {name} is empty; say it in a sentence")
        m = self.measured
        if isinstance(m, Measured) and not (isfinite(m.value) and m.low <= m.value <= m.high):
            raise UsageError(f"{self.id}: measured {m} must be finite, and lie in its interval")


def verdict(*, holds: bool, fails: bool, beyond: Measured | None, used_up: Sequence[str] = ()) -> Verdict:
    """That of a claim which a run measures. `holds`: it is shown to be true; `fails`: it is shown to be false;
    `used_up`: reasons why the run's corpus is too small to show anything (`Saturation.reasons`).

    `beyond`: the utility of the arm that the claim speaks for, beyond one that reuses nothing (`never`); None: the
    claim itself is about that difference. An arm that is not ahead of doing nothing shows nothing by being ahead of
    another: it may only reuse less. What is shown neither way is not testable here: that nothing was found refutes no
    claim.
    """
    if used_up:
        return "not testable here"
    if holds:
        return "reproduced" if beyond is None or beyond.low > 0 else "not testable here"
    return "not reproduced" if fails else "not testable here"


def claims() -> dict[str, Claim]:
    """All statements by id, in the order of the file."""
    rows = yaml.safe_load((DATA / "claims.yaml").read_text("utf-8"))
    statements = {row["id"]: Claim(**row) for row in rows}
    if len(statements) < len(rows):
        raise UsageError(f"{DATA / 'claims.yaml'} lists an id twice")
    return statements


def write(folder: Path, experiment: str, results: Sequence[Finding]) -> Path:
    """Write `<experiment>.json` into `folder`, which for the project's own is `reports/claims`; returns the file.

    Raises UsageError for ids that no source has.
    """
    if unknown := sorted({result.id for result in results} - set(claims())):
        raise UsageError(f"no source has a statement {', '.join(unknown)}; data/claims.yaml lists them")
    rows = []
    for result in results:
        row = asdict(result)
        for figure in (row["measured"], row["beyond"]):
            if isinstance(figure, dict):  # JSON has no infinity: an interval that was withheld has no ends
                figure |= {end: figure[end] if isfinite(figure[end]) else None for end in ("low", "high")}
        rows.append(row | row.pop("evidence"))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{experiment}.json"
    file.write_text(json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    return file


def findings(folder: Path) -> dict[str, list[tuple[str, Finding]]]:
    """By id, what the files of `folder` say: name of the experiment, and finding.

    Raises UsageError for a file that `write` did not write.
    """
    by_id: dict[str, list[tuple[str, Finding]]] = {}
    for file in sorted(folder.glob("*.json")):
        try:
            for row in json_file(file):
                finding = _finding(row)
                by_id.setdefault(finding.id, []).append((file.stem, finding))
        except (UsageError, *FAULTS) as error:
            again = f"write it again: skg-bench experiment {file.stem} ... --write reports"
            raise UsageError(f"{file} is no file of findings ({error!r}); {again}") from error
    return by_id


def _finding(row: Mapping[str, Any]) -> Finding:
    measured = row["measured"] if isinstance(row["measured"], str) else _measured(row["measured"])
    evidence = shaped(Evidence, {f.name: row[f.name] for f in fields(Evidence)}, "evidence")
    claim_id, claimed, words = (shaped(str, row[name], name) for name in ("id", "claimed", "words"))
    beyond = None if row.get("beyond") is None else _measured(row["beyond"])
    return Finding(claim_id, claimed, measured, row["verdict"], words, evidence, beyond)


def _measured(figure: Mapping[str, Any]) -> Measured:
    ends = {end: figure[end] if figure[end] is not None else without for end, without in (("low", -inf), ("high", inf))}
    measured: Measured = shaped(Measured, {"value": figure["value"], "unit": figure["unit"], **ends}, "measured")
    return measured


def markers(folder: Path) -> dict[str, list[str]]:
    """By id, the tests under `folder` that say they prove it, as pytest names them; read, not imported."""
    tests: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("test_*.py")):
        text = file.read_text("utf-8")
        if "mark.req(" in text:
            relative = file.relative_to(folder.parent).as_posix()
            for ids, name in _marked(ast.parse(text).body):
                for claim_id in ids:
                    tests.setdefault(claim_id, []).append(f"{relative}::{name}")
    return tests


def _marked(body: Sequence[ast.stmt]) -> Iterator[tuple[list[str], str]]:
    """Ids and names of marked functions and classes, and of what is assigned with a mark."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield _ids(node.decorator_list), node.name
        if isinstance(node, ast.ClassDef):
            yield from ((ids, f"{node.name}::{name}") for ids, name in _marked(node.body))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield _ids([node.value]), node.targets[0].id


def _ids(expressions: Sequence[ast.expr]) -> list[str]:
    calls = [node for expression in expressions for node in ast.walk(expression) if isinstance(node, ast.Call)]
    marks = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "req"]
    return [str(a.value) for mark in marks for a in mark.args if isinstance(a, ast.Constant)]


@dataclass(frozen=True)
class Line:
    """A claim and all that carries it."""

    claim: Claim
    tests: tuple[str, ...]
    findings: tuple[tuple[str, Finding], ...]  # name of the experiment, and what it found

    @property
    def state(self) -> str:
        """One of: measured (an experiment gave a verdict), built so, configured, outside, open."""
        if self.findings:
            return "measured"
        return self.claim.held or ("outside" if self.claim.kind == "E" else "open")

    @property
    def links(self) -> list[str]:
        """Where each finding lies, and the assertions that hold the claim."""
        reports = dict.fromkeys(f"reports/claims/{experiment}.json" for experiment, _ in self.findings)
        return [*reports, *self.claim.by]


def lines(root: Path) -> list[Line]:
    """Every claim, with the tests and the reports of the checkout in folder `root`, if there are any."""
    carried, reports = markers(root / "tests"), findings(root / "reports" / "claims")
    return [Line(claim, tuple(carried.get(i, ())), tuple(reports.get(i, ()))) for i, claim in claims().items()]
