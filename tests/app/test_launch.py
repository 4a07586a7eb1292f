"""Same identity: go on, or do nothing. Another identity: say what differs, and touch nothing."""

import errno
import json
import shlex
from pathlib import Path

import pytest
from markupsafe import escape

import skg_bench
from skg_bench.app import launch, outside_sources, run_identity
from skg_bench.app.compose import compose
from skg_bench.app.prepared_run import PreparedRun
from skg_bench.core.errors import UsageError
from skg_bench.core.package import DATA
from tests.runs import save


def job(*texts: str) -> PreparedRun:
    return launch.prepare(compose(texts))


def interrupt(done: int, total: int) -> None:
    """Progress that stops when some cohorts are done and others are not; with cohort=1."""
    if done < total and list(Path().glob("*/pieces/*.piece")):
        raise KeyboardInterrupt


def interrupt_at_once(_done: int, _total: int) -> None:
    """Progress that stops before the first turn."""
    raise KeyboardInterrupt


def files(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_a_run_leaves_the_files_that_the_design_promises(tiny_run: skg_bench.Run, tiny: tuple[str, ...]) -> None:
    names = {file.name for file in tiny_run.path.iterdir()}
    assert names == {
        "manifest.json", "timings.json", "turns", "updates", "feedback", "learning", "summary.json", "curves.csv",
        "report.html",
    }  # fmt: skip
    manifest = tiny_run.manifest
    assert manifest["incomplete"] is False
    assert manifest["arms"] == ["skg", "never"]
    counted = [text for text in tiny if text != "workers=1"]  # nor `out`: they change nothing that comes out
    assert manifest["overrides"] == counted
    assert manifest["config"]["users"] == manifest["users"] == 4
    assert manifest["compositions"]["skg"]["policy"]["threshold"] == 0.3
    assert set(manifest["data"]) == {"simulator", "embedder"}
    assert {"python", "numpy", "skg-bench"} <= set(manifest["versions"])
    page = (tiny_run.path / "report.html").read_text("utf-8")
    assert escape(shlex.join(["skg-bench", "run", *counted])) in page


def test_lists_of_all_distributions_are_not_read_for_a_folder_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They take up to a second in each run of somebody's file."""
    assert outside_sources._version("pytest") == pytest.__version__
    monkeypatch.delattr(outside_sources, "packages_distributions")
    assert outside_sources._version("not_installed") is outside_sources._version("no-name.at all") is None


def test_a_finished_run_is_returned_untouched(tiny_run: skg_bench.Run, tiny: tuple[str, ...]) -> None:
    before = files(tiny_run.path)
    again = skg_bench.run([*tiny, f"out={tiny_run.path}", "workers=2", "cohort=3"])
    assert again.path == tiny_run.path
    assert files(tiny_run.path) == before


def test_identity_ignores_how_a_run_is_made_and_nothing_else(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    name = job(*tiny).out
    assert name.parent == Path("runs")
    assert name.name.startswith("first-")
    assert job(*tiny, "workers=2", "cohort=7").out == name
    assert job(*tiny, "out=x").identity[:8] == name.name[-8:]
    others = ["seed=1", "users=5", "weeks=3", "reranker.l2=2.0", "reference=skg", "~arms.skg", "utility.wrong=2.0"]
    names = {job(*tiny, other).out for other in others}
    assert len(names | {name}) == len(others) + 1


def test_identity_covers_the_code(monkeypatch: pytest.MonkeyPatch, elsewhere: Path, tiny: tuple[str, ...]) -> None:
    before = job(*tiny).identity
    monkeypatch.setattr(run_identity, "code_digest", lambda: "another")
    assert job(*tiny).identity != before


def test_another_identity_in_an_explicit_folder_is_refused_with_the_keys_that_differ(
    tiny_run: skg_bench.Run, tiny: tuple[str, ...]
) -> None:
    before = files(tiny_run.path)
    with pytest.raises(UsageError) as error:
        skg_bench.run([*tiny, f"out={tiny_run.path}", "seed=5", "reranker.l2=2.0"])
    message = str(error.value)
    assert "seed: 0 -> 5" in message
    assert "reranker.l2: 1.0 -> 2.0" in message
    assert "compositions.skg.reranker.l2: 1.0 -> 2.0" in message
    assert "users" not in message.split("differs:")[1]
    assert files(tiny_run.path) == before


def test_a_folder_that_holds_something_else_is_refused(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    Path("notes").mkdir()
    Path("notes/diary.txt").write_text("mine", "utf-8")
    Path("file").write_text("mine", "utf-8")
    for out, reason in (("notes", "is not empty and holds no run"), ("file", "is a file"), ("file/x", "is a file")):
        with pytest.raises((UsageError, NotADirectoryError), match=reason if out != "file/x" else "file"):
            skg_bench.run([*tiny, f"out={out}"])
    assert Path("notes/diary.txt").read_text("utf-8") == "mine"


def test_a_new_folder_of_a_run_or_a_cell_is_open_to_its_owner_only(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    Path("there").mkdir()
    Path("there").chmod(0o755)
    jobs = [job(*tiny, "out=runs/named"), launch.prepare(compose(tiny), Path("cells")), job(*tiny, "out=there")]
    for one in jobs:
        with pytest.raises(KeyboardInterrupt):
            launch.start(one, interrupt_at_once)
    assert [one.out.stat().st_mode & 0o777 for one in jobs] == [0o700, 0o700, 0o755]  # one that is there keeps its mode


def test_a_run_begun_with_other_versions_is_not_gone_on_with(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    with pytest.raises(KeyboardInterrupt):
        skg_bench.run([*tiny, "out=old", "cohort=1"], progress=interrupt)
    path = Path("old/manifest.json")
    manifest = json.loads(path.read_text("utf-8"))
    manifest["versions"]["numpy"] = "1.0"
    save(Path("old"), manifest)
    with pytest.raises(UsageError, match=r"numpy 1\.0, now 2"):
        job(*tiny, "out=old")


def test_a_torn_manifest_is_said_to_be_torn(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    Path("out").mkdir()
    Path("out/manifest.json").write_text('{"schema": 1, "ident', "utf-8")
    with pytest.raises(
        UsageError, match=r"manifest\.json is no whole JSON: .*; the command that made the run writes it again"
    ):
        job(*tiny, "out=out")


def test_an_interrupted_run_goes_on_where_it_was_and_ends_the_same(
    tiny_run: skg_bench.Run, tiny: tuple[str, ...], elsewhere: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        skg_bench.run([*tiny, "out=cut", "cohort=1"], progress=interrupt)
    assert json.loads(Path("cut/manifest.json").read_text("utf-8"))["incomplete"] is True
    assert list(Path("cut/pieces").glob("*.piece"))
    assert job(*tiny, "out=cut").state == "unfinished"
    seen: list[int] = []
    run = skg_bench.run([*tiny, "out=cut"], progress=lambda done, total: seen.append(done))
    assert seen[0] > 0
    assert not Path("cut/pieces").exists()
    for name in ("summary.json", "curves.csv"):
        assert (run.path / name).read_bytes() == (tiny_run.path / name).read_bytes()
    assert job(*tiny, "out=cut").state == "finished"


def test_a_full_disk_while_the_page_is_written_loses_nothing(
    tiny: tuple[str, ...], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skg_bench.analysis import report

    def full(run: skg_bench.Run) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(run.path / "report.html"))

    with monkeypatch.context() as patch:
        patch.setattr(report, "write_page", full)
        with pytest.raises(OSError, match="No space left"):
            skg_bench.run([*tiny, "out=full"])
    assert job(*tiny, "out=full").state == "unfinished"
    seen: list[tuple[int, int]] = []
    skg_bench.run([*tiny, "out=full"], progress=lambda done, total: seen.append((done, total)))
    assert all(done == total for done, total in seen)
    assert job(*tiny, "out=full").state == "finished"


def test_a_manifest_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    run_identity.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        run_identity.write_json(path, {"a": 2, "b": object()})
    assert json.loads(path.read_text("utf-8")) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.json"]


def test_turns_are_estimated_from_the_first_users(
    tiny_run: skg_bench.Run, tiny: tuple[str, ...], elsewhere: Path
) -> None:
    actual = sum(tiny_run.turns(arm, ["turn"]).num_rows for arm in tiny_run.arms)
    assert job(*tiny).turns() == actual  # of four users all are looked at


def test_a_fork_and_a_freeze_to_which_nobody_comes_are_said(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    """Once, such an arm was the one without, under a name that says otherwise."""
    late = ("+arms.late=[fork=skg@90000,policy=never]", "+arms.frozen=[freeze=all,freeze_at=90000]")
    said = job(*tiny, *late, "+arms.soon=[freeze=all,freeze_at=1]").cautions()
    assert [line.partition(", and")[0] for line in said if "nothing" in line] == [
        "arm 'late' forks at turn 90,000", "arm 'frozen' stops to learn at turn 90,000",
    ]  # fmt: skip
    assert all("the busiest of 4 users has" in line for line in said if "90,000" in line)


@pytest.mark.parametrize(("given", "shown"), [("TOKEN", "'TOKEN'"), ("null", "None"), ("[1]", r"\[1\]")])
def test_variables_that_are_no_list_of_names_are_refused(elsewhere: Path, given: str, shown: str) -> None:
    """Once, one name was read letter by letter, so that no worker saw the variable."""
    with pytest.raises(UsageError, match=f"launcher.variables={shown} must be a list, each a text"):
        job("profile=smoke", f"launcher.variables={given}")


def test_runs_compare_from_python(tiny_run: skg_bench.Run) -> None:
    compared = skg_bench.compare(tiny_run.path, reference="never")
    assert {row.arm for row in compared.rows} == {"skg"}
    with pytest.raises(UsageError, match="no arm"):
        skg_bench.compare(tiny_run, reference="nobody")
    with pytest.raises(UsageError, match="no run directory"):
        skg_bench.compare(tiny_run.path / "turns")


def test_a_run_is_known_by_the_facts_that_a_curator_reads(elsewhere: Path) -> None:
    """Once, a changed file of facts got the finished run of before, and a torn one ended the run in its middle."""
    table = elsewhere / "facts.yaml"
    text = (DATA / "facts" / "facts.yaml").read_text("utf-8")
    table.write_text(text, "utf-8")
    arm = f"+arms.mine=[curator=facts,curator.corpus=builtin_120,curator.facts={table}]"
    before, again = (job("profile=smoke", arm).identity for _ in range(2))
    table.write_text(text.replace("note that {slot} is {value}", "remember that {slot} is {value}"), "utf-8")
    after = job("profile=smoke", arm)
    assert before == again != after.identity
    assert [name for name in after.data if name.startswith("tables.")] == ["tables.mine"]
    assert not any(name.startswith("tables.") for name in job("profile=smoke", "+arms.mine=[curator=facts]").data)
    table.write_text("known_by: {}\n", "utf-8")
    with pytest.raises(UsageError, match=r"arm 'mine': .*facts\.yaml must have the sections"):
        job("profile=smoke", arm)
