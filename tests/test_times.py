"""`make test-times` finds where the CPU time goes, in worker processes and in their children, too."""

import re
import subprocess
import sys
from pathlib import Path

BURNING = "import time\nwhile time.process_time() < 0.4: pass\n"
TESTS = f"""
import subprocess, sys, time
def test_waits(): time.sleep(0.4)
def test_starts_a_child(): subprocess.run([sys.executable, "-c", {BURNING!r}], check=True)
"""


def test_a_child_counts_in_the_test_that_started_it_and_waiting_does_not(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "tests.times", "-p", "no:cacheprovider"]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([*command, tmp_path], cwd=root, capture_output=True, text=True, check=True)
    found = {name: float(value) for value, name in re.findall(r"([0-9.]+) s .*::(\w+)", done.stdout)}
    assert found["test_starts_a_child"] >= 0.4
    assert found["test_waits"] < 0.2
