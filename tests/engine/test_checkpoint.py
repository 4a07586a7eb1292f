"""Checkpoints of cohorts: whoever goes on from one makes the logs of a run that nothing stopped, to the bit."""

import errno
import gc
import json
import logging
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from skg_bench.app.compose import compose
from skg_bench.app.launch import prepare
from skg_bench.core.arms import Arm
from skg_bench.engine import checkpoint
from skg_bench.engine import cohort as engine_cohort
from skg_bench.engine.checkpoint import Keeper, checkpoint_rows
from skg_bench.engine.cohort import Rollout, Setting, run_cohort
from skg_bench.engine.logbook import Logbook
from skg_bench.llm.endpoint import Endpoint
from tests.assistant import plugin
from tests.conformance import worlds
from tests.engine.checkpoints import (
    CASE,
    TOP_K,
    TURNS,
    Saving,
    case,
    cohort,
    differences,
    run,
    settings,
    stacked,
    taught,
)
from tests.laws import shoppers, test_texts, world

FORK = world.FORK
assert shoppers.FORK + 1 < FORK
LAST = int(TURNS.max())
Fresh = Callable[[], Setting]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    fresh, arms = case()
    keeper = Saving(tmp_path_factory.mktemp("kept") / "kept", (20,))
    run(fresh(), arms, keeper)
    return keeper.at(20)


def check(fresh: Fresh, arms: Sequence[Arm], after: Sequence[int], folder: Path) -> None:
    """Go on after each of these turns; the turns before were no others for having been saved."""
    keeper = Saving(folder / "kept", after)
    whole = run(fresh(), arms, keeper)
    if len(arms) > 1:
        assert list(differences(whole, run(fresh(), arms))) == []
    for turn in after:
        resumed = Saving(keeper.at(turn), ())
        logs = run(fresh(), arms, resumed)
        assert resumed.turns == keeper.turns - turn, "it began anew"
        assert list(differences(whole, logs)) == [], (turn, [arm.name for arm in arms])
        words, others = (log[0].labels.texts for log in (whole, logs))
        assert words._written == others._written


# ------------------------------------------------------------------------------------------- the same bits


def test_arms_of_the_dense_world_go_on_before_at_and_after_their_forks(tmp_path: Path) -> None:
    plan = taught(world.plan(4, tuple(world.ARMS)), tmp_path)
    fresh, every = settings(plan), stacked(plan)
    assert {arm.name for arms in every for arm in arms} == set(world.ARMS)
    for i, arms in enumerate(every):
        (folder := tmp_path / str(i)).mkdir()
        forked = any(arm.fork is not None for arm in arms)
        if arms[0].book == "hindsight":  # turns FORK + 9 of the first time, then all of the second
            first = max(arm.cuts[-1] for arm in arms)
            check(fresh, arms, (FORK - 1, FORK, FORK + 1, first, first + 1, first + FORK), folder)
        else:
            check(
                fresh, arms, (FORK - 1, FORK, FORK + 1, 27) if len(arms) > 3 else (FORK,) if forked else (17,), folder
            )


def test_arms_of_the_guardian_go_on_before_at_and_after_their_forks(tmp_path: Path) -> None:
    plan, fork = shoppers.plan(4, tuple(shoppers.ARMS)), shoppers.FORK
    fresh, every = settings(plan), stacked(plan)
    assert {arm.name for arms in every for arm in arms} == set(shoppers.ARMS)
    for i, arms in enumerate(every):
        (folder := tmp_path / str(i)).mkdir()
        twice = arms[0].book == "hindsight"
        forked = any(arm.fork is not None for arm in arms)
        check(fresh, arms, (fork - 1, fork, fork + 1) if forked else (14,), folder)
        if twice:
            (folder / "second").mkdir()
            check(fresh, arms, (fork + 2, fork + 20), folder / "second")


@pytest.mark.parametrize("arm", ["toy", "diary", "fork", "short"])
def test_assistants_of_other_packages_go_on(arm: str, tmp_path: Path) -> None:
    with plugin.installed(tmp_path / "site"):
        table = plugin.table(*dict.fromkeys(["skg", "never", "toy", arm]))
        plan = prepare(compose([*plugin.WORLD, table, "reference=never", "contrasts=[]"])).plan
        arms = [made for made in plan.arms if made.name == arm]
        check(settings(plan), arms, (5, 18), tmp_path)


def test_a_replayed_log_goes_on(tmp_path: Path) -> None:
    plan = prepare(
        compose(["simulator=recorded", *worlds.recorded(tmp_path), "arms={skg: [], never: [policy=never]}"])
    ).plan
    for i, arms in enumerate(stacked(plan)):
        (folder := tmp_path / str(i)).mkdir()
        check(settings(plan), arms, (4, 12, LAST), folder)


