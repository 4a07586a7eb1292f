"""Claims of the sources, what carries each, and what was found. `skg-bench claims` prints it.

`data/claims.yaml` lists every statement by id. Four words say what carries one:

* *built so*: the code is made so, a contract; `by` links to the assertions, tests that carry the id by
  `@pytest.mark.req("K14")`.
* *built in the compatibility modes*: only the published formats and engines of ACE have it, bug for bug; no run does.
* *configured*: a constant or a choice of this project makes it so, with the same links.
* *measured*: an experiment found it so or not, in a file of findings (`findings.py`) that is not refused.

A mark alone carries nothing. All other ids are open, unless they are about somebody's environment (kind E).
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from skg_bench.analysis.comparison.findings import Finding, files
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import text_of
from skg_bench.core.package import DATA

CLAIM_KINDS = {"T": "a contract of the code", "S": "a claim, measured by an experiment", "E": "outside the project"}
HELD = ("built so", "built in the compatibility modes", "configured")


@dataclass(frozen=True)
class Claim:
    """A statement of a source, in our words."""

    id: str
    source: str  # D, K or U: see the head of data/claims.yaml
    statement: str
    kind: str  # T, S, T+S or E: see CLAIM_KINDS
    why: str | None = None  # E: why it is outside the project
    held: str | None = None  # of HELD
    by: Sequence[str] = ()  # the assertions that hold it, as pytest names them
    note: str | None = None  # what ran, or what an open claim waits for

    def __post_init__(self) -> None:
        if (self.held is None) != (not self.by) or self.held not in (None, *HELD):
            raise UsageError(
                f"{self.id}: held={self.held!r} by {len(self.by)} assertions; valid are {', '.join(HELD)} with at "
                "least one assertion in `by`, or neither"
            )


def claims() -> dict[str, Claim]:
    """All statements by id, in the order of the file."""
    rows = yaml.safe_load(text_of(DATA / "claims.yaml"))
    statements = {row["id"]: Claim(**row) for row in rows}
    if len(statements) < len(rows):
        raise UsageError(f"{DATA / 'claims.yaml'} lists an id twice")
    return statements


def markers(folder: Path) -> dict[str, list[str]]:
    """Tests under `folder` by the id that they say they prove, as pytest names them; read, not imported."""
    tests: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("test_*.py")):
        text = text_of(file)
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
    refused: Mapping[str, str] = field(default_factory=dict)  # why findings of these experiments do not count, by name

    @property
    def state(self) -> str:
        """One of: measured (an experiment gave a verdict), a word of HELD, refused (its findings do not count), outside
        or open.
        """
        if self.findings:
            return "measured"
        refused = "refused" if self.refused else None
        return self.claim.held or refused or ("outside" if self.claim.kind == "E" else "open")

    @property
    def links(self) -> list[str]:
        """Links to each finding, and to the assertions that hold the claim."""
        reports = dict.fromkeys(f"reports/claims/{experiment}.json" for experiment, _ in self.findings)
        return [*reports, *self.claim.by]


def claim_lines(root: Path, refused: Mapping[str, str] | None = None) -> list[Line]:
    """Every claim, with the tests and the reports of the checkout in folder `root`, if there are any.

    `refused`: files of findings that do not count, by experiment, and why. Raises UsageError for a file that is none,
    or has an id that no source has.
    """
    carried, why = markers(root / "tests"), refused or {}
    counted: dict[str, list[tuple[str, Finding]]] = {}
    left_out: dict[str, dict[str, str]] = {}
    for file in files(root / "reports" / "claims"):
        for finding in file.findings:
            if file.experiment in why:
                left_out.setdefault(finding.id, {})[file.experiment] = why[file.experiment]
            else:
                counted.setdefault(finding.id, []).append((file.experiment, finding))
    every = claims()
    if unknown := sorted({*counted, *left_out} - set(every)):
        raise UsageError(f"no source has a statement {', '.join(unknown)}; data/claims.yaml lists them")
    return [
        Line(claim, tuple(carried.get(i, ())), tuple(counted.get(i, ())), left_out.get(i, {}))
        for i, claim in every.items()
    ]
