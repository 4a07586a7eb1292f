"""Overrides to a resolved configuration: the root, and each arm as the root's overrides and its own.

Hydra composes the choices of groups, those of the root and, in a second call, all that arms choose; values are set on
what it composed, after their keys were checked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omegaconf import DictConfig, OmegaConf, open_dict

from skg_bench.app.arm_keys import PARTS_OF_PIPELINE, PIPELINE, SEAMS_OF_ARMS
from skg_bench.app.control_arms import NEEDED_OPTIONS, control_arm, controls_by_name, with_controls
from skg_bench.app.hydra_trees import Config, HydraTrees, copied, hydra_trees, plainly_composed, raw_tree
from skg_bench.app.overrides import Override, check_keys, deepened, has, parse
from skg_bench.app.root_checks import check_arm_key, check_parts, check_root

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
        raw = raw_tree(tree)
        values = [deepened(override, raw) for override in overrides if not override.choice and not override.inner]
        for override in values:
            check_keys(override, raw)
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
        tree = copied(whole)
        with open_dict(tree):
            for key in _OF_ROOT:
                tree.pop(key, None)
        nodes = self._trees.nodes(
            (override.path, override.value) for texts in arm_overrides.values() for override in texts if override.choice
        )
        inner = [override for override in overrides if override.inner]
        arms, without = {}, dict[str, list[str]]()
        for name, texts in arm_overrides.items():
            arm = copied(tree)
            with open_dict(arm):
                for override in texts:
                    if override.choice:
                        arm[override.path] = nodes[override.path][override.value]
            for override in inner:  # one at a time: the place of one may lie in what another one chose
                if has(raw_tree(arm), override.path):
                    arm = self._with_inner(arm, [override], f"arm {name!r}: ")
            arm = self._with_inner(arm, [override for override in texts if override.inner], f"arm {name!r}: ")
            arms[name], missing = _arm(arm, overrides, texts, f"arm {name!r}: ")
            for text in missing:
                without.setdefault(text, []).append(name)
        if controls:
            options = _resolved(self._trees.nodes(NEEDED_OPTIONS))
            for control, (name, suffix) in controls.items():
                arms[control] = control_arm(suffix, name, arms[name], root, options)
        before = raw_tree(whole)["arms"]
        changed = [name for name, texts in root["arms"].items() if before.get(name) != texts]
        plain = {key: value for key, value in root.items() if key != "controls_of"}  # now arms and contrasts
        return Composed(plain, arms, without, overrides, changed)

    def _root_tree(self, overrides: Sequence[Override]) -> DictConfig:
        # of two of a group the later counts
        chosen = {override.path: str(override.value) for override in overrides if override.choice}
        tree = self._trees.tree(_choices(chosen))
        along: dict[str, str] = {}
        while brought := _brought(tree).keys() - along.keys() - chosen.keys():  # what is brought along brings more
            along |= {group: _brought(tree)[group] for group in brought}
            tree = self._trees.tree(_choices(along | chosen))
        return tree if not _brought(tree) else _without(tree)

    def _with_inner(self, tree: DictConfig, overrides: Sequence[Override], where: str) -> DictConfig:
        """The tree with the options that were chosen for components inside of others."""
        inner = [override for override in overrides if override.inner]
        if not inner:
            return tree
        changed = copied(tree)
        for override in inner:
            check_keys(override, raw_tree(changed), where)
            group = override.path.rpartition(".")[2]
            node = self._trees.nodes([(group, override.value)])[group][override.value]
            with open_dict(changed):
                OmegaConf.update(changed, override.path, node, merge=False)
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


def _without(tree: DictConfig) -> DictConfig:
    """The tree without what its options brought along, which has been chosen."""
    plain = copied(tree)
    with open_dict(plain):
        for node in [*_nodes(plain), plain]:
            node.pop(_WITH, None)
    return plain


def _brought(tree: DictConfig) -> dict[str, str]:
    """The options that those of a tree bring along; an experiment says so last."""
    return {k: v for node in [*_nodes(tree), tree] for k, v in node.get(_WITH, {}).items()}


def _nodes(tree: DictConfig) -> Iterator[DictConfig]:
    """The options that were chosen."""
    return (node for _, node in tree.items_ex(resolve=False) if isinstance(node, DictConfig))


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
    tree: DictConfig, overrides: Sequence[Override], arm_overrides: Sequence[Override], where: str
) -> tuple[Config, list[str]]:
    """One arm, resolved, and the overrides of the root that do not concern it; its tree is changed.

    A value of the root under a component that the arm replaces counts where the arm's own component has that key, or
    wraps a component that has it: `policy.threshold=0.4` does not concern an arm whose policy has no threshold.
    """
    raw = raw_tree(tree)
    own_values = [deepened(override, raw) for override in arm_overrides if not override.choice and not override.inner]
    for override in own_values:
        check_keys(override, raw, where)
    replaced = {override.path for override in arm_overrides if override.choice}
    values, without = [], []
    of_root = (o for o in overrides if not (o.choice or o.inner or o.head in _OF_ROOT))
    for override in (deepened(o, raw) for o in of_root):
        wrapped = replace(override, path=f"{override.head}.{override.path}")
        if override.head not in replaced or has(raw, override.path):
            values.append(override)
        elif has(raw, wrapped.path):
            values.append(wrapped)
        else:
            without.append(override.text)
    config = _resolved(_with(tree, [*values, *own_values]))
    assistant = config["assistant"].get("_target_", "")
    check_parts(assistant, arm_overrides, where)
    unused = () if assistant == PIPELINE else PARTS_OF_PIPELINE
    return {seam: config[seam] for seam in SEAMS_OF_ARMS if seam not in unused}, without


def _with(config: DictConfig, values: Sequence[Override]) -> DictConfig:
    """Sets values on a configuration, which is changed."""
    with plainly_composed(""), open_dict(config):
        for override in values:
            if override.delete:
                above, _, last = override.path.rpartition(".")
                del (OmegaConf.select(config, above) if above else config)[last]
            elif override.path == "arms":  # a table of arms replaces the table; other mappings are merged
                config.arms = override.value
            else:
                OmegaConf.update(config, override.path, override.value, merge=True)
    return config


def _resolved(tree: DictConfig) -> Config:
    with plainly_composed(""):
        resolved: Config = OmegaConf.to_container(tree, resolve=True, throw_on_missing=True)  # type: ignore[assignment]
    return resolved
