"""Overrides to a resolved configuration: the root, and each arm as the root's overrides and its own.

Hydra composes the choices of groups; values are set on what it composed, after their keys were checked.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from skg_bench.app.checks import SEAMS_OF_ARMS, check_arm_key, check_root
from skg_bench.app.overrides import Override, check, has, parse
from skg_bench.app.packages import packages
from skg_bench.core.errors import UsageError

Config = dict[str, Any]


@dataclass(frozen=True)
class Composed:
    """Resolved configuration of a run."""

    root: Config
    arms: dict[str, Config]  # by name, in order: what the arm uses at each of SEAMS_OF_ARMS
    without: dict[str, list[str]]  # override of the root: arms whose own component has no such key


class Composer:
    """Composes against one configuration search path; trees of equal choices are composed once.

    Raises UsageError for whatever is wrong with overrides or with a yaml file.
    """

    def __init__(self) -> None:
        self._trees: dict[tuple[str, ...], DictConfig] = {}

    def tree(self, choices: Sequence[Override]) -> DictConfig:
        """What Hydra composes for these choices of groups; of two of a group the later counts."""
        chosen = {one.path: str(one.value) for one in choices}
        key = tuple(f"{group}={option}" for group, option in sorted(chosen.items()))
        if key not in self._trees:
            with _plain_errors(" ".join(key)), initialize_config_dir(str(packages()[0].conf), version_base="1.3"):
                self._trees[key] = hydra_compose("config", overrides=[*key, *_search_path()])
        return self._trees[key]

    def root(self, overrides: Sequence[Override]) -> Config:
        """The resolved root.

        Raises UsageError for unknown keys and for values out of range.
        """
        tree = self.tree([one for one in overrides if one.choice])
        raw = _raw(tree)
        values = [one for one in overrides if not one.choice]
        for one in values:
            check(one, raw)
        root = _resolved(_with(tree, values))
        check_root(root)
        return root

    def arm(self, overrides: Sequence[Override], name: str, texts: Sequence[str]) -> tuple[Config, list[str]]:
        """One arm, resolved, and the overrides of the root that do not concern it.

        A value of the root under a component that the arm replaces counts where the arm's own component has that key,
        or wraps a component that has it: `policy.threshold=0.4` does not concern an arm whose policy has no threshold.
        """
        where = f"arm {name!r}: "
        own = parse(texts, where)
        for one in own:
            check_arm_key(one, where)
        tree = self.tree([one for one in [*overrides, *own] if one.choice])
        raw = _raw(tree)
        for one in own:
            check(one, raw, where)
        replaced = {one.path for one in own if one.choice}
        values, without = [], []
        for one in (one for one in overrides if not one.choice):
            wrapped = replace(one, path=f"{one.head}.{one.path}")
            if one.head not in replaced or has(raw, one.path):
                values.append(one)
            elif has(raw, wrapped.path):
                values.append(wrapped)
            else:
                without.append(one.text)
        config = _resolved(_with(tree, [*values, *(one for one in own if not one.choice)]))
        return {seam: config[seam] for seam in SEAMS_OF_ARMS}, without


def compose(texts: Sequence[str]) -> Composed:
    """The configuration that these overrides make.

    Raises UsageError for unknown keys and options (with the nearest valid one), values out of range, arms that override
    what all arms share, and a `_target_` outside of declared packages.
    """
    composer, overrides = Composer(), parse(texts)
    root = composer.root(overrides)
    return compose_arms(composer, overrides, root)


def compose_arms(composer: Composer, overrides: Sequence[Override], root: Config) -> Composed:
    """The arms of a composed root."""
    arms, without = {}, dict[str, list[str]]()
    for name, texts in root["arms"].items():
        arms[name], missing = composer.arm(overrides, name, texts)
        for text in missing:
            without.setdefault(text, []).append(name)
    return Composed(root, arms, without)


def _search_path() -> list[str]:
    folders = [f"'file://{package.conf}'" for package in packages()[1:]]
    return [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []


def _with(tree: DictConfig, values: Sequence[Override]) -> DictConfig:
    config = tree.copy()
    with _plain_errors(""), open_dict(config):
        for one in values:
            if one.delete:
                above, _, last = one.path.rpartition(".")
                del (OmegaConf.select(config, above) if above else config)[last]
            elif one.path == "arms":  # a table of arms replaces the table; other mappings are merged
                config.arms = one.value
            else:
                OmegaConf.update(config, one.path, one.value, merge=True)
    return config


def _raw(tree: DictConfig) -> Config:
    raw: Config = OmegaConf.to_container(tree, resolve=False)  # type: ignore[assignment]
    return raw


def _resolved(tree: DictConfig) -> Config:
    with _plain_errors(""):
        resolved: Config = OmegaConf.to_container(tree, resolve=True, throw_on_missing=True)  # type: ignore[assignment]
    return resolved


@contextmanager
def _plain_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"the configuration {what} does not compose: {reason}".replace("  ", " ")) from error
