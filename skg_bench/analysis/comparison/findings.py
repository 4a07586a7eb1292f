"""Findings of experiments about claims, in files of `reports/claims` that say what they were made from.

An experiment's analysis writes them (`write_findings`), never a hand. Besides its findings a file holds digests of
what they follow from: configuration and data of the runs, source of the analysis, and decisions of a small run. A
file of which one has changed since is refused (`skg-bench claims`). The code of the package is no input: else every
commit would void them all. What it decides is one, by the small run.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from math import inf, isfinite
from pathlib import Path
from typing import Any

from skg_bench.analysis.comparison.assay import VERDICTS, Assay, ClaimVerdict, Measured
from skg_bench.core.errors import UsageError
from skg_bench.core.foreign import FAULTS, json_file
from skg_bench.core.shapes import shaped
from skg_bench.runfolder.manifest import BESIDE, counted_of
from skg_bench.runfolder.run import Run

UNCOMMITTED = ", with uncommitted changes"
_EACH = ("seed", "salt", *BESIDE)  # differ between the runs of a file, or change nothing
_HOW = ("command", "commit")  # a finding was made


@dataclass(frozen=True)
class FindingSource:
    """Configuration and data from which runs that differ in their seeds were made."""

    overrides: tuple[str, ...]
    configuration: str  # digest of what the overrides gave, with all that stands in conf/; modules may be moved
    data: Mapping[str, str]  # digests by what they are of
    keys: tuple[str, ...]  # of the configuration at its top; what a key that came later decides, a small run tells

    @classmethod
    def of(
        cls, overrides: Sequence[str], content: Mapping[str, Any], data: Mapping[str, str], keys: Sequence[str] = ()
    ) -> "FindingSource":
        """`content`: `config`, `compositions` and `beside`, as in a manifest. `keys`: those that count; none: all."""
        counted = counted_of({**content, "data": {}, "code": ""})
        counted["config"] = {key: value for key, value in counted["config"].items() if key not in _EACH}
        counted["config"] = {key: value for key, value in counted["config"].items() if key in keys or not keys}
        digest = sha256(json.dumps(_unplaced(counted), sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
        kept = tuple(text for text in overrides if text.partition("=")[0].lstrip("+~") not in _EACH)
        return cls(
            kept,
            digest,
            {name: data[name] for name in ("simulator", "embedder") if name in data},
            tuple(counted["config"]),
        )


def _unplaced(node: Any) -> Any:
    """A configuration in which components are named by their class alone: the module may be moved."""
    if isinstance(node, Mapping):
        return {
            key: str(value).rpartition(".")[2] if key == "_target_" else _unplaced(value) for key, value in node.items()
        }
    return [_unplaced(inner) for inner in node] if isinstance(node, list | tuple) else node


@dataclass(frozen=True)
class Evidence:
    """How to make the figures again."""

    command: str
    commit: str  # of the code that measured; what was not committed then is said
    users: int
    weeks: int
    seeds: tuple[int, ...]
    sources: tuple[FindingSource, ...] = field(default=(), compare=False)  # written once for all findings of a file

    @classmethod
    def of(cls, runs: Sequence[Run], command: str) -> "Evidence":
        """Evidence of runs which differ in their seeds."""
        first = runs[0].manifest
        commit = str(first.get("commit") or "an installed package")
        if any(run.manifest.get("dirty") for run in runs):
            commit += UNCOMMITTED
        whole = [run.manifest for run in runs if "config" in run.manifest]
        sources = [FindingSource.of(m.get("overrides") or (), m, m.get("data") or {}) for m in whole]
        unique = tuple(source for i, source in enumerate(sources) if source not in sources[:i])
        seeds = tuple(run.manifest["seed"] for run in runs)
        return cls(command, commit, first["users"], first["weeks"], seeds, unique)


@dataclass(frozen=True)
class Finding:
    """Result of an experiment on a claim. A claim of several figures has several findings."""

    id: str
    claimed: str  # the figure, or the statement, that was tested
    measured: Measured | str  # a text where no figure can be given
    verdict: ClaimVerdict
    words: str  # one sentence; of "not testable here": the reason
    evidence: Evidence
    assay: Assay | None = None  # of a difference between arms: where the reference lies
    by_seed: tuple[float, ...] = ()  # the difference in each seed
    own: Measured | None = None  # the same difference at the paper's own operating point, where that is another one
    where: str = ""  # of what is attainable: the condition under which it holds

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UsageError(f"{self.id}: verdict={self.verdict!r}, valid are {', '.join(VERDICTS)}")
        for name in ("claimed", "words"):
            if not getattr(self, name).strip():
                raise UsageError(f"{self.id}: {name} is empty; say it in a sentence")
        m = self.measured
        if isinstance(m, Measured) and not (isfinite(m.value) and m.low <= m.value <= m.high):
            raise UsageError(f"{self.id}: measured {m} must be finite, and lie in its interval")


@dataclass(frozen=True)
class Origins:
    """Digests of all that the findings of a file follow from."""

    sources: tuple[FindingSource, ...] = ()
    analysis: str = ""  # digest of the source that turned runs into findings
    decisions: str = ""  # digest of what a small run decided, by the code of the runs; empty: there was none
    reduced: str = ""  # digest of what this analysis found in a reduced study; empty: there was none
    surroundings: str = ""  # digest of conf/ and data/ when all this was so: while they are, nothing is composed


@dataclass(frozen=True)
class FindingsFile:
    """A file of `reports/claims`."""

    experiment: str
    made: Origins
    findings: tuple[Finding, ...]

    @property
    def dirty(self) -> bool:
        """Was it made from code that is in no commit?"""
        return any(UNCOMMITTED in finding.evidence.commit for finding in self.findings)


# --------------------------------------------------------------------------------------------------- writing


def write_findings(folder: Path, experiment: str, results: Sequence[Finding], analysis: str = "") -> Path:
    """Write `<experiment>.json` into `folder`, which for the project's own is `reports/claims`; returns the file."""
    rows = [_row(result) for result in results]
    every = [source for result in results for source in result.evidence.sources]
    sources = [asdict(source) for i, source in enumerate(every) if source not in every[:i]]
    made = {"sources": sources, "analysis": analysis, "decisions": "", "reduced": "", "surroundings": ""}
    folder.mkdir(parents=True, exist_ok=True)
    return _written(folder / f"{experiment}.json", {"made": made, "findings": rows})


