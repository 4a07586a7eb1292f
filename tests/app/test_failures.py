"""An exception of a plugin names arm, component, user and turn."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import skg_bench
from tests.app.lab import declare, forget, write
from tests.app.test_cli import ENVIRONMENT

BROKEN = '''
    """Routers that fail."""
    from dataclasses import dataclass
    from typing import ClassVar
    from skg_bench.core.types import Query, Shortlist, Skillbooks
    from skg_bench.router.maxsim import MaxSim

    @dataclass(frozen=True)
    class Broken:
        """Fails at a turn."""
        turn: int
        top_k: int = 5
        sees_truth: ClassVar[bool] = False

        def route(self, query: Query, books: Skillbooks) -> Shortlist:
            if query.turn == self.turn:
                raise IndexError("list index out of range")
            return MaxSim(self.top_k).route(query, books)
'''
ARMS = "arms={skg: [], bad: [router=broken], worse: [router=broken, policy=always], never: [policy=never]}"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write(tmp_path / "broken_parts" / "__init__.py", "")
    write(tmp_path / "broken_parts" / "routing.py", BROKEN)
    write(
        tmp_path / "broken_parts" / "conf" / "router" / "broken.yaml",
        "_target_: broken_parts.routing.Broken\nturn: 0\ntop_k: 5\n",
    )
    declare(tmp_path, "broken_parts")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "broken_parts"]:
        del sys.modules[name]
    forget()


def busiest(run: skg_bench.Run) -> tuple[int, int]:
    """The user with the most turns, and the first of them that nobody else has."""
    turns = np.bincount(run.turns("never", ["user"])["user"].to_numpy())
    *_, others, most = sorted(turns.tolist())
    assert most > others
    return int(turns.argmax()), others


def test_an_exception_of_a_plugin_names_arm_component_user_and_turn(broken: Path, tiny_run: skg_bench.Run) -> None:
    user, turn = busiest(tiny_run)
    with pytest.raises(IndexError, match="list index out of range") as caught:
        skg_bench.run(["users=4", "weeks=2", "workers=1", ARMS, f"+arms.bad=[router=broken,router.turn={turn}]",
                       f"+arms.worse=[router=broken,router.turn={turn},policy=always]"])  # fmt: skip
    (note,) = caught.value.__notes__
    assert note == f"arm bad: router broken_parts.routing.Broken.route failed for user {user}, turn {turn}"


def test_a_plugin_that_exits_is_said_to_do_so(broken: Path) -> None:
    """Its worker ended without a word, and the run said that three were killed or out of memory."""
    file = broken / "broken_parts" / "routing.py"
    file.write_text(file.read_text("utf-8").replace('IndexError("list index out of range")', "SystemExit(0)"), "utf-8")
    says = r"broken_parts\.routing\.Broken\.route calls sys\.exit\(0\), which would end the worker without a word"
    with pytest.raises(skg_bench.UsageError, match=says):
        skg_bench.run(["users=2", "weeks=1", "workers=1", "arms={bad: [router=broken]}", "reference=bad"])


def test_in_a_worker_and_on_the_command_line_it_says_so_too(broken: Path, tiny_run: skg_bench.Run) -> None:
    user, turn = busiest(tiny_run)
    words = ["users=4", "weeks=2", "workers=2", "cohort=4", f"arms={{bad: [router=broken, router.turn={turn}]}}",
             "reference=bad"]  # fmt: skip
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{broken}:{ENVIRONMENT['PYTHONPATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "skg_bench", "run", *words],
        cwd=broken, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "IndexError: list index out of range" in done.stderr
    assert f"arm bad: router broken_parts.routing.Broken.route failed for user {user}, turn {turn}" in done.stderr


def test_what_fails_for_all_users_together_only_names_all_of_them(broken: Path) -> None:
    file = broken / "broken_parts" / "routing.py"
    file.write_text(file.read_text("utf-8").replace("query.turn == self.turn", "len(query.text) > 3"), "utf-8")
    with pytest.raises(IndexError) as caught:
        skg_bench.run(["users=4", "weeks=2", "workers=1", "arms={bad: [router=broken]}", "reference=bad"])
    (note,) = caught.value.__notes__
    assert note == "arm bad: router broken_parts.routing.Broken.route failed for one of the 4 users 0 to 3, turn 0"
