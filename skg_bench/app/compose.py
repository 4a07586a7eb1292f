"""Overrides to a resolved configuration: the root, and each arm as the root's overrides and its own.

Hydra composes the choices of groups, those of the root and, in a second call, all that arms choose; values are set on
what it composed, after their keys were checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omegaconf import OmegaConf

from skg_bench.app.arm_keys import PARTS_OF_PIPELINE, PIPELINE, SEAMS_OF_ARMS
from skg_bench.app.control_arms import NEEDED_OPTIONS, control_arm, controls_by_name, with_controls
from skg_bench.app.hydra_trees import Config, HydraTrees, copied, hydra_trees, plainly_composed
from skg_bench.app.overrides import Override, check_keys, deepened, has, node_at, parse
from skg_bench.app.root_checks import check_arm_key, check_parts, check_root
from skg_bench.core.errors import UsageError

_OF_ROOT = ("arms", "contrasts", "controls_of")  # what no arm reads: each arm is a copy of the tree without these
_WITH = (
    "_with_"  # in an option or an experiment: what is chosen at other groups along with it, unless something else is
)


@dataclass(frozen=True)
class Composed:
    """Resolved configuration of a run."""

    root: Config
    arms: dict[str, Config]  # by name, in order: what the arm uses of SEAMS_OF_ARMS
    without: dict[str, list[str]]  # override of the root: arms whose own component has no such key
    given: Sequence[Override]  # of the root
    changed: Sequence[str] = ()  # arms that the command changed, or added to those of the experiment


class Composer:
    """Composes against one configuration search path.

    Raises UsageError for whatever is wrong with overrides or with a yaml file.
    """

    def __init__(self, trees: HydraTrees) -> None:
        self._trees = trees

    def root(self, overrides: Sequence[Override]) -> Config:
        """The resolved root.

        Raises UsageError for unknown keys and for values out of range.
        """
        tree = self._with_inner(self._root_tree(overrides), overrides, "")
        values = [deepened(override, tree) for override in overrides if not override.choice and not override.inner]
        for override in values:
            check_keys(override, tree)
        root = with_controls(_resolved(_with(copied(tree), values)))
        check_root(root)
        return _named_as_chosen(root, overrides)

    def arms(self, overrides: Sequence[Override], root: Config) -> Composed:
        """All arms of a root, each the root's overrides and its own."""
        controls = controls_by_name(root)
        table = {name: texts for name, texts in root["arms"].items() if name not in controls}
        arm_overrides = {name: parse(texts, f"arm {name!r}: ") for name, texts in table.items()}
        for name, texts in arm_overrides.items():
            for override in texts:
                check_arm_key(override, f"arm {name!r}: ")
        whole = self._root_tree(overrides)
        tree = {key: node for key, node in whole.items() if key not in _OF_ROOT}
        nodes = self._trees.nodes(
            (override.path, override.value) for texts in arm_overrides.values() for override in texts if override.choice
        )
        inner = [override for override in overrides if override.inner]
        arms, without = {}, dict[str, list[str]]()
        for name, texts in arm_overrides.items():
            chosen = {o.path: nodes[o.path][o.value] for o in texts if o.choice}
            arm = copied(tree | chosen)
            for override in inner:  # one at a time: the place of one may lie in what another one chose
                if has(arm, override.path):
                    arm = self._with_inner(arm, [override], f"arm {name!r}: ")
            arm = self._with_inner(arm, [override for override in texts if override.inner], f"arm {name!r}: ")
            arms[name], missing = _arm(arm, overrides, texts, f"arm {name!r}: ")
            for text in missing:
                without.setdefault(text, []).append(name)
        if controls:
            options = _resolved(copied(self._trees.nodes(NEEDED_OPTIONS)))
            for control, (name, suffix) in controls.items():
                arms[control] = control_arm(suffix, name, arms[name], root, options)
        before = whole["arms"]
        changed = [name for name, texts in root["arms"].items() if before.get(name) != texts]
        plain = {key: value for key, value in root.items() if key != "controls_of"}  # now arms and contrasts
        return Composed(plain, arms, without, overrides, changed)

    def _root_tree(self, overrides: Sequence[Override]) -> Config:
        # of two of a group the later counts
        chosen = {override.path: str(override.value) for override in overrides if override.choice}
        tree = self._trees.tree(_choices(chosen))
        along: dict[str, str] = {}
        while brought := _brought(tree).keys() - along.keys() - chosen.keys():  # what is brought along brings more
            along |= {group: _brought(tree)[group] for group in brought}
            tree = self._trees.tree(_choices(along | chosen))
        return tree if not _brought(tree) else _without(tree)

    def _with_inner(self, tree: Config, overrides: Sequence[Override], where: str) -> Config:
        """The tree with the options that were chosen for components inside of others."""
        inner = [override for override in overrides if override.inner]
        if not inner:
            return tree
        changed = copied(tree)
        for override in inner:
            check_keys(override, changed, where)
            group = override.path.rpartition(".")[2]
            node = self._trees.nodes([(group, override.value)])[group][override.value]
            above, last = _above(changed, override.path)
            above[last] = copied(node)
        return changed


