"""`run --check`, `part=I/N`, a second process: what the command line says of a run folder that is not whole."""

import json
import shutil
from collections.abc import Callable, Sequence
from itertools import cycle, product
from pathlib import Path

import pytest

import skg_bench
from skg_bench.analysis import report, summary
from skg_bench.app import launch, run_check
from skg_bench.core.errors import UsageError
from skg_bench.runfolder import manifest, shards
from skg_bench.runfolder.lock import held
from skg_bench.runfolder.run import Run
from tests.app.test_cli import call, refused
from tests.runs import accept, logs_alone, rewritten

EVEN = ("simulator.messages_per_day=5", "simulator.volume_spread=0.1")  # the busiest user takes the time
TINIEST = (
    "workers=1", "users=2", "weeks=1", "arms={skg: [policy.threshold=0.3], never: [policy=never]}", *EVEN,
)  # fmt: skip
SELDOM = "simulator.messages_per_day=0.1"  # where users are many
TORN = [  # each file in one way, and one in all
    *product(["turns/skg.0000000.parquet"], ["lost", "cut", "flipped"]),
    *zip(["learning/never.0000000.parquet", *manifest.TABLES], cycle(["flipped", "lost", "cut"])),
]


def files(folder: Path) -> dict[str, bytes]:
    """All shards and tables."""
    names = [*folder.rglob("*.parquet"), folder / "summary.json", folder / "curves.csv"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in names}


@pytest.fixture(scope="session")
def tiny_run(once: Callable[..., Path]) -> skg_bench.Run:
    """Two users, one week, two arms: it is made again in nearly all tests."""
    return skg_bench.Run(once("tiniest", lambda folder: skg_bench.run([*TINIEST, f"out={folder}"])))


@pytest.fixture
def tiny() -> tuple[str, ...]:
    """Overrides of `tiny_run`, its folder aside."""
    return TINIEST


@pytest.fixture
def copy(tiny_run: skg_bench.Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run.path, tmp_path / "copy"))


def test_a_whole_run_is_said_to_be_whole_by_its_folder_and_by_its_command(copy: Path, tiny: tuple[str, ...]) -> None:
    for words in ([str(copy)], [*tiny, f"out={copy}"]):
        code, out, _ = call("run", "--check", *words)
        assert code == 0
        assert "2 arms, 8 files of logs" in out
        assert "all is as it was written" in out


@pytest.mark.parametrize(("name", "how"), TORN)
def test_a_file_that_is_lost_cut_or_flipped_is_named_and_made_again(
    copy: Path, tiny: tuple[str, ...], name: str, how: str
) -> None:
    before, file = files(copy), copy / name
    whole = file.read_bytes()
    if how == "lost":
        file.unlink()
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 4]) + whole[middle + 1 :]
        file.write_bytes(whole[:middle] if how == "cut" else flipped)
    code, out, _ = call("run", "--check", str(copy))
    assert code == 1
    assert str(file) in out
    assert " MB: 1 fault\n" in out
    assert "run the same command again: it makes this file again" in out
    code, out, _ = call("run", *tiny, f"out={copy}")
    assert code == 0
    assert f"{file} is " in out
    assert "it is made again" in out
    assert files(copy) == before
    assert call("run", "--check", str(copy))[0] == 0


@pytest.mark.parametrize("how", ["lost", "changed"])
def test_a_manifest_that_is_lost_or_changed_is_written_again(copy: Path, tiny: tuple[str, ...], how: str) -> None:
    before, file = files(copy), copy / "manifest.json"
    if how == "lost":
        file.unlink()
    else:
        file.write_text(file.read_text("utf-8").replace('"threshold": 0.3', '"threshold": 0.4'), "utf-8")
        assert "is not as it was written" in refused("compare", str(copy))
        assert call("run", "--check", str(copy))[0] == 1
    assert call("run", *tiny, f"out={copy}")[0] == 0
    assert files(copy) == before
    assert call("run", "--check", str(copy))[0] == 0


def test_a_manifest_that_is_lost_is_not_written_again_over_shards_of_another_run(
    copy: Path, tiny: tuple[str, ...]
) -> None:
    (copy / "manifest.json").unlink()
    assert "holds no run; name another folder" in refused("run", *tiny, "seed=1", f"out={copy}")


def test_rows_that_do_not_fit_to_one_another_are_found(copy: Path) -> None:
    rewritten(shards.path(copy, "turns", "skg", 0), lambda table: table.slice(1))
    code, out, _ = call("run", "--check", str(copy))
    assert code == 1
    assert "arm skg: user 0 lacks a turn before turn 1, or has it twice" in out


