"""Components of a seam that escape the suite for want of a yaml."""

import importlib
import pkgutil

from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.targets import described_components
from tests.conformance.suite import cases, members, protocol


def unlisted(seam: str) -> list[str]:
    """Classes below the seam's package that do what its Protocol says, and that no yaml names."""
    seam_protocol, package = protocol(seam), importlib.import_module(f"skg_bench.{seam}")
    assert seam_protocol is not None
    options = [case.option for case in cases() if case.seam == seam]
    nodes = hydra_trees().options(seam, options)
    named = {chain[-1][1] for node in nodes for _, chain, _ in described_components(seam, node)}
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    classes = {
        f"{module.__name__}.{name}"
        for module in modules
        for name, made in vars(module).items()
        if isinstance(made, type) and made.__module__ == module.__name__ and not name.startswith("_")
        if not vars(made).get("_is_protocol")  # what curators inherit
        if all(hasattr(made, member) or member in made.__annotations__ for member in members(seam_protocol))
    }
    return sorted(classes - named)
