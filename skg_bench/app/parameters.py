"""Meanings of an option's parameters, read from the comments behind the keys of its yaml."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from skg_bench.app import table_blocks
from skg_bench.app.packages import groups, packages
from skg_bench.app.progress import console
from skg_bench.asking.asking import writes_texts
from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.foreign import text_of
from skg_bench.simulator.yaml_files import yaml_of

ROOT_YAML = "config"  # the yaml of the keys that belong to no seam
_KEY = re.compile(r"(?P<indent> *)(?:- )?(?P<key>\w+):(?P<rest>\s.*|)")
_COMMENT = re.compile(r"(?:^|\s)#\s?(?P<text>.*)")
_UNIT = re.compile(r"\s*\[(?P<unit>[^\]]+)\]")
_NO_PARAMETERS = ("_target_", "_with_", "defaults")


@dataclass(frozen=True)
class ComponentParameter:
    """A key of a yaml."""

    path: str  # below the seam, or below the root: `threshold`, `curator.capture`
    value: Any
    comment: str  # unit, meaning and source; empty if the yaml says nothing

    @property
    def unit(self) -> str:
        """Unit, which stands in brackets."""
        match = _UNIT.search(self.comment)
        return match["unit"] if match else ""

    @property
    def meaning(self) -> str:
        """The comment without the unit."""
        return _UNIT.sub("", self.comment, count=1)


def show_parameters(name: str) -> None:
    """Print what `name`, such as `policy.threshold` or `config`, is and takes.

    Raises UsageError for an unknown seam or option.
    """
    seam, _, option = name.partition(".")
    file, screen = _file(seam, option), console()
    for line in _about(file):
        screen.print(line)
    parameters = list(option_parameters(seam, option))
    units = any(parameter.unit for parameter in parameters)
    headings = ["parameter", "value", *(["unit"] if units else []), "meaning and source"]
    rows = [
        [
            parameter.path,
            _shown(parameter.value),
            *([parameter.unit] if units else []),
            parameter.meaning or f"({file.name} does not say)",
        ]
        for parameter in parameters
    ]
    if rows:
        table_blocks.show_table(screen, headings, rows, wraps_from=18)
    else:
        screen.print("it has no parameters")
    learns = seam == "llm" and writes_texts(resolve_name(_composed(seam, option)["_target_"]))
    place = f"curator.{seam}" if learns else seam
    chosen = "" if seam == ROOT_YAML else f" {place}={option}"
    screen.print(f"skg-bench run{chosen}{_override(parameters, '' if _at_root(file) else f'{place}.')}")


def option_parameters(seam: str, option: str) -> Iterator[ComponentParameter]:
    """All parameters of an option, those of components inside of it too."""
    comments, at_root = _comments(_file(seam, option)), _at_root(_file(seam, option))
    root = _comments(_file(ROOT_YAML, "")) if at_root else {}
    yield from _described(_composed(seam, option), {**root, **comments}, "")


def _described(node: Mapping[str, Any], comments: Mapping[str, str], above: str) -> Iterator[ComponentParameter]:
    for key, value in node.items():
        if key in _NO_PARAMETERS:
            continue
        path = f"{above}{key}"
        if isinstance(value, Mapping) and "_target_" in value:
            if path in comments:
                yield ComponentParameter(path, str(value["_target_"]).rsplit(".", 1)[-1], comments[path])
            inner = {f"{path}.{name}": text for name, text in _of_class(str(value["_target_"])).items()}
            yield from _described(value, {**inner, **comments}, f"{path}.")
        elif isinstance(value, Mapping) and any(f"{path}.{name}" in comments for name in value):
            yield from _described(value, comments, f"{path}.")
        else:
            yield ComponentParameter(path, value, comments.get(path) or comments.get(above.rstrip("."), ""))


def _override(parameters: Sequence[ComponentParameter], above: str) -> str:
    """How to give the first parameter that is no component another value."""
    paths = [p.path for p in parameters if not any(other.path.startswith(f"{p.path}.") for other in parameters)]
    if above.endswith(".llm."):  # through its wrappers (overrides.deepened)
        paths = [path.rpartition("llm.")[2] for path in paths]
    return f" {above}{paths[0]}=..." if paths else ""


@cache
def _of_class(target: str) -> dict[str, str]:
    """Comments on the parameters of a class, of the yamls that configure it by itself."""
    merged: dict[str, str] = {}
    for seam, options in groups().items():
        for option in options:
            file = _file(seam, option)
            if target in text_of(file) and _read(file).get("_target_") == target:
                merged = {**_comments(file), **merged}
    return merged


def _composed(seam: str, option: str) -> dict[str, Any]:
    """Keys and values of an option, those of the options of its seam that it builds upon first."""
    node = _read(_file(seam, option))
    composed: dict[str, Any] = {}
    for base in node.get("defaults", []) if seam != ROOT_YAML else []:
        if base != "_self_" and isinstance(base, str) and base in groups().get(seam, ()):
            composed = _merged(composed, _composed(seam, base))
    composed = _merged(composed, node)
    return {key: value for key, value in composed.items() if key not in groups() or not isinstance(value, str)}


def _merged(base: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    """As Hydra merges: mappings key by key, anything else is replaced."""
    inner = {
        key: _merged(base[key], value)
        for key, value in node.items()
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping) and "_target_" not in value
    }
    return {**base, **node, **inner}


def _comments(file: Path) -> dict[str, str]:
    """Comments by the path of their key: behind it, on the lines below, or else right above it."""
    seam = file.parent.name
    comments: dict[str, str] = {}
    for base in _read(file).get("defaults", []) if file.stem != ROOT_YAML else []:
        if base != "_self_" and isinstance(base, str) and base in groups().get(seam, ()):
            comments |= _comments(_file(seam, base))
    stack: list[tuple[int, str]] = []
    path, before, column = "", list[str](), 0
    for line in text_of(file).splitlines():
        comment = _COMMENT.search(line)
        text = comment["text"].strip() if comment else ""
        match = _KEY.match(line[: comment.start()] if comment else line)
        if match:
            indent = len(match["indent"])
            stack = [*((i, key) for i, key in stack if i < indent), (indent, match["key"])]
            path = ".".join(key for _, key in stack)
            if text or before:
                comments[path] = text or " ".join(before)
            before, column = [], line.index("#") if text else 0
        elif comment and column and line.index("#") == column:  # below the comment of the key before
            comments[path] = f"{comments[path]} {text}"
        elif comment:
            before.append(text)
        else:
            before = []
    return comments


def _about(file: Path) -> list[str]:
    """Description of a yaml: the comment at its top, else what its component does."""
    from skg_bench.app.catalogue import first_line

    lines: list[str] = []
    for line in text_of(file).splitlines():
        if not line.startswith("#"):
            break
        if "@package" not in line:
            lines.append(line.lstrip("# "))
    if file.stem == ROOT_YAML:
        return [" ".join(lines)]
    first = first_line(file.parent.name, file.stem)
    return [*([] if first in lines else [first]), *([" ".join(lines)] if lines else [])]


def _at_root(file: Path) -> bool:
    return file.stem == ROOT_YAML or "@package _global_" in text_of(file)


def _file(seam: str, option: str) -> Path:
    if seam == ROOT_YAML:
        return packages()[0].conf / f"{ROOT_YAML}.yaml"
    known = groups()
    if seam not in known:
        raise UsageError(f"there is no seam {seam!r}; {nearest(seam, known)}")
    if option not in known[seam]:
        raise UsageError(f"there is no {seam}={option}; {nearest(option, known[seam])}")
    return next(f for package in packages() if (f := package.conf / seam / f"{option}.yaml").is_file())


def _read(file: Path) -> dict[str, Any]:
    node = yaml_of(file)
    return node if isinstance(node, dict) else {}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
