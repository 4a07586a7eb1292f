"""Options of each seam, read from yaml files and from the source of components, without importing them."""

import ast
from importlib.util import find_spec
from pathlib import Path

from skg_bench.app import table_blocks
from skg_bench.app.packages import groups, packages
from skg_bench.app.progress import console
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import text_of
from skg_bench.simulator.yaml_files import yaml_of


def show_options(seam: str | None, *, every: bool = False) -> None:
    """Print the options of one group with what each is; of all groups their names, or with `every` all of that.

    Raises UsageError for an unknown group.
    """
    known = groups()
    if seam is not None and seam not in known:
        raise UsageError(f"there is no seam {seam!r}; {nearest(seam, known)}")
    screen, chosen = console(), _defaults()
    if not (seam or every):
        named = [[name, ", ".join(_marked(name, option, chosen) for option in known[name])] for name in known]
        table_blocks.show_table(screen, ["seam", "options"], named)
        screen.print("* default; choose with `skg-bench run SEAM=OPTION`")
        screen.print("read on: `skg-bench list SEAM`, `list SEAM.OPTION` (its parameters), `list --all`")
        return
    rows = [
        [name if i == 0 else "", _marked(name, option, chosen), first_line(name, option)]
        for name in ([seam] if seam else known)
        for i, option in enumerate(known[name])
    ]
    table_blocks.show_table(screen, ["seam", "option", "what it is"], rows)
    screen.print("* default; choose with `skg-bench run SEAM=OPTION`; parameters: `skg-bench list SEAM.OPTION`")


def _marked(group: str, option: str, chosen: dict[str, str]) -> str:
    return f"{option} *" if chosen.get(group) == option else option


def first_line(group: str, option: str) -> str:
    """Sentence about an option: first line of its component's docstring, its question, or the comment above its yaml,
    which says what an option adds to the one that it builds upon, and tells options of one component apart.
    """
    file = next(f for package in packages() if (f := package.conf / group / f"{option}.yaml").is_file())
    text = text_of(file)
    node = yaml_of(file)
    if isinstance(node, dict) and "_target_" in node and "defaults" not in node and not _shared(file, text):
        return _docstring(str(node["_target_"]))
    if isinstance(node, dict) and node.get("question"):
        return str(node["question"])
    comments = (line.lstrip("# ") for line in text.splitlines() if line.startswith("#") and "@package" not in line)
    return next(comments, "")


def _shared(file: Path, text: str) -> bool:
    """Does another option of the group have the same component?"""
    target = next(line for line in text.splitlines() if line.startswith("_target_:"))
    others = (text_of(other).splitlines() for other in file.parent.glob("*.yaml") if other != file)
    return any(target in lines for lines in others)


def _docstring(target: str) -> str:
    module, _, name = target.rpartition(".")
    try:
        spec = find_spec(module)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None:
        return f"(cannot find {module})"
    for node in ast.parse(text_of(Path(spec.origin))).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").split("\n")[0]
        if isinstance(node, ast.ImportFrom) and node.module and any(alias.name == name for alias in node.names):
            return _docstring(f"{node.module}.{name}")
    return f"(cannot find {target})"


def _defaults() -> dict[str, str]:
    root = yaml_of(packages()[0].conf / "config.yaml")
    return {key: str(value) for entry in root["defaults"] if isinstance(entry, dict) for key, value in entry.items()}
