"""Trees that Hydra composes of yaml files: the root with its choices, and nodes of options beside it.

A call of Hydra takes 0.1 s, so that trees of equal choices are composed once. They are plain data, interpolations as
they are, which nobody changes: to copy one takes 0.3 ms in place of 5.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from skg_bench.app.interpolations import check_interpolations
from skg_bench.app.packages import groups, packages
from skg_bench.app.written_secrets import check_secrets
from skg_bench.core.errors import UsageError, nearest

Config = dict[str, Any]
T = TypeVar("T")
_TREES = 64  # that are kept, of about a megabyte each
_OF_ROOT = ("experiment", "profile")  # groups whose files have keys of the root
_UNPLACED = re.compile(rf"@({'|'.join(_OF_ROOT)})\.")  # where Hydra looks for what belongs to the root
_HEADER = "Begin a file of an experiment or a profile with the line `# @package _global_`, above all other comments"
_OPTIONS = "_options_"  # where options that arms choose are composed, beside the root's own


class HydraTrees:
    """Trees of one configuration search path, by choices: options of groups in Hydra's words."""

    def __init__(self) -> None:
        self._trees: dict[tuple[str, ...], Config] = {}

    def tree(self, choices: tuple[str, ...], root: str | None = "config") -> Config:
        """The tree of these choices. `root`: the file that they are chosen for; None: what is chosen, alone, in half of
        the time.

        Raises UsageError for one that does not compose, that asks a resolver, or that holds a secret.
        """
        if choices not in self._trees:
            while len(self._trees) >= _TREES:
                del self._trees[next(iter(self._trees))]
            with plainly_composed(" ".join(choices)):
                tree = _composed(root, [*choices, *_search_path()])
            if unplaced := [group for group in _OF_ROOT if isinstance(tree.get(group), dict)]:
                raise UsageError(
                    f"the configuration {' '.join(choices)} does not compose: keys of its {unplaced[0]} are none of "
                    f"the root. {_HEADER}"
                )
            for key, node in tree.items():
                check_interpolations(key, node)
                check_secrets(key, node)
            self._trees[choices] = tree
        return self._trees[choices]

    def nodes(self, choices: Iterable[tuple[str, str]]) -> Config:
        """Node that each option of a group composes to: `nodes.policy.never`. One call of Hydra.

        `choices`: group and option.
        """
        beside = {f"+{group}@{_OPTIONS}.{group}.{option}={option}" for group, option in choices}
        if not beside:
            return {}
        nodes: Config = self.tree(tuple(sorted(beside)), root=None)[_OPTIONS]
        return nodes

    def options(self, group: str, names: Sequence[str]) -> list[Config]:
        """Nodes that these options of a group compose to; the caller may change them.

        Raises UsageError for a name that is none of its options.
        """
        for name in names:
            if name not in groups()[group]:
                raise UsageError(f"{group}={name}: {group} has no such option; {nearest(name, groups()[group])}")
        return list(copied(self.nodes((group, name) for name in names))[group].values())


def hydra_trees() -> HydraTrees:
    """Trees that all calls share as long as no yaml file changes."""
    files = (file for package in packages() for file in package.conf.rglob("*.yaml"))
    return _shared(tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in sorted(files)))


@lru_cache(maxsize=2)
def _shared(_files: tuple[tuple[str, int, int], ...]) -> HydraTrees:
    return HydraTrees()


def _search_path() -> list[str]:
    folders = [f"'file://{package.conf}'" for package in packages()[1:]]
    return [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []


def _composed(root: str | None, overrides: Sequence[str]) -> Config:
    with initialize_config_dir(str(packages()[0].conf), version_base="1.3"):
        tree = hydra_compose(root, overrides=list(overrides))
    raw: Config = OmegaConf.to_container(tree, resolve=False)  # type: ignore[assignment]
    return raw


def copied(tree: T) -> T:
    """A copy of plain data: mappings, lists, and values that cannot change."""
    copy: Any = tree
    if isinstance(tree, dict):
        copy = {key: copied(node) for key, node in tree.items()}
    elif isinstance(tree, list):
        copy = [copied(node) for node in tree]
    return copy  # type: ignore[no-any-return]


@contextmanager
def plainly_composed(what: str) -> Iterator[None]:
    """Raises UsageError for what Hydra and OmegaConf find wrong with the configuration `what`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        reason = " ".join(str(error).split())
        hint = f" {_HEADER}" if _UNPLACED.search(reason) else ""
        raise UsageError(f"the configuration {what} does not compose: {reason}{hint}".replace("  ", " ")) from error
