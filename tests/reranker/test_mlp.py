"""The listwise net: its loss against automatic differentiation, sums exact in any order, and bad parameters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skg_bench.core.errors import UsageError
from skg_bench.core.types import TrainingRows
from skg_bench.reranker import mlp
from skg_bench.reranker.mlp import MLP, MLPScorer
from tests.reranker.turns import served, turns

F = 32
NAMES = [f"f{i}" for i in range(F)]
NET = MLP(units=64, steps=10, rate=0.01, l2=1.0, window=300, seed=0, device="cpu")


def fitted(net: MLP, ratings: TrainingRows, users: int) -> MLPScorer:
    scorer = net.start(users, NAMES)
    assert scorer is not None
    made = net.fit(scorer, np.arange(users), ratings)
    assert isinstance(made, MLPScorer)
    return made


def test_gradients_are_those_of_the_listwise_loss() -> None:
    """But for the grids, of which the coarsest step is 2**-16 a rated turn."""
    import torch  # takes a second, in each test process that collects this module

    rng = np.random.default_rng(0)
    n = 120
    ratings = replace(turns(rng, 3, n, F), offset=rng.standard_normal((n, 5)))
    lists = [torch.from_numpy(a) for a in mlp._lists(ratings)]
    features, mask, chosen, label, offset = lists
    hidden = torch.from_numpy(rng.standard_normal((3, F, 8)) / 4).requires_grad_()
    out = torch.from_numpy(rng.standard_normal((3, 8)) / 4).requires_grad_()
    units = (features.flatten(1, 2) @ hidden).clamp(0, 4)
    logit = (units @ out[:, :, None]).view(mask.shape) + offset
    weight = torch.where(mask > 0, logit.exp(), 0)
    p = (weight * chosen).sum(2) / (1 + weight.sum(2))
    rated = mask.any(dim=2)
    y, p = label[:, :, 0][rated], p[rated]
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).sum()
    expected = torch.autograd.grad(loss, [hidden, out])
    slopes = mlp._slopes([hidden.detach(), out.detach()], torch.from_numpy(mlp._exponentials()), tuple(lists))
    for ours, theirs in zip(slopes, expected, strict=True):
        assert (ours - theirs).abs().max() < 0.01 * theirs.abs().max()


def test_the_weights_are_the_same_bits_in_whatever_order_and_pieces_the_turns_are_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import torch

    rng = np.random.default_rng(1)
    ratings = turns(rng, 4, 1200, F)
    whole = fitted(NET, ratings, 4)
    shuffled = fitted(NET, ratings.rows(rng.permutation(1200)), 4)
    torch.set_num_threads(2)
    spread = fitted(NET, ratings, 4)
    torch.set_num_threads(1)
    alone = fitted(NET, ratings, 4)
    monkeypatch.setattr(mlp, "_EXACT_ROWS", 64)
    pieces = fitted(NET, ratings, 4)
    for other in (shuffled, spread, alone, pieces):
        assert np.array_equal(other.hidden, whole.hidden)
        assert np.array_equal(other.out, whole.out)


@pytest.mark.req("K19")
def test_a_refit_goes_on_where_the_last_one_ended() -> None:
    """Twice ten steps come closer to what is rated than ten, and are not twenty from the start."""
    ratings = turns(np.random.default_rng(2), 1, 300, F)
    ratings = replace(
        ratings, label=(ratings.features[:, 0, 0] > 0.5).astype(np.float64), place=np.zeros(300, np.int32)
    )
    once = fitted(NET, ratings, 1)
    twice = NET.fit(once, np.arange(1), ratings)
    scores = [s.score(ratings.features.reshape(1, -1, F)).reshape(300, 5)[:, 0] for s in (once, twice)]
    apart = [s[ratings.label == 1].mean() - s[ratings.label == 0].mean() for s in scores]
    assert apart[1] > apart[0] + 0.2


@pytest.mark.req("K10")
def test_a_rating_says_nothing_of_which_rival_would_have_been_right() -> None:
    """All rivals of a miss are raised alike, as they look alike; none is raised by an ok."""
    x = np.zeros((200, 3, F))
    x[:, 0, 0] = x[:, 1:, 1] = 1.0
    for label, sign in ((0.0, 1), (1.0, -1)):
        ones, three, event = np.zeros(200, np.int32), np.full(200, 3, np.int32), np.zeros(200, np.uint64)
        ratings = TrainingRows(ones, x, three, ones, np.full(200, label), event)
        logits = fitted(NET, ratings, 1).score(x[:1])[0]
        assert logits[1] == logits[2]
        assert np.sign(logits[1] - logits[0]) == sign


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"units": 0}, r"reranker\.units=0 must be at least 1"),
        ({"steps": 0}, r"reranker\.steps=0"),
        ({"window": 0}, r"reranker\.window=0"),
        ({"rate": 0.0}, r"reranker\.rate=0\.0 must be above 0"),
        ({"l2": -1.0}, r"reranker\.l2=-1\.0"),
        ({"device": "tpu"}, r"reranker\.device='tpu', valid are cpu, cuda"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        replace(NET, **change)


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=r"torch finds no GPU here; take reranker\.device=cpu"):
        replace(NET, device="cuda")


@pytest.mark.gpu
def test_a_gpu_gives_the_same_bits() -> None:
    ratings = turns(np.random.default_rng(1), 4, 1200, F)
    here, accelerated = fitted(NET, ratings, 4), fitted(replace(NET, device="cuda"), ratings, 4)
    assert np.array_equal(here.hidden, accelerated.hidden)
    assert np.array_equal(here.out, accelerated.out)


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlp, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install -c constraints.txt -e '\.\[torch\]'"):
        replace(NET)


def test_what_speaks_of_the_served_skill_alone_is_a_logistic_regression() -> None:
    """With shortlists of one the softmax is the logistic function: the score of oks 3 in 4 tends to log 3."""
    ratings = served(np.zeros(400, np.int32), np.ones((400, F)) / 2, np.tile([1.0, 1.0, 1.0, 0.0], 100))
    scorer = fitted(replace(NET, steps=200, rate=0.01, l2=0.0), ratings, 1)
    assert scorer.score(ratings.features[None, :1, 0])[0, 0] == pytest.approx(np.log(3), abs=0.02)
