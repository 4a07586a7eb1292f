"""Reasons to refuse a file of findings: what it was made from has changed since."""

import ast
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from skg_bench.analysis.comparison.findings import FindingsFile, FindingSource, files
from skg_bench.core.foreign import bytes_of, text_of
from skg_bench.core.package import CONF, DATA, EXPERIMENTS, experiment_module

_WITHIN = ("experiments", "skg_bench.analysis.comparison", "skg_bench.analysis.counts", "skg_bench.analysis.statistics",
           "skg_bench.analysis.summary", "skg_bench.study")  # fmt: skip
_READ = (".yaml", ".toml")  # priors and texts beside an experiment
_FORM = ("skg_bench.analysis.comparison.claims", "skg_bench.analysis.comparison.findings")  # say it, and find nothing

REWRITTEN = "its analysis has changed since"


def refusals(folder: Path, ids: Collection[str] = ()) -> dict[str, str]:
    """Reasons by experiment not to count its file in `skg-bench claims`; empty where it counts.

    `ids`: claims, all by default; a file without a finding about any of them is left alone, as its runs are composed
    anew. Raises UsageError for a file that is no file of findings.
    """
    pairs = (
        (file.experiment, refusal(file))
        for file in files(folder) if not ids or any(finding.id in ids for finding in file.findings)
    )  # fmt: skip
    return {name: reason for name, reason in pairs if reason}


def refusal(file: FindingsFile) -> str:
    """Reason not to count a file; empty: it counts. `claims --check` also looks at what a small run decides now."""
    if file.dirty:
        return "it was made from code that is in no commit"
    if not (file.made.analysis and file.made.decisions and file.made.sources):
        return "it does not say what it was made from"
    if file.made.analysis != analysis(file.experiment):
        return REWRITTEN
    if file.made.surroundings == surroundings():
        return ""
    reasons = (source_change(source) for source in file.made.sources)
    return next((reason for reason in reasons if reason), "")


def source_change(source: FindingSource) -> str:
    """Difference of configuration and data from what they were; empty: none. Datasets that are not on this machine
    count as unchanged.
    """
    now = _now(source.overrides, source.keys)
    if now is None or now.configuration != source.configuration:
        return "its configuration has changed since"
    differ = [name for name, digest in source.data.items() if now.data.get(name, digest) != digest]
    return f"its data have changed since: {', '.join(differ)}" if differ else ""


@cache
def surroundings() -> str:
    """Digest of all that configurations and data come from. What is only about claims and gates is left out."""
    digest = sha256()
    for folder in (CONF, DATA):
        for file in sorted(folder.rglob("*")):
            place = file.relative_to(folder).as_posix()
            if file.is_file() and place != "claims.yaml" and not place.startswith("gate/"):
                digest.update(f"{place}\0".encode() + sha256(bytes_of(file)).digest())
    return digest.hexdigest()[:32]


@cache
def _now(overrides: tuple[str, ...], keys: tuple[str, ...] = ()) -> FindingSource | None:
    """Configuration and data that these overrides give today, without datasets that are not on this machine; None: they
    are not accepted any more.
    """
    from skg_bench.app.building import build
    from skg_bench.app.compose import compose
    from skg_bench.app.run_identity import described
    from skg_bench.app.trust import COMMAND_LINE
    from skg_bench.core.errors import UsageError
    from skg_bench.simulator.datasets import DatasetAbsent

    parts = dict[str, str]()
    try:
        composed = compose(list(overrides))
        for seam in ("simulator", "embedder"):
            with suppress(DatasetAbsent):
                parts[seam] = build(seam, composed.root[seam], COMMAND_LINE).digest
    except (UsageError, OSError):
        return None
    return FindingSource.of(overrides, described(composed.root, composed.arms, {}), parts, keys)


# ------------------------------------------------------------------------------------------------------ analysis


@cache
def analysis(experiment: str) -> str:
    """Digest of the source that makes findings of runs: the experiment's own, with the priors beside it, and what it
    imports of `study` and of the analysis. Comments and docstrings do not count, nor does what draws pages.
    The module in which a definition stands does not count either, so that modules may be moved.
    """
    digest = sha256()
    modules = _imported(f"{experiment_module(experiment, EXPERIMENTS)}.analysis", {})
    for statement in sorted(statement for file in modules.values() for statement in _statements(file)):
        digest.update(f"{statement}\0".encode())
    folders = {file.parent for file in modules.values()} - {EXPERIMENTS}
    beside = (file for folder in folders for suffix in _READ for file in folder.glob(f"*{suffix}"))
    for name, content in sorted((file.name, bytes_of(file)) for file in beside):
        digest.update(f"{name}\0".encode() + content)
    return digest.hexdigest()[:32]


def _imported(module: str, known: dict[str, Path]) -> dict[str, Path]:
    """The module and all that it imports, and so on, that lies in the folders of _WITHIN."""
    file = _file(module)
    if file is None or module in known or module in _FORM or not module.startswith(_WITHIN):
        return known
    known[module] = file
    for name in _names(ast.parse(text_of(file))):
        _imported(name, known)
    return known


def _names(tree: ast.Module) -> Iterator[str]:
    """Modules that a module may import: of `from a import b` both a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    first, *rest = module.split(".")
    base = {"experiments": EXPERIMENTS, "skg_bench": Path(__file__).parents[1]}.get(first)
    if base is None:
        return None
    place = base.joinpath(*rest)
    existing = [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return existing[0] if existing else None


@cache
def _statements(file: Path) -> tuple[str, ...]:
    """Definitions and other statements of a module, without docstrings and imports."""
    tree = ast.parse(text_of(file))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
            node.body = node.body[1:]
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [inner for inner in value if not _imports(inner)])
    return tuple(map(ast.dump, tree.body))


def _imports(node: ast.AST) -> bool:
    """Is it an import, or a block of those for types alone?"""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Import | ast.ImportFrom)


def by_id(refused: Mapping[str, str]) -> str:
    """One sentence for each file that is refused."""
    return "\n".join(
        f"reports/claims/{name}.json is refused: {reason}; make it again: skg-bench claims --make {name}"
        for name, reason in sorted(refused.items())
    )
