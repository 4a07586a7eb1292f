"""Ready-made controls of an arm that learns: arms that differ from it in what a reviewer would ask about.

Each has the name of the arm and a suffix, and a contrast of the arm against it on the page.
"""

from collections.abc import Mapping
from typing import Any

from skg_bench.app.hydra_trees import Config
from skg_bench.core.errors import UsageError, nearest

NEEDED_OPTIONS = (("policy", "never"), ("policy", "uniform"), ("curator", "none"), ("curator", "sham"))
_ASKS = {
    "empty": "skills, against the same learning of which nothing is served",
    "frozen": "learning, against the book as it begins",
    "sham": "what is learned, against other texts and ratings by a coin",
    "coin": "ratings, against those of a coin",
    "random": "choice, against any skill of the book",
}


def with_controls(root: Config) -> Config:
    """The root, whose table of arms has the controls of each arm in `controls_of`, and a contrast for each.

    Raises UsageError for what is no list of arms, and for controls whose name is taken.
    """
    arms = root["controls_of"]
    if not isinstance(arms, list) or not all(isinstance(name, str) for name in arms):
        raise UsageError(f"controls_of={arms!r} must be a list of arms, as in controls_of=[live]")
    table, contrasts = dict(root["arms"]), list(root["contrasts"])
    for name, (arm, suffix) in controls_by_name(root).items():
        if arm not in root["arms"]:
            raise UsageError(f"controls_of has {arm!r}, which is no arm; {nearest(arm, root['arms'])}")
        if name in table:
            raise UsageError(f"controls_of has {arm!r}, and there is an arm {name!r} already; rename one of them")
        table[name] = [*root["arms"][arm], f"control={suffix}"]
        contrasts.append({"kind": "effect", "arm": arm, "reference": name, "asks": _ASKS[suffix]})
    return {**root, "arms": table, "contrasts": contrasts}


def controls_by_name(root: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Names of the controls of a root, with their arm and suffix. Ratings by a coin alone are a control where
    a world has strategies: where skills keep answers, `curator=sham` changes these, too.
    """
    suffixes = [suffix for suffix in _ASKS if suffix != "coin" or _strategies(root)]
    return {f"{arm}_{suffix}": (arm, suffix) for arm in dict.fromkeys(root["controls_of"]) for suffix in suffixes}


def control_arm(suffix: str, arm: str, config: Config, root: Mapping[str, Any], options: Mapping[str, Any]) -> Config:
    """Composition of a control of an arm with this composition. `options`: nodes of NEEDED_OPTIONS, by seam and name.

    Raises UsageError for an arm that has no curator, or one that learns nothing, that forks, and whose control would be
    the arm itself.
    """
    if config.get("curator") in (None, options["curator"]["none"]):
        raise UsageError(f"controls_of has {arm!r}, which learns nothing; name an arm with a curator other than none")
    if config.get("fork") is not None:
        raise UsageError(
            f"controls_of has {arm!r}, which forks: its controls would begin with the book of another arm; name one "
            "that learns from its first turn on"
        )
    if suffix in ("empty", "random"):
        name = "never" if suffix == "empty" else "uniform"
        if config["policy"] == options["policy"][name]:
            raise UsageError(
                f"controls_of has {arm!r}, whose policy is {name}: {arm}_{suffix} would be the same arm; name an arm "
                "that chooses what it serves"
            )
        return {**config, "policy": options["policy"][name]}
    if suffix == "frozen":
        return {**config, "curator": options["curator"]["none"]}
    texts = {**_strategies(root), **({"says": "own"} if suffix == "coin" else {})}
    return {**config, "curator": {**options["curator"]["sham"], "curator": config["curator"], "tags": "coin", **texts}}


def _strategies(root: Mapping[str, Any]) -> Config:
    """Parameters of `curator=sham` that draw texts of the world's strategies; empty: it has none."""
    simulator = root["simulator"]
    return {"says": "any", "strategies": simulator["strategies"]} if "strategies" in simulator else {}
