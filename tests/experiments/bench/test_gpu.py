"""The table of a GPU: made here with the processor in its place, and held against a GPU by `make gpu`."""

import numpy as np
import pytest

from experiments.bench.speed import gpu
from skg_bench.core.errors import UsageError


@pytest.fixture(autouse=True)
def _libraries() -> None:
    """Torch is imported where a test runs: it takes 2 s, in each process that collects."""
    pytest.importorskip("torch")
    pytest.importorskip("faiss")


@pytest.mark.parametrize("name", gpu.WORK)
def test_the_same_device_gives_the_same(name: str) -> None:
    same, row = gpu.compared(name, "cpu", 1, 0.01)
    assert same
    assert (row[0], row[-1]) == (name, "0")


def test_another_result_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([np.zeros(3), np.zeros(3), np.array([0.0, 2.0, 0.0]), np.zeros(3)])
    monkeypatch.setattr(gpu, "WORK", {"it": (lambda _device, _size: lambda: next(results), 1, 1.0)})
    same, row = gpu.compared("it", "cpu", 1, 1.0)
    assert not same
    assert row[-1] == "2"


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match="torch finds no GPU here"):
        gpu.analyse()


@pytest.mark.gpu
@pytest.mark.parametrize("name", gpu.WORK)
def test_a_gpu_gives_the_same(name: str) -> None:
    same, row = gpu.compared(name, "cuda", 1, 0.1)
    assert same, row
