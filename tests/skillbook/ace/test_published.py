"""The published packages as live oracles: random cases end in the same books. They run where `make peers-ace` was."""

import subprocess
import time

import pytest

from skg_bench.skillbook.ace.book import Era
from skg_bench.skillbook.ace.operations import AceBatch
from tests.skillbook.ace.garbage import case
from tests.skillbook.ace.live import VERSIONS, difference, ours, published, python
from tests.skillbook.ace.play import cases

ERAS: list[Era] = ["v1", "v09", "v2"]
STEPS = 5


def environment(era: Era) -> None:
    """Skips without the package's environment; another version in it is a mistake."""
    if not python(era).exists():
        pytest.skip(f"ace-framework {VERSIONS[era]} has no environment here: make peers-ace")
    asked = "from importlib.metadata import version; print(version('ace-framework'))"
    done = subprocess.run([python(era), "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == VERSIONS[era]


def differences(era: Era, first: int, count: int) -> tuple[list[str], int]:
    """What differs in so many random cases, and how many batches they held."""
    random = [case(seed, era, STEPS) for seed in range(first, first + count)]
    theirs = list(published(era, random))
    assert len(theirs) == count
    left = [
        f"{mine['uid']}: {text}"
        for mine, their in zip(random, theirs, strict=True)
        if (text := difference(their, ours(mine)))
    ]
    return left, sum(step["op"].startswith("apply") for mine in random for step in mine["steps"])


@pytest.mark.parametrize("era", ERAS)
def test_the_packages_still_do_what_they_were_recorded_to_do(era: Era) -> None:
    environment(era)
    recorded = [entry for file in ("cases.jsonl", "more.jsonl") for entry in cases(file) if entry["schema"] == era]
    assert list(published(era, recorded)) == [entry["expect"] for entry in recorded]


@pytest.mark.req("U09")
def test_a_batch_of_operations_alone_is_a_type_error_there_and_here() -> None:
    with pytest.raises(TypeError, match="reasoning"):
        AceBatch(operations=())  # type: ignore[call-arg]
    environment("v2")
    code = "from ace.core.skillbook import UpdateBatch; UpdateBatch(operations=[])"
    done = subprocess.run([python("v2"), "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("missing 1 required positional argument: 'reasoning'\n")


@pytest.mark.req("U08")
@pytest.mark.parametrize("era", ERAS)
def test_random_cases_end_in_the_books_of_the_published_package(era: Era) -> None:
    environment(era)
    assert differences(era, 0, 400)[0] == []


@pytest.mark.soak
@pytest.mark.parametrize("era", ERAS)
def test_many_random_cases_end_in_the_same_books_at_5000_batches_a_minute(era: Era) -> None:
    environment(era)
    begun = time.perf_counter()
    left, batches = differences(era, 1_000_000, 5_000)
    assert left == []
    assert batches / (time.perf_counter() - begun) > 5_000 / 60
