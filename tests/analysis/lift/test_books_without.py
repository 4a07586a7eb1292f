"""Skillbooks without the worst skills: nothing else in them changes, and each removal has its reason."""

import json
from pathlib import Path

import numpy as np
import pytest

from skg_bench.analysis.lift.first_order import first_order
from skg_bench.app import skill_removal
from skg_bench.app.skillbook import files, rebuilt
from skg_bench.core.calendar import FIRST_MONDAY
from skg_bench.core.errors import UsageError
from skg_bench.runfolder.measured_run import measured_run
from skg_bench.runfolder.run import Run
from skg_bench.skillbook.ace.strict import changes_of
from skg_bench.skillbook.agentropy import read_agentropy
from skg_bench.skillbook.conversion import to_ace
from skg_bench.skillbook.skillbook import Skillbook
from tests.app.test_cli import call, refused


def books(folder: Path) -> dict[int, Skillbook]:
    return {int(each.name[5:]): read_agentropy(each, FIRST_MONDAY).book for each in folder.iterdir()}


def removed(run: Run, arm: str, folder: Path) -> set[tuple[int, int]]:
    """User and id of skills that are in a book at the end of the run, and not in that of the folder."""
    ends = {user: rebuilt.book(run, arm, user) for user in books(folder)}
    return {
        (user, was.id)
        for user, book in books(folder).items()
        for was, skill in zip(ends[user].skills, book.skills, strict=True)
        if was.active and not skill.active
    }


@pytest.mark.req("U05")
def test_the_worst_skills_are_archived_and_nothing_else_changes(base: Run, tmp_path: Path) -> None:
    out = tmp_path / "better"
    code, printed, _ = call("skills", str(base.path), "--arm", "everything", "--remove", "4", "--out", str(out))
    assert code == 0
    assert "4 skills removed from " in printed
    lifts = first_order(base, "everything", "never")
    ends = [rebuilt.book(base, "everything", user) for user in range(6)]
    order = np.argsort(lifts.total, kind="stable")
    pairs = [(int(lifts.user[i]), int(lifts.skill[i])) for i in order]
    worst = [(user, skill) for user, skill in pairs if ends[user].skills[skill].active][:4]
    assert removed(base, "everything", out) == set(worst)
    for user, book in books(out).items():
        assert book.version == ends[user].version + 1
        others = [
            (was, now) for was, now in zip(ends[user].skills, book.skills, strict=True) if was.active == now.active
        ]
        assert all(was == now for was, now in others)
        assert len(others) == len(book.skills) - sum(each == user for each, _ in worst)


def test_the_batch_is_one_of_ace_with_a_reason_for_each(base: Run, tmp_path: Path) -> None:
    out = tmp_path / "better"
    call("skills", str(base.path), "--arm", "everything", "--remove", "4", "--out", str(out))
    lifts = first_order(base, "everything", "never")
    reasons = []
    for user, book in books(out).items():
        batch = (out / f"user-{user}" / skill_removal.BATCH).read_text("utf-8")
        changes = changes_of(batch, to_ace(book, "v2", files.MONDAY).book)
        assert {change.type for change in changes} == {"REMOVE"}
        for change in changes:
            (skill,) = (skill for skill in book.skills if skill.shown_id == change.skill_id)
            assert not skill.active
            at = np.flatnonzero((lifts.user == user) & (lifts.skill == skill.id))[0]
            assert change.reason is not None
            assert change.reason.startswith(f"lift {lifts.total[at]:+.2f} utility (first order); served ")
            assert change.reason.endswith(lifts.name[at])
            reasons.append(change.reason)
    assert len(set(reasons)) == 4


def test_exact_lifts_decide_where_they_are_known(base: Run, tmp_path: Path) -> None:
    out = tmp_path / "better"
    code, _, _ = call("skills", str(base.path), "--arm", "skg", "--exact", "all", "--remove", "3", "--out", str(out))
    assert code == 0
    batches = [json.loads((folder / skill_removal.BATCH).read_text("utf-8")) for folder in out.iterdir()]
    assert all("(exact)" in each["reason"] for batch in batches for each in batch["operations"])


def test_skills_that_did_not_hurt_stay(base: Run, tmp_path: Path) -> None:
    out = tmp_path / "better"
    code, printed, _ = call("skills", str(base.path), "--arm", "skg", "--remove", "1000", "--out", str(out))
    assert code == 0
    assert "have hurt, of 1,000)" in printed
    lifts = first_order(base, "skg", "never")
    at = {(int(user), int(skill)): i for i, (user, skill) in enumerate(zip(lifts.user, lifts.skill, strict=True))}
    gone = removed(base, "skg", out)
    assert gone
    assert all(lifts.total[at[pair]] < 0 for pair in gone)


def test_nothing_is_written_over_or_half_written(base: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("skills", str(base.path), "--arm", "skg", "--remove", "2")
    assert "--remove 2 writes skillbooks; name a new folder with --out" in refused(*given)
    there = tmp_path / "there"
    there.mkdir()
    assert "is there already" in refused(*given, "--out", str(there))
    assert list(there.iterdir()) == []

    def full(_path: Path, _text: str) -> None:
        raise UsageError("no room")

    monkeypatch.setattr(skill_removal, "write_private", full)
    assert "no room" in refused(*given, "--out", str(tmp_path / "better"))
    assert list(tmp_path.iterdir()) == [there]


def test_users_who_share_a_memory_have_no_skills_of_their_own(base: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {**base.manifest["compositions"]["skg"]["assistant"], "shares": 2}
    shared["_target_"] = "skg_bench.assistant.python.assistant.PythonAssistant"
    manifest = {**base.manifest, "compositions": {**base.manifest["compositions"], "skg": {"assistant": shared}}}
    monkeypatch.setattr(Run, "manifest", manifest)
    assert type(measured_run(Run(base.path))).__name__ == "InstanceRun"
    assert "users of skg share a memory" in refused("skills", str(base.path), "--arm", "everything")
