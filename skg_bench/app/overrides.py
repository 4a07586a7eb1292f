"""Overrides of the command line and of arms, checked against the configuration tree before anything is composed.

Hydra alone accepts `+sed=1` and runs with the wrong seed. Here every key must exist, with or without `+`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override as HydraOverride
from hydra.errors import HydraException

from skg_bench.app.interpolations import check_interpolations
from skg_bench.app.packages import INSIDE, groups
from skg_bench.app.written_secrets import check_secrets
from skg_bench.core.errors import UsageError, nearest

Tree = Mapping[str, Any]


@dataclass(frozen=True)
class Override:
    """`policy=never` (a choice), or `policy.threshold=0.4` (a value) at a dotted path."""

    text: str
    path: str
    value: Any
    add: bool  # written with +
    delete: bool  # written with ~
    choice: bool  # of a group
    inner: bool = False  # `curator.llm=recorded`: a choice of the group `llm` for the key `llm` of a component

    @property
    def head(self) -> str:
        """First part of the path."""
        return self.path.split(".")[0]


_ARMS = re.compile(r"(?P<sign>\+\+?|~)?(?P<path>arms(\.[^=]*)?)(=(?P<value>.*))?", re.DOTALL)
_BARE = re.compile(r"(?!(?:null|true|false|inf|nan)\Z)\.{0,2}[a-z_/][\w./-]*", re.ASCII | re.IGNORECASE)


def parse(texts: Sequence[str], where: str = "") -> list[Override]:
    """Overrides in Hydra's grammar; those of `arms` in yaml's, as `=` has no place inside a list of Hydra's.

    Raises UsageError on bad grammar, on sweeps, on packages, on resolvers, on secrets and on unknown options of a
    group; `where` begins it.
    """
    parsed = [_of_arms(text, where) if _ARMS.fullmatch(text) else _plain(_parsed(text, where), where) for text in texts]
    for override in parsed:
        check_interpolations(override.path, override.value, where)
        check_secrets(override.path, override.value, where)
    return parsed


def check_override_texts(overrides: object) -> None:
    """Overrides that a script gives are a list of texts.

    Raises UsageError for one text, and for anything else.
    """
    if isinstance(overrides, list | tuple) and all(isinstance(text, str) for text in overrides):
        return
    hint = f"[{overrides!r}]" if isinstance(overrides, str) else "['users=12', 'weeks=4']"
    raise UsageError(f"overrides were given as {overrides!r}; valid is a list of texts, such as {hint}")


def override_value(value: object) -> str:
    """A value in Hydra's grammar, which `parse` reads as the same. It is not JSON's: keys are bare, and a backslash
    stands for itself except before a quote.

    Raises UsageError for what no configuration holds.
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {override_value(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(override_value, value))}]"
    if isinstance(value, str):
        escaped = re.sub(r'(\\*)("|\Z)', lambda match: match[1] * 2 + match[2].replace('"', '\\"'), value)
        return value if _BARE.fullmatch(value) else f'"{escaped}"'
    if isinstance(value, bool | None):
        return json.dumps(value)
    if isinstance(value, int | float):
        return repr(value)
    raise UsageError(
        f"{value!r} is of the class {type(value).__qualname__}; a configuration holds texts, numbers, true, false, "
        "null, lists and mappings"
    )


def sweep_cells(texts: Sequence[str]) -> list[list[str]]:
    """Every combination of a sweep such as `seed=1,2 policy=never,always`; the last override varies fastest.

    Raises UsageError for a sweep whose values are not known, that has none, or over what changes no result.
    """
    choices = []
    for text in texts:
        parsed = None if _ARMS.fullmatch(text) else _parsed(text, "")
        if parsed is not None and parsed.is_sweep_override():
            choices.append([f"{parsed.get_key_element()}={value}" for value in _swept_values(text, parsed)])
        else:
            choices.append([text])
    return [list(cell) for cell in product(*choices)]


def _swept_values(text: str, parsed: HydraOverride) -> list[str]:
    from skg_bench.runfolder.manifest import BESIDE  # which takes long to import, and only a sweep needs it

    key = parsed.key_or_group.split(".")[0]
    if key in BESIDE and key != "out":
        raise UsageError(f"{text}: {key} changes no result, so that all values are one run; give one of them")
    valid = "valid are values, as in key=a,b, or a range of numbers, as in key=range(1,5)"
    try:
        values = list(parsed.sweep_string_iterator())
    except (HydraException, ValueError) as error:  # a glob, an interval, or a step of 0
        raise UsageError(f"{text} does not list the values of a sweep; {valid}") from error
    if not values:
        raise UsageError(f"{text} has no value, so that nothing would be run; {valid}")
    return values


@cache
def _parser() -> OverridesParser:
    return OverridesParser.create()


@lru_cache(maxsize=4096)
def _hydra_override(text: str) -> HydraOverride:
    """An override, which takes a millisecond; cells of a sweep have most of theirs in common."""
    return _parser().parse_override(text)


def _parsed(text: str, where: str) -> HydraOverride:
    try:
        return _hydra_override(text)
    except HydraException as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{where}{text}: {reason}; an override reads key=value, quote special signs") from error


def _of_arms(text: str, where: str) -> Override:
    parts = _ARMS.fullmatch(text)
    sign, path, value = (parts["sign"], parts["path"], parts["value"]) if parts else (None, text, None)
    if (sign == "~") == (value is not None):
        raise UsageError(f"{where}{text}: write {path}=[overrides], or ~{path} to leave an arm out")
    try:
        table = yaml.safe_load(value or "null")
    except yaml.YAMLError as error:
        raise UsageError(
            f"{where}{text}: write +arms.NAME=[policy=never,...]; several values are several arms, each with its own "
            f"name ({' '.join(str(error).split())})"
        ) from error
    return Override(text, path, table, sign in ("+", "++"), sign == "~", choice=False)