def _named_as_chosen(root: Config, overrides: Sequence[Override]) -> Config:
    """The root, in which the experiment's arm without overrides bears the name of the assistant that the command chose.

    `skg` is what experiments call the default loop; `assistant=ttl` makes another one of it, called `ttl`.
    """
    chosen = [str(o.value) for o in overrides if o.choice and o.path == "assistant" and o.value != "pipeline"]
    given = {part for o in overrides for part in (o.path.split(".")[1:2] if o.path != "arms" else root["arms"])
           if o.head == "arms"}  # fmt: skip
    plain = [name for name, texts in root["arms"].items() if not texts and name not in given]
    if not chosen or not plain or chosen[-1] in root["arms"]:
        return root
    old, new = plain[0], chosen[-1]

    def named(name: str | None) -> str | None:
        return new if name == old else name

    forks = (f"fork={old}@", f"fork={new}@")
    return {
        **root,
        "arms": {named(name): [text.replace(*forks) for text in texts] for name, texts in root["arms"].items()},
        "reference": named(root["reference"]),
        "learner": named(root["learner"]),
        "contrasts": [
            {key: named(value) if key in ("arm", "reference", "bound") else value for key, value in entry.items()}
            for entry in root["contrasts"]
        ],
    }


def _choices(chosen: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{group}={option}" for group, option in sorted(chosen.items()))


def _without(tree: Config) -> Config:
    """The tree without what its options brought along, which has been chosen."""
    plain = {key: _left(node) if isinstance(node, dict) else node for key, node in tree.items()}
    return _left(plain)


def _left(node: Config) -> Config:
    return {key: value for key, value in node.items() if key != _WITH}


def _brought(tree: Config) -> dict[str, str]:
    """The options that those of a tree bring along; an experiment says so last."""
    options = (node for node in tree.values() if isinstance(node, dict))
    return {k: v for node in [*options, tree] for k, v in node.get(_WITH, {}).items()}


def compose(texts: Sequence[str]) -> Composed:
    """The configuration that these overrides make.

    Raises UsageError for unknown keys and options (with the nearest valid one), values out of range, arms that override
    what all arms share, and for texts that ask a resolver, such as `${oc.env:NAME}`.
    """
    shared, overrides = composer(), parse(texts)
    return shared.arms(overrides, shared.root(overrides))


def composer() -> Composer:
    """A composer of the yaml files as they are."""
    return Composer(hydra_trees())


def _arm(
    tree: Config, overrides: Sequence[Override], arm_overrides: Sequence[Override], where: str
) -> tuple[Config, list[str]]:
    """One arm, resolved, and the overrides of the root that do not concern it; its tree is changed.

    A value of the root under a component that the arm replaces counts where the arm's own component has that key, or
    wraps a component that has it: `policy.threshold=0.4` does not concern an arm whose policy has no threshold.
    """
    own_values = [deepened(override, tree) for override in arm_overrides if not override.choice and not override.inner]
    for override in own_values:
        check_keys(override, tree, where)
    replaced = {override.path for override in arm_overrides if override.choice}
    values, without = [], []
    of_root = (o for o in overrides if not (o.choice or o.inner or o.head in _OF_ROOT))
    for override in (deepened(o, tree) for o in of_root):
        wrapped = replace(override, path=f"{override.head}.{override.path}")
        if override.head not in replaced or has(tree, override.path):
            values.append(override)
        elif has(tree, wrapped.path):
            values.append(wrapped)
        else:
            without.append(override.text)
    config = _resolved(_with(tree, [*values, *own_values]))
    assistant = config["assistant"].get("_target_", "")
    check_parts(assistant, arm_overrides, where)
    unused = () if assistant == PIPELINE else PARTS_OF_PIPELINE
    return {seam: config[seam] for seam in SEAMS_OF_ARMS if seam not in unused}, without


def _with(config: Config, values: Sequence[Override]) -> Config:
    """Sets values on a configuration, which is changed."""
    for override in values:
        if override.path == "arms":  # a table of arms replaces the table
            table = {} if override.delete else copied(override.value)
            if not isinstance(table, dict):
                raise UsageError(f"{override.text}: arms is a table, as in 'arms={{one: [], other: [policy=never]}}'")
            config["arms"] = table
        elif override.delete:
            _delete(config, override)
        elif has(config, override.path) and not isinstance(override.value, dict | list):
            above, last = _above(config, override.path)
            above[last] = override.value
        else:
            config = _merged(config, override)
    return config


def _delete(config: Config, override: Override) -> None:
    if not has(config, override.path):
        raise UsageError(f"{override.text}: {override.path} is left out already")
    above, last = _above(config, override.path)
    if isinstance(above, list):
        whole = override.path.rpartition(".")[0]
        raise UsageError(f"{override.text}: no item of a list can be left out alone; write the list, {whole}=[...]")
    del above[last]


def _above(config: Config, path: str) -> tuple[Any, Any]:
    """The mapping or list that holds what is at `path`, and its key there."""
    *parts, last = path.split(".")
    node = node_at(config, parts)
    return node, int(last) if isinstance(node, list) else last


def _merged(config: Config, override: Override) -> Config:
    """The configuration with a mapping, a list or a new key as OmegaConf puts it there."""
    with plainly_composed(""):
        tree = OmegaConf.create(config)
        OmegaConf.update(tree, override.path, override.value, merge=True)
        raw: Config = OmegaConf.to_container(tree, resolve=False)  # type: ignore[assignment]
    return raw


def _resolved(tree: Config) -> Config:
    """A tree of which nothing refers to another key, and nothing is missing."""
    if not _refers(tree):
        return tree
    with plainly_composed(""):
        resolved: Config = OmegaConf.to_container(OmegaConf.create(tree), resolve=True, throw_on_missing=True)  # type: ignore[assignment]
    return resolved


def _refers(value: Any) -> bool:
    """Has OmegaConf to look at it?"""
    if isinstance(value, dict | list):
        return any(map(_refers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and ("${" in value or value == "???")