def test_texts_that_became_examples_keep_their_vectors_and_words(tmp_path: Path) -> None:
    plan = test_texts.plan("skg", "bm25", users=4)
    for arms in stacked(plan):
        (folder := tmp_path / arms[0].name).mkdir()
        check(settings(plan), arms, (20,), folder)


def test_progress_goes_on_from_where_it_was(kept: Path) -> None:
    fresh, arms = case()
    ticks, resumed = list[int](), list[int]()
    for made, keeper in ((ticks, None), (resumed, Saving(kept, ()))):
        run_cohort(fresh(), arms, cohort(fresh()), TOP_K, made.append, keeper=keeper)
    n = cohort(fresh()).n
    assert ticks[-1] == resumed[-1] == len(arms) * n.sum()
    assert min(resumed) == len(arms) * np.minimum(n, 20).sum()


def test_a_checkpoint_of_a_killed_process_is_gone_on_from_in_another_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.engine.checkpoints", str(tmp_path / "kept"), "20"]
    killed = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], check=False, capture_output=True)
    assert (killed.returncode, killed.stderr) == (9, b"")
    fresh, arms = case()
    resumed = Saving(tmp_path / "kept.20", ())
    assert list(differences(run(fresh(), arms), run(fresh(), arms, resumed))) == []
    assert resumed.turns == LAST - 20


def test_texts_of_other_cohorts_may_have_been_written_before_and_after(tmp_path: Path) -> None:
    fresh, arms = case()
    plain = run(fresh(), arms)
    busy, other = fresh(), fresh()
    for setting, users in ((busy, 1), (other, 2)):
        run(setting, arms, users=users)
    keeper = Saving(tmp_path / "kept", (20,))
    run(busy, arms, keeper)
    n, resumed = len(other.texts), Saving(keeper.at(20), ())
    logs = run(other, arms, resumed)
    assert (resumed.turns, len(other.texts)) == (LAST - 20, n)
    for log, whole in zip(logs, plain, strict=True):
        for name, column in whole.columns.items():
            if name not in ("message", "matched_skill"):
                assert column.tobytes() == log.columns[name].tobytes(), name
        for mine, theirs in zip(log.updates, whole.updates, strict=True):
            for name in ("message", "name"):
                known = mine[name] >= 0
                assert log.labels.texts.read(mine[name][known]) == whole.labels.texts.read(theirs[name][known])


# ------------------------------------------------------------------------------------------ good files only


def turns_made(path: Path) -> int:
    """Turns of a run that may go on from a file."""
    fresh, arms = case()
    keeper = Saving(path, ())
    assert len(run(fresh(), arms, keeper)) == len(CASE)
    return keeper.turns


def test_whose_a_checkpoint_is_stands_in_its_first_line(kept: Path, tmp_path: Path) -> None:
    head = checkpoint_rows(kept)
    assert head is not None
    assert head[0] == CASE
    assert head[1].tolist() == [0, 1, 2, 3]
    first = tmp_path / "first"
    first.write_bytes(kept.read_bytes().partition(b"\n")[0] + b"\n")
    again = checkpoint_rows(first)
    assert again is not None
    assert again[0] == CASE
    for text in (b"", b"{}\n", b"[]\n", b"{" * 10**6, b"\xff\n", kept.read_bytes()[:40]):
        first.write_bytes(text)
        assert checkpoint_rows(first) is None
    assert checkpoint_rows(tmp_path / "none") is None


def test_a_checkpoint_that_was_cut_or_changed_counts_as_absent(kept: Path, tmp_path: Path) -> None:
    whole, changed = kept.read_bytes(), tmp_path / "changed"
    keeper, names = Keeper(changed), list(CASE)
    users = np.arange(len(TURNS), dtype=np.int32)

    def begin() -> tuple[Rollout, Logbook]:
        raise AssertionError("nobody reads further")

    rng = np.random.default_rng(0)
    read = 0
    for place in [*rng.integers(0, len(whole), 8).tolist(), len(whole) - 1]:
        for data in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            changed.write_bytes(data)
            try:
                assert keeper.resumed(names, users, begin) is None
            except AssertionError:
                read += 1  # the head is good: only the digest tells
    assert read > 8
    changed.write_bytes(whole[:-1])
    assert turns_made(changed) == LAST
    changed.write_bytes(whole[: len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1 :])
    assert turns_made(changed) == LAST
    changed.write_bytes(whole)
    assert turns_made(changed) == LAST - 20