def _plain(parsed: HydraOverride, where: str) -> Override:
    text, path = str(parsed.input_line), str(parsed.key_or_group)
    if parsed.is_sweep_override():
        raise UsageError(f"{where}{text} is a sweep; add -m to run every combination, or quote the value")
    if parsed.package is not None:
        raise UsageError(f"{where}{text}: a key may not carry a package (@{parsed.package}); leave it away")
    add, delete = parsed.is_add() or parsed.is_force_add(), parsed.is_delete()
    head, _, last = path.rpartition(".")
    inner = bool(head) and last in INSIDE and not delete
    override = Override(text, path, None if delete else parsed.value(), add, delete, path in groups(), inner)
    if override.choice and delete:
        raise UsageError(f"{where}{text}: {path} cannot be left out; {nearest('', groups()[path])}")
    if inner and (not isinstance(override.value, str) or override.value not in groups()[last]):
        raise UsageError(f"{where}{text}: {last} has no such option; {nearest(str(override.value), groups()[last])}")
    if override.choice and (not isinstance(override.value, str) or override.value not in groups()[path]):
        if (path, override.value) == ("curator", "frozen"):
            raise UsageError(f"{where}{text}: an arm says itself when it stops to learn: freeze=all, freeze_at=TURN")
        hint = f"{nearest(str(override.value), groups()[path])} (all: skg-bench list {path})"
        raise UsageError(f"{where}{text}: {path} has no such option; {hint}")
    return override


def leaves(path: str, value: Any) -> Iterator[str]:
    """Dotted paths that an override sets: `utility={wrong: 2}` sets `utility.wrong`."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from leaves(f"{path}.{key}", inner)
    else:
        yield path


def has(tree: Tree, path: str) -> bool:
    """Is there something at `path`, if only null?"""
    node: Any = tree
    for part in path.split("."):
        if isinstance(node, Sequence) and not isinstance(node, str) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        elif isinstance(node, Mapping) and part in node:
            node = node[part]
        else:
            return False
    return True


def node_at(tree: Tree, parts: Sequence[str]) -> Any:
    """Part of a tree at a path, which it has."""
    node: Any = tree
    for part in parts:
        node = node[int(part)] if isinstance(node, Sequence) else node[part]
    return node


def deepened(override: Override, tree: Tree) -> Override:
    """The override at the path of the component that has its key, where options of INSIDE are wrapped by others of the
    same group: `curator.llm.model` is `curator.llm.llm.model` where `curator.llm` is a recording of an endpoint.
    """
    path = _inner([], override.path.split("."), tree)
    return override if path is None else replace(override, path=".".join(path))


def _inner(outer: Sequence[str], rest: Sequence[str], tree: Tree) -> Sequence[str] | None:
    """The path of the outermost component that has the keys `rest`; None: none has."""
    if not rest:
        return outer
    step = [*outer, rest[0]]
    if not has(tree, ".".join(step)):
        return None
    inner = _inner(step, rest[1:], tree)
    return _inner(step, rest, tree) if inner is None and rest[0] in INSIDE else inner


def check_keys(override: Override, tree: Tree, where: str = "") -> None:
    """Every key that `override` sets exists in `tree`.

    Raises UsageError naming the nearest key that does. Names of arms are free: `+arms.NAME=[...]` adds one.
    """
    if (
        override.choice
        or override.path == "arms"
        or (override.head == "arms" and override.add and override.path.count(".") == 1)
    ):
        return
    for path in [override.path] if override.inner else leaves(override.path, override.value):
        if not has(tree, path) and not _free(tree, path):
            if override.head == "arms" and path.count(".") == 1:
                known = [f"arms.{name}" for name in tree["arms"]]
                hint = f"to add an arm write +{override.text.lstrip('+~')}; {nearest(path, known)}"
            else:
                hint = _hint(path, tree)
            raise UsageError(f"{where}{override.text}: there is no key {path!r}; {hint}")


def _free(tree: Tree, path: str) -> bool:
    """Does a path lead into an empty mapping of a component, whose keys are free?"""
    parts = path.split(".")
    above = next((parts[:depth] for depth in range(len(parts) - 1, 1, -1) if has(tree, ".".join(parts[:depth]))), [])
    node = node_at(tree, above)
    return bool(above) and isinstance(node, Mapping) and not node


def _hint(path: str, tree: Tree) -> str:
    """The nearest key; where none is near, the keys of the root, and the command that lists all."""
    near = nearest(path, _near(tree, path))
    if near and (path.split(".")[0] in tree or near.startswith("did you mean")):
        return near
    roots = ", ".join(sorted(tree))
    return f"keys begin with {roots}; `skg-bench list config` shows those of no seam, `skg-bench list` the others"


def _near(tree: Tree, path: str) -> list[str]:
    """Keys beside the first unknown part of `path`; all keys if the first part is unknown already."""
    parts = path.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        above = ".".join(parts[:depth])
        if has(tree, above):
            node = node_at(tree, parts[:depth])
            return [f"{above}.{key}" for key in node if key != "_target_"] if isinstance(node, Mapping) else [above]
    if len(parts) == 1:
        return [key for key in tree if key not in ("arms",)] + [leaf for key in tree for leaf in leaves(key, tree[key])]
    return list(tree)
