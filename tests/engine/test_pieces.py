"""Pieces, the files of cohorts that are done: whatever becomes of one, it is whole or counts as absent."""

import errno
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.engine import pieces
from tests.engine.checkpoints import CASE, TURNS, case, cohort, run


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What is kept of a cohort of four users under an arm."""
    folder = tmp_path_factory.mktemp("run")
    (folder / pieces.FOLDER).mkdir()
    fresh, arms = case()
    pieces.write_piece(folder, "key", run(fresh(), [arm for arm in arms if arm.name == CASE[0]]), cohort(fresh()).user)
    (file,) = (folder / pieces.FOLDER).iterdir()
    return file.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, written: bytes) -> Path:
    (tmp_path / pieces.FOLDER).mkdir()
    (tmp_path / pieces.FOLDER / "kept.piece").write_bytes(written)
    return tmp_path


def test_it_is_found_by_its_run_alone(folder: Path) -> None:
    (piece,) = pieces.pieces_of_runs(folder, "key", verify=True)
    assert piece.arms == CASE[:1]
    assert piece.users.tolist() == list(range(len(TURNS)))
    assert len(piece.table(CASE[0], 0, "turns")) == cohort(case()[0]()).n.sum()
    assert pieces.pieces_of_runs(folder, "another run") == []
    assert pieces.pieces_of_runs(folder, "key") == []  # what is of another run is deleted


def test_one_with_any_changed_byte_is_whole_or_absent(folder: Path, written: bytes) -> None:
    file, rng = folder / pieces.FOLDER / "kept.piece", np.random.default_rng(3)
    directory, absent = range(len(written) - 400, len(written)), 0
    whole = [piece.table(CASE[0], 0, "turns") for piece in pieces.pieces_of_runs(folder, "key")]
    for place in [*range(60), *directory, *rng.choice(len(written), 100).tolist()]:
        data = bytearray(written)
        data[place] ^= int(rng.integers(1, 256))
        file.write_bytes(data)
        found = pieces.pieces_of_runs(folder, "key", verify=True)
        assert [piece.table(CASE[0], 0, "turns") for piece in found] in ([], whole)
        absent += not found
    assert absent > 100


def test_one_that_cannot_be_read_at_the_moment_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_given: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZipFile", busy)
        assert pieces.pieces_of_runs(folder, "key", verify=True) == []
    assert len(pieces.pieces_of_runs(folder, "key")) == 1


def test_a_shard_whose_pieces_are_gone_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has lost cohorts of arm 'skg' that were done; run the same command again"):
        pieces.join(tmp_path, "key", "skg", 0, users=range(3), pieces=[])


def test_of_pieces_with_a_user_in_common_the_first_is_taken_and_many_take_no_longer_each() -> None:
    def of(*users: int, arms: tuple[str, ...] = ("skg", "never")) -> pieces.Piece:
        return pieces.Piece(Path("x"), arms, np.array(users, np.int32))

    some = [of(0, 2), of(2, 3), of(3, 4), of(5, arms=("skg",)), of(4, 9), of(1, 9)]
    assert [piece.users.tolist() for piece in pieces.apart(some, ["skg"])] == [[0, 2], [3, 4], [5], [1, 9]]
    assert [piece.users.tolist() for piece in pieces.apart(some, ["never"])] == [[0, 2], [3, 4], [1, 9]]
    assert pieces.apart([], ["skg"]) == []

    def calls(n: int) -> int:
        counter = Calls()
        many = [of(user) for user in range(n)]
        sys.setprofile(counter)
        pieces.apart(many, ["skg"])
        sys.setprofile(None)
        return counter.calls

    assert calls(400) < 2.5 * calls(200)  # once each was held against all before it: four times


class Calls:
    """Counts calls while it is the profiler of the process."""

    calls = 0

    def __call__(self, _frame: Any, event: str, _value: Any) -> None:
        self.calls += event in ("call", "c_call")