def test_tables_that_the_logs_do_not_say_are_found(copy: Path) -> None:
    file = copy / "summary.json"
    content = json.loads(file.read_text("utf-8"))
    content["arms"]["skg"]["utility"]["mean"] += 0.1
    file.write_text(json.dumps(content), "utf-8")
    accept(copy, "summary.json")
    code, out, _ = call("run", "--check", str(copy))
    assert code == 1
    assert f"{file} is not what the logs say" in out


def test_what_is_no_folder_of_a_run_is_refused(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    assert "this is no folder of a run" in refused("run", "--check", "nowhere")
    assert "is not there" in refused("run", "--check", *tiny)
    assert "--check runs nothing" in refused("run", "--check", "--dry-run", *tiny)


def test_parts_make_the_same_bytes_and_the_last_one_the_tables(
    tiny_run: skg_bench.Run, elsewhere: Path, tiny: tuple[str, ...]
) -> None:
    for part, last in (("1/2", False), ("0/2", True)):
        assert not Path("here/summary.json").exists()
        code, out, _ = call("run", *tiny, "out=here", f"part={part}")
        assert code == 0
        assert "made again" not in out
        assert ("other parts have 1 shard to make" in out) != last
    assert files(Path("here")) == files(tiny_run.path)
    assert call("run", *tiny, "out=here")[1].count("is finished: nothing is left to simulate") == 1


def test_a_run_goes_on_from_its_parts(tiny_run: skg_bench.Run, elsewhere: Path, tiny: tuple[str, ...]) -> None:
    assert call("run", *tiny, "out=here", "part=0/2")[0] == 0
    timings = Path("here/timings.json").read_bytes()
    assert call("run", *tiny, "out=here", "part=0/2")[0] == 0
    assert Path("here/timings.json").read_bytes() == timings
    assert not Run("here").finished
    assert call("run", "--check", "here")[0] == 0
    assert call("run", *tiny, "out=here")[0] == 0
    assert files(Path("here")) == files(tiny_run.path)


@pytest.fixture
def half(elsewhere: Path, tiny: tuple[str, ...], once: Callable[..., Path]) -> tuple[str, ...]:
    """The command of a run of 260 users, whose first 256 are there, with tables and page of theirs."""
    words = ("run", *(text for text in tiny if not text.startswith(("users=", "simulator."))), "users=260", SELDOM)

    def make(folder: Path) -> None:
        assert call(*words, f"out={folder}", "part=0/2")[0] == 0
        assert call("report", str(folder))[0] == 0

    shutil.copytree(once("half", make), "here")
    assert Run("here").to_pandas()["n_users"].max() == 256
    return (*words, "out=here")


def test_tables_of_the_users_so_far_are_not_those_of_the_run(
    half: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_given: object) -> Run:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(launch, "write_outputs", killed)
        call(*half)
    assert Run("here").finished
    with pytest.raises(UsageError, match=r"summary\.json is not as it was written"):
        Run("here").to_pandas()
    assert call(*half)[0] == 0
    assert Run("here").to_pandas()["n_users"].max() == 260


def test_a_report_of_an_unfinished_run_is_of_the_users_who_are_there_now(
    half: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_given: object) -> Run:
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "_end", killed)
    call(*half)
    assert not Run("here").finished
    assert call("report", "here")[0] == 0
    assert Run("here").to_pandas()["n_users"].max() == 260


def test_a_report_that_began_before_the_run_ended_leaves_its_tables_alone(half: tuple[str, ...]) -> None:
    early = Run("here")
    assert not early.finished
    assert call(*half)[0] == 0
    before = files(Path("here"))
    with pytest.raises(UsageError, match="went on while its logs were read; give the same command again"):
        summary.write_summary(early)
    with pytest.raises(UsageError, match="went on while its logs were read; give the same command again"):
        report.write_page(early)
    assert files(Path("here")) == before
    assert call("run", "--check", "here")[0] == 0


def test_a_shard_that_a_finished_run_lost_is_missing_also_while_it_is_mended(copy: Path) -> None:
    manifest.write_manifest(copy, {**Run(copy).manifest, "incomplete": True})
    shards.path(copy, "turns", "skg", 0).unlink()
    with pytest.raises(UsageError, match=r"skg\.0000000\.parquet is missing"):
        Run(copy).turns("skg")


def test_an_attempt_without_turns_leaves_the_timings_of_the_run(copy: Path, tiny: tuple[str, ...]) -> None:
    before = (copy / "timings.json").read_bytes()
    for words in ((), ("part=0/2",)):
        (copy / "report.html").unlink()
        code, out, _ = call("run", *tiny, f"out={copy}", *words)
        assert code == 0
        assert "report.html is missing: it is made again" in out
        assert (copy / "timings.json").read_bytes() == before
    assert call("run", "--check", str(copy))[0] == 0


