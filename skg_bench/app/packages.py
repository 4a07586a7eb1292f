"""Sources of configuration and components: this package, and packages that declare themselves.

A package joins by the entry point group `skg_bench.components`; its value names a package or module beside which a
folder `conf/` lies, with the same groups as ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from skg_bench.core.errors import UsageError, nearest
from skg_bench.core.package import CONF, PACKAGE

ENTRY_POINTS = "skg_bench.components"
INSIDE = ("curator", "llm")  # groups whose options may stand inside of other components, at a key of the group's name


@dataclass(frozen=True)
class Package:
    """A trusted source of components."""

    name: str  # top-level package: a `_target_` starts with it
    root: Path  # its folder or file, hashed into the identity of a run
    conf: Path
    version: str | None = None  # of the distribution that declares it


@cache
def packages() -> tuple[Package, ...]:
    """Packages: this one first, then the declared ones by name."""
    core_package = Package("skg_bench", PACKAGE, CONF)
    others = (
        replace(_declared(point.name, point.module), version=point.dist.version if point.dist else None)
        for point in entry_points(group=ENTRY_POINTS)
    )
    return (core_package, *sorted(others, key=lambda package: package.name))


def _declared(name: str, module: str) -> Package:
    try:
        spec = find_spec(module)
        top = find_spec(module.split(".")[0])
    except ImportError:
        spec = top = None
    if spec is None or top is None:
        raise UsageError(
            f"entry point {name!r} of {ENTRY_POINTS} names {module!r}, which cannot be imported; reinstall it"
        )
    folders = [Path(folder) for folder in spec.submodule_search_locations or [str(Path(str(spec.origin)).parent)]]
    conf = next((folder / "conf" for folder in folders if (folder / "conf").is_dir()), None)
    if conf is None:
        raise UsageError(f"entry point {name!r} of {ENTRY_POINTS}: {module!r} has no folder conf/ beside it; add one")
    root = next(iter(top.submodule_search_locations or [str(top.origin)]))
    return Package(module.split(".")[0], Path(root), conf)


@cache
def groups() -> Mapping[str, Sequence[str]]:
    """Configuration groups and their options, of all packages."""
    catalogue = {
        folder.name: [file.stem for file in folder.glob("*.yaml")] for folder in CONF.iterdir() if folder.is_dir()
    }
    for package in packages()[1:]:
        for folder in sorted(f for f in package.conf.iterdir() if f.is_dir()):
            if folder.name not in catalogue:
                raise UsageError(f"{folder}: there is no group {folder.name!r}; {nearest(folder.name, catalogue)}")
            for file in folder.glob("*.yaml"):
                if file.stem in catalogue[folder.name]:
                    raise UsageError(f"{file}: {folder.name}={file.stem} exists already; give it another name")
                catalogue[folder.name].append(file.stem)
    return {name: tuple(sorted(options)) for name, options in sorted(catalogue.items())}


def trusted(target: str) -> bool:
    """Does `target` name something in a declared package?"""
    return any(target.startswith(f"{package.name}.") for package in packages())