def note_origins(file: Path, **digests: str) -> None:
    """Write digests into a file of findings, by their names in `Origins`."""
    content = json_file(file)
    _written(file, {**content, "made": {**content["made"], **digests}})


def digest_of(file: FindingsFile) -> str:
    """Digest of what a file finds, up to the ninth digit, whatever code found it, and by which command."""
    rows = [_row(finding) for finding in file.findings]
    rows = [{key: value for key, value in row.items() if key not in _HOW} for row in rows]
    return sha256(json.dumps(_rounded(rows), sort_keys=True).encode()).hexdigest()[:32]


def _rounded(node: object) -> object:
    match node:
        case float():
            return f"{node:.9g}"
        case Mapping():
            return {key: _rounded(value) for key, value in node.items()}
        case list() | tuple():
            return [_rounded(inner) for inner in node]
        case _:
            return node


def _written(file: Path, content: Mapping[str, Any]) -> Path:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    return file


def _row(result: Finding) -> dict[str, Any]:
    row = asdict(replace(result, evidence=replace(result.evidence, sources=())))
    for figure in (row["measured"], row["own"], *(row["assay"] or {}).values()):
        if isinstance(figure, dict):  # JSON has no infinity: an interval that was withheld has no ends
            figure |= {end: figure[end] if isfinite(figure[end]) else None for end in ("low", "high")}
    evidence = {key: value for key, value in row.pop("evidence").items() if key != "sources"}
    return {**row, **evidence}


# --------------------------------------------------------------------------------------------------- reading


def files(folder: Path) -> Iterator[FindingsFile]:
    """All files of findings in `folder`, by name.

    Raises UsageError for a file that `write_findings` did not write.
    """
    for file in sorted(folder.glob("*.json")):
        try:
            content = json_file(file)
            made, rows = content["made"], content["findings"]
            sources = tuple(shaped(FindingSource, source, "sources") for source in made["sources"])
            digests = [shaped(str, made[name], name) for name in ("analysis", "decisions", "reduced", "surroundings")]
            results = tuple(_finding(row) for row in rows)
        except (UsageError, *FAULTS) as error:
            again = f"write it again: skg-bench claims --make {file.stem}"
            raise UsageError(f"{file} is no file of findings ({error!r}); {again}") from error
        yield FindingsFile(file.stem, Origins(sources, *digests), results)


def findings_by_id(folder: Path) -> dict[str, list[tuple[str, Finding]]]:
    """Findings by id from the files of `folder`, refused or not: name of the experiment, and finding."""
    by_id: dict[str, list[tuple[str, Finding]]] = {}
    for file in files(folder):
        for finding in file.findings:
            by_id.setdefault(finding.id, []).append((file.experiment, finding))
    return by_id


def _finding(row: Mapping[str, Any]) -> Finding:
    measured = row["measured"] if isinstance(row["measured"], str) else _measured(row["measured"])
    made = {f.name: row[f.name] for f in fields(Evidence) if f.name != "sources"}
    evidence = shaped(Evidence, {**made, "sources": []}, "evidence")
    claim_id, claimed, words = (shaped(str, row[name], name) for name in ("id", "claimed", "words"))
    by_seed = shaped(tuple[float, ...], row["by_seed"], "by_seed")
    papers = None if row["own"] is None else _measured(row["own"])
    where = shaped(str, row["where"], "where")
    assay = _assay(row["assay"])
    return Finding(claim_id, claimed, measured, row["verdict"], words, evidence, assay, by_seed, papers, where)


def _assay(figures: Mapping[str, Any] | None) -> Assay | None:
    if figures is None:
        return None
    return Assay(None if figures["ahead"] is None else _measured(figures["ahead"]), _measured(figures["room"]))


def _measured(figure: Mapping[str, Any]) -> Measured:
    ends = {end: figure[end] if figure[end] is not None else without for end, without in (("low", -inf), ("high", inf))}
    measured: Measured = shaped(Measured, {"value": figure["value"], "unit": figure["unit"], **ends}, "measured")
    return measured
