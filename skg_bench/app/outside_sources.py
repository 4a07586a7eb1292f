"""Source texts of somebody else's classes that arms play: digests for a run's identity."""

from collections.abc import Mapping, Sequence

from skg_bench.assistant.python import Python
from skg_bench.core.arms import Arm


def outside_digests(arms: Sequence[Arm]) -> Mapping[str, str]:
    """Class and digest of its source text, of each arm that plays one.

    Raises UsageError for a class whose text is not known.
    """
    digests = dict[str, str]()
    for arm in arms:
        sources = [phase.assistant.source for phase in arm.phases if isinstance(phase.assistant, Python)]
        if sources:
            digests[f"source.{arm.name}"] = " ".join(f"{source.target} {source.digest()}" for source in sources)
    return digests