@pytest.mark.parametrize("anchor", ["arms.0", "similarity", "texts"])
def test_a_forged_checkpoint_brings_no_component_of_its_own(anchor: str, kept: Path, tmp_path: Path) -> None:
    """Whoever can write a run can also write the digest."""
    head, plain, rest = kept.read_bytes().split(b"\n", 2)
    content = json.loads(plain)
    (node,) = [node for node in content["nodes"] if node == ["anchor", anchor]]
    node[:] = ["object", f"{Endpoint.__module__}:Endpoint", "address", "http://192.0.2.1", "key_from", "AWS_SECRET"]
    data = b"\n".join([head, json.dumps(content).encode(), rest[:-32]])
    (forged := tmp_path / "forged").write_bytes(data + sha256(data).digest())
    assert turns_made(forged) == LAST, "it went on from there"


def test_a_checkpoint_of_other_arms_users_or_turns_is_left_alone(kept: Path) -> None:
    fresh, arms = case()
    for others, n in ((arms[::-1], 4), (arms[:-1], 4), (arms, 3)):
        keeper = Saving(kept, ())
        run(fresh(), others, keeper, n)
        assert keeper.turns == LAST
    setting, keeper = fresh(), Saving(kept, ())
    users = cohort(setting)
    run_cohort(setting, arms, users.until(users.n - 1), TOP_K, lambda _: None, keeper=keeper)
    assert keeper.turns == LAST - 1


def test_a_rollout_is_gone_before_its_logs_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts, split = list[weakref.ref[Rollout]](), Logbook.split

    def begun(*given: object) -> Rollout:
        made = Rollout(*given)  # type: ignore[arg-type]
        rollouts.append(weakref.ref(made))
        return made

    def alone(log: Logbook, arms: Sequence[str]) -> list[Logbook]:
        assert [rollout() for rollout in rollouts] == [None]
        return split(log, arms)

    fresh, arms = case()
    arms = [arm for arm in arms if arm.name == CASE[0]]
    monkeypatch.setattr(engine_cohort, "Rollout", begun)
    monkeypatch.setattr(Logbook, "split", alone)
    gc.disable()
    try:
        run(fresh(), arms, Saving(tmp_path / "kept", [20]))
        del rollouts[:]
        run(fresh(), arms, Saving(tmp_path / "kept.20", ()))
    finally:
        gc.enable()
    assert len(rollouts) == 1


# ---------------------------------------------------------------------------------------------- when it saves


def test_it_saves_at_intervals_and_waits_longer_where_saving_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, saved, write = [0.0], list[float](), checkpoint._write

    def slowly(*parts: object) -> None:
        write(*parts)  # type: ignore[arg-type]
        now[0] += 0.05
        saved.append(now[0])

    def clock() -> float:
        now[0] += 0.5
        return now[0]

    monkeypatch.setattr(checkpoint, "_write", slowly)
    fresh, arms = case()
    run(fresh(), arms, Keeper(tmp_path / "kept", 3.0, clock))
    assert len(saved) == 1  # it took 0.55 s, so that the next one is due after 55 s
    assert checkpoint_rows(tmp_path / "kept") is not None


def test_where_nothing_can_be_written_the_run_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    caplog.set_level(logging.DEBUG, "skg_bench")
    fresh, arms = case()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        logs = run(fresh(), arms, Keeper(tmp_path / "kept", 0.0, lambda: 0.0))
    assert list(tmp_path.iterdir()) == []
    assert len(caplog.records) == LAST  # it tries again
    assert list(differences(logs, run(fresh(), arms))) == []


def test_what_cannot_be_saved_is_tried_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "skg_bench")
    with plugin.installed(tmp_path / "site"):
        from toys.toy import Echo  # type: ignore[import-not-found]

        class Open(Echo):  # type: ignore[misc]
            def start(self, n: int) -> object:
                return [super().start(n), self.start]

            def answer(self, query: object, state: list[object]) -> object:
                memory, reply = super().answer(query, state[0])
                return [memory, *state[1:]], reply

            def learn(self, seen: object, feedback: object, state: list[object]) -> object:
                return [super().learn(seen, feedback, state[0]), *state[1:]]

        fresh, arms = case()
        arm = Arm("open", Open(30), arms[0].llm, 0.0)
        run(fresh(), [arm], Keeper(tmp_path / "kept", 0.0, lambda: 0.0))
    assert not (tmp_path / "kept").exists()
    assert len(caplog.records) == 1
    assert "builtins:method" in caplog.records[0].getMessage()


def test_parts_of_a_log_are_joined_unless_their_numbers_are_of_other_kinds() -> None:
    ints, more, floats = ({"row": np.arange(n, dtype=kind)} for n, kind in ((2, "i4"), (3, "i8"), (2, "f8")))
    (whole,) = checkpoint._joined([ints, more])
    assert whole["row"].tolist() == [0, 1, 0, 1, 2]
    assert whole["row"].dtype == np.int64
    for parts in ([], [ints], [ints, floats]):
        assert checkpoint._joined(parts) is parts