def test_a_part_says_of_its_own_shards_what_it_makes_again(
    tiny_run: skg_bench.Run, copy: Path, tiny: tuple[str, ...]
) -> None:
    before = files(copy)
    manifest.write_manifest(copy, {k: v for k, v in Run(copy).manifest.items() if k != "shards"} | {"incomplete": True})
    torn = [shards.path(copy, "turns", arm, 0) for arm in tiny_run.arms]
    for file in torn:
        file.write_bytes(file.read_bytes()[:-9])
    code, out, _ = call("run", *tiny, f"out={copy}", "part=0/2")
    assert code == 0
    assert [file for file in torn if f"{file} is torn" in out] == torn[:1]
    assert "other parts have 1 shard to make" in out
    assert call("run", *tiny, f"out={copy}")[0] == 0
    assert files(copy) == before


@pytest.mark.parametrize("part", ["3/3", "-1/3", "1", "1/0", "a/b"])
def test_a_part_that_is_none_is_refused(elsewhere: Path, tiny: tuple[str, ...], part: str) -> None:
    assert "0/3, 1/3 and 2/3 for three parts" in refused("run", *tiny, f"part='{part}'")


def test_a_run_that_another_process_works_on_is_refused_with_its_name(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    Path("here").mkdir()
    with held(Path("here"), "run"):
        message = refused("run", *tiny, "out=here")
        assert "is being run by process" in message
        assert "run the same command again" in message
    assert not any(Path("here").iterdir())
    with held(Path("here"), "part 0/2"):
        assert "part 0/2" in refused("run", *tiny, "out=here", "part=0/2")
        assert call("run", *tiny, "out=here", "part=1/2")[0] == 0


# -------------------------------------------------------------------------------------------- a look in mid-run


def test_a_look_while_a_process_writes_tables_is_no_alarm(copy: Path) -> None:
    for name in manifest.TABLES:
        (copy / name).unlink()
    with held(copy, "tables"):
        code, out, _ = call("run", "--check", str(copy))
        assert code == 0, out
        assert "at work, tables and page not looked at, 2 arms, 8 files of logs" in out
    code, out, _ = call("run", "--check", str(copy))
    assert code == 1
    assert "summary.json is missing" in out


def test_a_torn_shard_is_told_also_while_a_process_works_on_the_run(copy: Path) -> None:
    file = next((copy / "turns").iterdir())
    file.write_bytes(file.read_bytes()[:-9])
    with held(copy, "run"):
        code, out, _ = call("run", "--check", str(copy))
    assert (code, str(file) in out) == (1, True)


def test_what_is_gone_at_the_next_look_was_no_fault(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where `report` writes a table and then its digest."""
    table = copy / "summary.json"
    whole = table.read_bytes()
    table.write_bytes(b"{}")
    monkeypatch.setattr(run_check, "sleep", lambda _seconds: table.write_bytes(whole))
    code, out, _ = call("run", "--check", str(copy))
    assert (code, "all is as it was written" in out) == (0, True), out


def test_shards_that_come_between_two_reads_are_not_held_against_the_turns(
    tiny: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (text for text in tiny if not text.startswith(("users=", "arms=", "simulator.")))
    with logs_alone():
        run = skg_bench.run([*kept, "users=260", SELDOM, "arms={never: [policy=never]}", f"out={tmp_path / 'run'}"])
    numbers, looks = Run.numbers, iter(range(1000))

    def growing(run: Run, arm: str, users: Sequence[int] | None = None) -> list[int]:
        return numbers(run, arm, users)[: 1 if next(looks) < 2 else None]

    monkeypatch.setattr(Run, "numbers", growing)
    assert list(run_check._misfits(run)) == []


def test_a_run_in_the_place_of_a_log_is_said_to_be_one(tiny_run: skg_bench.Run) -> None:
    """Once, it was said to be a folder of tables, of which one had to be named."""
    assert f"{tiny_run.path} is a run, and no log: the command that made it goes on" in refused(
        "run", str(tiny_run.path)
    )


def test_turns_are_said_to_be_those_of_all_parts(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    """Once, an array job said of each of its parts that it simulates the whole run."""
    ends = {part: call("run", "--dry-run", *tiny, *part)[1].splitlines()[-1] for part in ((), ("part=1/2",))}
    assert ends[()].endswith(" turns")
    assert ends["part=1/2",] == f"{ends[()]} in all parts"


@pytest.mark.parametrize("words", [
    ("compare", "here"), ("skills", "here", "--arm", "skg"), ("plan", "here", "--arm", "skg", "--effect", "0.5"),
    ("estimate", "here", "--arm", "skg", "--target", "never=[policy=never]"),
])  # fmt: skip
def test_figures_of_an_unfinished_run_are_said_to_be_so(half: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Once, `compare` gave a verdict on the users who were there, and named no others."""
    code, out, _ = call(*words)
    assert code == 0
    assert "here is unfinished, with 256 of 260 users: its `skg-bench run` command goes on with it" in out
