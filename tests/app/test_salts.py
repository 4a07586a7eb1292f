"""The salt of a run: in every draw, secret while an arm could look for it, and the same for whoever goes on."""

import json
import re
from pathlib import Path

import pytest

import skg_bench
from skg_bench.app import salts
from skg_bench.core.errors import UsageError
from tests.app import test_run_check
from tests.app.test_cli import call
from tests.app.test_launch import interrupt, job

tiny, tiny_run = test_run_check.tiny, test_run_check.tiny_run  # two users, one week
BARE = pytest.mark.usefixtures("bare")
OTHER = "0123456789abcdef0123456789abcdef"


def manifest(folder: str | Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))
    return content


def messages(run: skg_bench.Run) -> list[str]:
    words: list[str] = run.turns("skg", ["message"])["message"].to_pylist()
    return words


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(salts.VARIABLE, raising=False)


def test_a_run_with_a_drawn_salt_ends_with_it_in_the_manifest_and_can_be_made_again(
    elsewhere: Path, tiny: tuple[str, ...], tiny_run: skg_bench.Run
) -> None:
    run = skg_bench.run([*tiny, "salt=draw", "out=drawn"])
    told = str(run.manifest["salt"])
    assert re.fullmatch("0x[0-9a-f]{32}", told)
    assert run.manifest["salt_hash"] == salts.digest(int(told, 16))
    assert not list(run.path.glob(".salt*"))
    assert messages(run) != messages(tiny_run)
    again = skg_bench.run([*tiny, f"salt={told}", "out=again"])
    assert messages(again) == messages(run)
    assert job(*tiny, "salt=draw", "out=drawn").state == "finished"


@BARE
def test_an_unfinished_run_keeps_its_salt_out_of_the_manifest_and_goes_on_with_it(
    elsewhere: Path, tiny: tuple[str, ...]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        skg_bench.run([*tiny, "salt=draw", "out=cut", "cohort=1"], progress=interrupt)
    begun, file = manifest("cut"), Path("cut/.salt")
    drawn = file.read_text("ascii").strip()
    assert begun["salt"] is None
    assert begun["salt_hash"] == salts.digest(int(drawn, 16))
    assert file.stat().st_mode & 0o777 == 0o600
    assert drawn[2:] not in Path("cut/manifest.json").read_text("utf-8")
    seen: list[int] = []
    run = skg_bench.run([*tiny, "salt=draw", "out=cut"], progress=lambda done, _total: seen.append(done))
    assert seen[0] > 0
    assert int(str(run.manifest["salt"]), 16) == int(drawn, 16)
    whole = skg_bench.run([*tiny, f"salt={drawn}", "out=whole"])
    assert run.turns("skg").drop_columns("user_msg_id").equals(whole.turns("skg").drop_columns("user_msg_id"))


@BARE
def test_a_lost_salt_is_not_drawn_anew(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    with pytest.raises(KeyboardInterrupt):
        skg_bench.run([*tiny, "salt=draw", "out=cut", "cohort=1"], progress=interrupt)
    Path("cut/.salt").unlink()
    with pytest.raises(UsageError, match=r"the salt of cut was drawn and is lost: .*delete the folder and start again"):
        job(*tiny, "salt=draw", "out=cut")


@BARE
def test_parts_share_the_salt_that_the_first_of_them_drew(elsewhere: Path, tiny: tuple[str, ...]) -> None:
    first, second = (job(*tiny, "salt=draw", "out=parts", f"part={i}/2") for i in range(2))
    skg_bench.app.launch.start(first)
    run = skg_bench.app.launch.start(second)
    assert manifest("parts")["salt"] == run.manifest["salt"] is not None
    assert messages(run) == messages(skg_bench.run([*tiny, f"salt={run.manifest['salt']}", "out=whole"]))


@BARE
def test_a_salt_of_the_environment_is_written_as_its_hash_alone(
    elsewhere: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(salts.VARIABLE, OTHER)
    run = skg_bench.run([*tiny, "salt=env", "out=secret"])
    assert run.manifest["salt"] is None
    assert run.manifest["data"]["salt"] == run.manifest["salt_hash"] == salts.digest(int(OTHER, 16))
    told = b"".join(file.read_bytes() for file in run.path.rglob("*") if file.is_file())
    assert OTHER.encode() not in told
    assert str(int(OTHER, 16)).encode() not in told
    assert messages(run) == messages(skg_bench.run([*tiny, f"salt=0x{OTHER}", "out=public"]))
    monkeypatch.setenv(salts.VARIABLE, OTHER[::-1])
    with pytest.raises(UsageError, match=r"holds another run(.|\n)*data\.salt"):
        job(*tiny, "salt=env", "out=secret")


def test_without_a_salt_in_the_environment_the_default_counts_and_the_run_says_so(
    elsewhere: Path, tiny: tuple[str, ...], tiny_run: skg_bench.Run
) -> None:
    said: list[str] = []
    run = skg_bench.app.launch.start(job(*tiny, "salt=env", "out=env"), say=said.append)
    assert any(line.startswith("SKG_BENCH_SALT is not set: ") and "could compute the draws" in line for line in said)
    assert messages(run) == messages(tiny_run)
    assert run.manifest["salt"] == f"{0:#034x}"


@pytest.mark.parametrize("text", ["1234", "g" * 32, "0" * 32, OTHER + "0"])
def test_a_variable_that_holds_no_salt_is_refused_without_showing_it(
    elsewhere: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(salts.VARIABLE, text)
    with pytest.raises(UsageError, match=r"SKG_BENCH_SALT holds \d+ characters that are no salt") as caught:
        job(*tiny, "salt=env")
    assert text not in str(caught.value)


@pytest.mark.parametrize("value", ["-1", str(2**128), "draws", "true", "null", "0x", "1.5", "0x" + "f" * 33])
def test_a_salt_that_is_none_is_refused(elsewhere: Path, value: str) -> None:
    code, _, err = call("run", f"salt={value}", "--dry-run")
    assert code == 2
    assert "must be draw, env, or a number of 128 bits" in err


@BARE
def test_runs_of_other_salts_are_combined_as_runs_of_other_seeds_are(
    elsewhere: Path, tiny: tuple[str, ...], tiny_run: skg_bench.Run
) -> None:
    other = skg_bench.run([*tiny, "salt=7", "out=other"])
    compared = skg_bench.compare(tiny_run, other, reference="never")
    alone = skg_bench.compare(tiny_run, reference="never")
    assert {row.arm for row in compared.rows} == {"skg"}
    assert compared.users == 2 * alone.users
    changed = skg_bench.run([*tiny, "salt=7", "utility.wrong=2.0", "out=changed"])
    with pytest.raises(UsageError, match="share no user; compare runs of the same seeds, salts and users"):
        skg_bench.compare(tiny_run, changed, reference="never")


@BARE
def test_a_session_of_a_secret_salt_is_not_made_again(
    elsewhere: Path, tiny: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(salts.VARIABLE, OTHER)
    skg_bench.run([*tiny, "salt=env", "out=secret"])
    code, _, err = call("counterexample", "find", "secret", "--arm", "skg", "--reference", "never", "--out", "c.json")
    assert code == 2
    assert "does not tell its salt" in err
