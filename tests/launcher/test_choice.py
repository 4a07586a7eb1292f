"""A launcher is chosen like any component, and never changes what comes out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import skg_bench
from tests.app.lab import declare, forget, write
from tests.app.test_cli import call

BACKWARDS = '''
    """A launcher of ten lines."""
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Backwards:
        """Carries out the last task first, in this process."""

        def carry_out(self, job, tasks, workers, folder, progress):
            run, results = job.begin(), {}
            for index in reversed(range(len(tasks))):
                results[index] = run(tasks[index], lambda _steps: None)
                with open("order", "a") as file:
                    file.write(f"{type(tasks[index]).__name__} {index}\\n")
            return [results[index] for index in range(len(tasks))]
'''
SMALL = ["users=7", "weeks=1", "cohort=4", "simulator.volume_spread=0.2", "simulator.messages_per_day=5",
         "arms={skg: [], bm25: [router=bm25], never: [policy=never]}"]  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with this launcher."""
    write(tmp_path / "toy_launcher" / "__init__.py", "")
    write(tmp_path / "toy_launcher" / "backwards.py", BACKWARDS)
    write(
        tmp_path / "toy_launcher" / "conf" / "launcher" / "backwards.yaml", "_target_: toy_launcher.backwards.Backwards"
    )
    declare(tmp_path, "toy_launcher")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    forget()
    yield tmp_path
    forget()


def shards(run: skg_bench.Run) -> dict[str, bytes]:
    """Every shard, by name."""
    return {str(file.relative_to(run.path)): file.read_bytes() for file in run.path.rglob("*.parquet")}


def test_a_launcher_of_another_package_gives_the_same_shards_to_the_byte(package: Path) -> None:
    there = skg_bench.run([*SMALL, "launcher=backwards", "out=there"])
    order = (package / "order").read_text("utf-8").splitlines()
    begun = [int(line.split()[1]) for line in order if line.startswith("Task ")]
    assert len(begun) > 4
    assert begun == sorted(begun, reverse=True)
    here = skg_bench.run([*SMALL, "workers=2", "out=here"])
    assert len(shards(here)) == 4 * len(here.arms)
    assert shards(there) == shards(here)
    assert (there.path / "summary.json").read_bytes() == (here.path / "summary.json").read_bytes()


def test_another_launcher_goes_on_with_the_same_run(package: Path) -> None:
    here = skg_bench.run([*SMALL, "out=here"])
    before = shards(here)
    manifest = here.manifest["identity"]
    for file in sorted((package / "here" / "turns").iterdir())[::2]:
        file.unlink()
    (package / "here" / "report.html").unlink()
    again = skg_bench.run([*SMALL, "launcher=backwards", "out=here"])
    assert again.manifest["identity"] == manifest
    assert shards(again) == before


def test_launchers_are_listed_and_an_arm_has_none_of_its_own(package: Path) -> None:
    code, out, _ = call("list", "launcher")
    assert code == 0
    assert "Processes of this machine" in out
    assert "Carries out the last task first" in out
    code, _, err = call("run", "--dry-run", "+arms.other=[launcher=backwards]")
    assert code == 2
    assert "all arms share launcher" in err
    code, _, err = call("run", "--dry-run", "launcher=loca")
    assert code == 2
    assert "did you mean 'local'?" in err
