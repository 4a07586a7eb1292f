"""`skg-bench gate` where the world changed: no verdict, but the runs that would answer."""

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app.compose import compose
from tests.app.gate_runs import PANEL, changed
from tests.app.test_cli import call, refused
from tests.runs import logs_alone

pytestmark = pytest.mark.usefixtures("unproven")


def test_a_change_of_the_world_hides_no_regression(baseline: Path, play: Callable[..., Path]) -> None:
    """No verdict on a lower threshold in a world where answers never get stale."""
    stale = play("policy.threshold=0.3", "simulator.answers_stale_hours=1000000")
    message = refused("gate", "--baseline", str(baseline), str(stale))
    assert "simulator.answers_stale_hours: null -> 1000000" in message
    assert "truth: the column answerable" in message


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("simulator.rated_share=0.5", "simulator.rated_share: 0.15 -> 0.5"),
        ("simulator.accept=0.9", "simulator.accept: 0.6 -> 0.9"),
        ("llm.right=0.99", "llm.right: 0.9 -> 0.99"),
        ("llm.usd_per_million_out=1.0", "llm.usd_per_million_out: 15.0 -> 1.0"),
        ("hit_latency_ms=0", "hit_latency_ms: 50 -> 0"),
        ("utility.wrong=5.0", "utility.wrong: 1.0 -> 5.0"),
    ],
)
def test_reactions_the_simulated_model_and_prices_belong_to_the_world(
    baseline: Path, play: Callable[..., Path], tmp_path: Path, override: str, key: str
) -> None:
    """As the manifest says, before any row is looked at."""
    composed = compose([*PANEL, override])
    other = shutil.copytree(play(), tmp_path / "other")
    changed(other, config=composed.root, compositions=composed.arms)
    assert f"\n  {key}\n" in refused("gate", "--baseline", str(baseline), str(other))


def carried_out(words: list[str]) -> int:
    """Exit code of a command; a run ends without tables and page, which no gate reads."""
    if words[0] != "run":
        return call(*words)[0]
    with logs_alone():
        skg_bench.run(words[1:], progress=False)
    return 0


def test_the_two_runs_that_it_names_answer(
    baseline: Path, play: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old system and the new one, both in the new world: its commands are run as they stand."""
    changed_world = play("simulator.rated_share=0.5", "policy.threshold=0.2")
    message = refused("gate", "--baseline", str(baseline), str(changed_world))
    lines = [line.strip() for line in message.splitlines() if line.startswith("  ") and " -> " not in line]
    monkeypatch.chdir(tmp_path)
    copied, *commands = (shlex.split(line) for line in lines)
    assert copied == ["cp", str(baseline), "new_world.json"]
    shutil.copy(baseline, "new_world.json")
    codes = []
    for words in commands:
        assert words[:3] == ["python", "-m", "skg_bench"]
        for run in Path("runs").glob("*"):
            changed(run, dirty=None)
        codes.append(carried_out(words[3:]))
    assert codes == [0, 0, 0, 1]
    old = json.loads(Path("runs/old_system/manifest.json").read_text("utf-8"))
    assert (old["config"]["simulator"]["rated_share"], old["config"]["policy"]["threshold"]) == (0.5, 0.5)


def test_users_who_forget_earlier_advice_are_another_world(
    baseline: Path, play: Callable[..., Path], tmp_path: Path
) -> None:
    """How users react is no part of the system, although an arm says it."""
    copy = shutil.copytree(play("policy.threshold=0.3"), tmp_path / "copy")
    compositions = skg_bench.Run(copy).manifest["compositions"]
    compositions["skg"] |= {"mood": "fresh"}
    run = changed(copy, compositions=compositions)
    assert 'mood: "own" -> "fresh"' in refused("gate", "--baseline", str(baseline), str(run))
