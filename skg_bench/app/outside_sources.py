"""Classes of somebody else that arms play: digests for a run's identity, and the commits of their repositories."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions, version
from pathlib import Path

from skg_bench.app.packages import Package, packages
from skg_bench.app.run_identity import package_state
from skg_bench.assistant.python import Python
from skg_bench.assistant.python.source import ClassSource
from skg_bench.core.arms import Arm
from skg_bench.core.package import CONF


def outside_digests(arms: Sequence[Arm]) -> Mapping[str, str]:
    """Class and digest of its source text, of each arm that plays one.

    Raises UsageError for a class whose text is not known.
    """
    return {
        f"source.{name}": " ".join(f"{source.target} {source.digest()}" for source in sources)
        for name, sources in _sources(arms)
    }


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


def _version(name: str) -> str | None:
    """Version of an installed package; None for a file, which is part of none."""
    # a second of processor time: the files of all that is installed are read
    distributions = packages_distributions().get(name, ()) if name.isidentifier() else ()
    return version(distributions[0]) if distributions else None
