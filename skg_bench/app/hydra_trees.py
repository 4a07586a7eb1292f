"""Trees that Hydra composes of yaml files: the root with its choices, and nodes of options beside it.

A call of Hydra takes 0.1 s, so that trees of equal choices are composed once.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from skg_bench.app.interpolations import check_interpolations
from skg_bench.app.packages import groups, packages
from skg_bench.core.errors import UsageError, nearest

Config = dict[str, Any]
_TREES = 64  # that are kept, of about a megabyte each
_OPTIONS = "_options_"  # where options that arms choose are composed, beside the root's own


class HydraTrees:
    """Trees of one configuration search path, by choices: options of groups in Hydra's words."""

    def __init__(self) -> None:
        self._trees: dict[tuple[str, ...], DictConfig] = {}

    def tree(self, choices: tuple[str, ...], root: str | None = "config") -> DictConfig:
        """The tree of these choices, interpolations as they are. `root`: the file that they are chosen for; None: what
        is chosen, alone, in half of the time.

        Raises UsageError for one that does not compose, or that asks a resolver.
        """
        if choices not in self._trees:
            while len(self._trees) >= _TREES:
                del self._trees[next(iter(self._trees))]
            with (
                plainly_composed(" ".join(choices)),
                initialize_config_dir(str(packages()[0].conf), version_base="1.3"),
            ):
                tree = hydra_compose(root, overrides=[*choices, *_search_path()])
            for key, node in raw_tree(tree).items():
                check_interpolations(key, node)
            self._trees[choices] = tree
        return self._trees[choices]

    def nodes(self, choices: Iterable[tuple[str, str]]) -> DictConfig:
        """Node that each option of a group composes to: `nodes.policy.never`. One call of Hydra.

        `choices`: group and option.
        """
        beside = {f"+{group}@{_OPTIONS}.{group}.{option}={option}" for group, option in choices}
        if not beside:
            return OmegaConf.create({})
        nodes: DictConfig = self.tree(tuple(sorted(beside)), root=None)[_OPTIONS]
        return nodes

    def options(self, group: str, names: Sequence[str]) -> list[Config]:
        """Nodes that these options of a group compose to, interpolations as they are.

        Raises UsageError for a name that is none of its options.
        """
        for name in names:
            if name not in groups()[group]:
                raise UsageError(f"{group}={name}: {group} has no such option; {nearest(name, groups()[group])}")
        return list(raw_tree(self.nodes((group, name) for name in names))[group].values())


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


def copied(tree: DictConfig) -> DictConfig:
    """A copy of a tree, in a third of the time of OmegaConf's own: 2 ms."""
    copy: DictConfig = pickle.loads(pickle.dumps(tree, pickle.HIGHEST_PROTOCOL))  # noqa: S301  it was pickled just now
    return copy


def raw_tree(tree: DictConfig) -> Config:
    """A tree as plain data, interpolations as they are."""
    raw: Config = OmegaConf.to_container(tree, resolve=False)  # type: ignore[assignment]
    return raw


@contextmanager
def plainly_composed(what: str) -> Iterator[None]:
    """Raises UsageError for what Hydra and OmegaConf find wrong with the configuration `what`."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"the configuration {what} does not compose: {reason}".replace("  ", " ")) from error
