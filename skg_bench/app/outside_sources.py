"""Classes of somebody else that arms play: digests for a run's identity, and the commits of their repositories."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from skg_bench.app.packages import Package, packages
from skg_bench.app.run_identity import package_state
from skg_bench.asking.asking import components_within
from skg_bench.assistant.python import Python
from skg_bench.assistant.python.source import ClassSource
from skg_bench.core.abilities import StartsPrograms
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError
from skg_bench.core.package import CONF, program_digest


def outside_digests(arms: Sequence[Arm]) -> Mapping[str, str]:
    """Class and digest of its source text, of each arm that plays one, and name and digest of each file that starts a
    program.

    Raises UsageError for a class whose text is not known, and for a file that cannot be read, and a peer without a
    command.
    """
    classes = {
        f"source.{name}": " ".join(f"{source.target} {source.digest()}" for source in sources)
        for name, sources in _sources(arms)
    }
    return {**classes, **{f"program.{arm.name}": text for arm in arms if (text := _programs(arm))}}


def outside_packages(arms: Sequence[Arm]) -> dict[str, dict[str, str | None]]:
    """Version, commit and hash of uncommitted changes of what the classes lie in, by name; null: git knows none."""
    declared = {package.name for package in packages()}
    roots = dict[str, Path]()  # each is asked once: versions and git take a third of a second
    for _, sources in _sources(arms):
        for source in sources:
            root = source.root()
            name = source.kind().__module__.partition(".")[0] if source.file is None else root and root.name
            if root is not None and name and name not in declared:
                roots[name] = root
    return {name: package_state(Package(name, root, CONF, _version(name))) for name, root in roots.items()}


def _sources(arms: Sequence[Arm]) -> Iterator[tuple[str, list[ClassSource]]]:
    """Arms that play classes, and these."""
    for arm in arms:
        sources = [phase.assistant.source for phase in arm.phases if isinstance(phase.assistant, Python)]
        if sources:
            yield arm.name, sources


def _programs(arm: Arm) -> str:
    """Files that start programs of an arm, each with its digest; empty: it has none."""
    try:
        parts = [part for part in components_within(arm) if isinstance(part, StartsPrograms)]
        files = dict.fromkeys(file for part in parts for file in part.programs)
    except UsageError as error:
        raise UsageError(f"arm {arm.name!r}: {error}") from error
    return " ".join(f"{file.name} {program_digest(file)[:16]}" for file in files)


def _version(name: str) -> str | None:
    if name not in sys.modules and not (name.isidentifier() and find_spec(name)):
        return None  # a folder that is not installed: the lists of all distributions take up to a second to read
    distributions = packages_distributions().get(name, ())
    return version(distributions[0]) if distributions else None
