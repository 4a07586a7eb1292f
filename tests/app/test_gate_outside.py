"""The gate on an assistant of somebody else: a cache whose threshold is lowered fails, and the same one passes."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.gate_runs import ANCHORS
from tests.app.test_cli import ROOT, call

pytestmark = pytest.mark.usefixtures("unproven", "clean")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of somebody else, with a cache in one file."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    shutil.copy(ROOT / "experiments" / "elsewhere" / "stand_ins.py", folder / "cache.py")
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "Add a cache")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def cache(repository: Path, threshold: float) -> str:
    """The arms of the panel, with GPTCache's rule at a threshold of its own scale."""
    file = f"assistant.file={repository / 'cache.py'}:SemanticCache"
    parameters = f'"assistant.parameters={{threshold: {threshold}, scale: half}}"'
    return f'arms={{mine: [assistant=python, assistant.controls=false, "{file}", {parameters}], {ANCHORS}}}'


def test_a_cache_passes_beside_itself_and_fails_with_a_lower_threshold(
    play: Callable[..., Path], repository: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "mine.json")
    made = call("gate", "--baseline", file, "--update", "--arm", "mine", str(play(cache(repository, 0.9), "weeks=1")))
    assert made[0] == 0, made
    code, out, _ = call("gate", "--baseline", file, str(play(cache(repository, 0.9), "weeks=1", "cohort=50")))
    assert code == 0
    assert "the same bits, turn by turn" in out
    code, out, _ = call("gate", "--baseline", file, str(play(cache(repository, 0.6), "weeks=1")))
    assert code == 1, out
    assert "Gate FAILED" in out
    reasons = re.search(r"turns became worse \((.*?)\)", " ".join(out.split()))
    assert reasons is not None
    assert "does not answer this" in reasons[1]  # a class has no threshold, and `compare` calls it so
    assert "reason: does not answer this" in " ".join(out.split())
    assert [word for word in ("threshold", "wrong source", "shortlist", "score") if word in reasons[1]] == []


_DROPPING = """

class Dropping(SemanticCache):
    def answer(self, user, time, message, model):
        return super().answer(user, time, message, model).split("[")[0]
"""


def test_a_cache_that_drops_references_is_refused_for_that(
    play: Callable[..., Path], repository: Path, tmp_path: Path
) -> None:
    """A baseline with rules on hits is not at fault, though nobody can tell what such a cache answers from memory."""
    file = str(tmp_path / "mine.json")
    arms = cache(repository, 0.9)
    assert call("gate", "--baseline", file, "--update", "--arm", "mine", str(play(arms, "weeks=1")))[0] == 0
    with (repository / "cache.py").open("a", encoding="utf-8") as module:
        module.write(_DROPPING)
    code, _, err = call("gate", "--baseline", file, str(play(arms.replace(":SemanticCache", ":Dropping"), "weeks=1")))
    assert code == 2
    assert "gave answers of its own that the world cannot judge" in err
