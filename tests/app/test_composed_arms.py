"""Arms that fork: tied to the arms that they fork from, or refused with what is wrong."""

import pytest

from skg_bench.app.compose import compose
from skg_bench.app.composed_arms import arms as made_of
from skg_bench.app.launch import prepare
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.components import components
from skg_bench.core.arms import Arm
from skg_bench.core.errors import UsageError


def arms(table: str, *more: str) -> dict[str, Arm]:
    """The arms of a table, beside `skg`."""
    composed = compose([f"arms={{skg: [], {table}}}", "reference=skg", *more])
    return {arm.name: arm for arm in prepare(composed).plan.arms}


def test_a_fork_is_another_arm_until_its_turn() -> None:
    made = arms("strict: ['fork=skg@200', policy.threshold=0.8], stricter: ['fork=strict@300', policy.threshold=0.9]")
    skg, strict, stricter = made["skg"], made["strict"], made["stricter"]
    assert strict.fork is not None
    assert strict.fork.arm == skg
    assert [strict.at(t) for t in (0, 199, 200, 5000)] == [skg, skg, strict, strict]
    assert [stricter.at(t) for t in (0, 199, 200, 299, 300)] == [skg, skg, strict, strict, stricter]
    assert (skg.cuts, strict.cuts, stricter.cuts) == ([0], [0, 200], [0, 200, 300])


def test_forks_may_be_listed_before_what_they_fork_from_and_at_earlier_turns() -> None:
    made = arms("late: ['fork=early@50', policy=never], early: ['fork=skg@80', policy=always]")
    assert list(made) == ["skg", "late", "early"]
    assert made["late"].cuts == [0, 50]
    assert [made["late"].at(t).name for t in (0, 49, 50, 99)] == ["skg", "skg", "late", "late"]


def test_values_of_the_root_count_on_both_sides_of_a_fork() -> None:
    made = arms("swap: ['fork=skg@9', router=exact]", "router.top_k=7")
    lengths = [components(made[name]).router.top_k for name in ("skg", "swap")]
    assert lengths == [7, 7]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a: ['fork=skg']", r"arm 'a': fork=skg must read ARM@TURN, such as fork=skg@200"),
        ("a: ['fork=skg@-3']", r"arm 'a': fork=skg@-3 must read ARM@TURN"),
        ("a: ['fork=skg@1.5']", r"arm 'a': fork=skg@1.5 must read ARM@TURN"),
        ("a: ['fork=7']", r"arm 'a': fork=7 must read ARM@TURN"),
        ("a: ['fork=sgk@3']", r"arm 'a': fork=sgk@3: there is no arm 'sgk'; did you mean 'skg'\?"),
        ("a: ['fork=a@3']", r"arm 'a' forks from itself: a from a; leave out one of the forks"),
        ("a: ['fork=b@3'], b: ['fork=a@4']", r"arm 'a' forks from itself: a from b from a"),
        ("a: ['fork=skg@3', 'signals.features=[signals]']", r"arm 'a': signals.features differ from those of skg"),
        ("a: ['fork=skg@3', book=loan, curator=none]", r"arm 'a': book='loan', valid are own, donor, hindsight"),
        ("a: [book=donor, curator=none]", r"arm 'a': book=donor needs a fork; say when that is: fork=ARM@TURN"),
        ("a: ['fork=skg@3', book=hindsight]", r"arm 'a': book=hindsight .* learns nothing; add curator=none"),
        ("a: [freeze=all]", r"arm 'a': freeze=all needs the turn .*: freeze_at=TURN"),
        ("a: [freeze_at=7]", r"arm 'a': freeze_at=7 needs what stops then: freeze=book, book\+scorer or all"),
        ("a: [freeze=some, freeze_at=7]", r"arm 'a': freeze='some', valid are book, book\+scorer, all"),
        ("a: [freeze=all, freeze_at=-7]", r"arm 'a': freeze_at=-7 must not be negative"),
        (
            "a: [freeze=all, freeze_at=7, curator=oracle, router=oracle]",
            r"arm 'a': freeze=all cannot stop a curator that sees the truth",
        ),
        ("a: [mood=bad]", r"arm 'a': mood='bad', valid are own, fresh"),
        ("a: [curator=frozen]", r"curator=frozen: an arm says itself when it stops .* freeze=all, freeze_at=TURN"),
        (
            "a: ['fork=skg@3', book=donor, curator=none], b: ['fork=a@5']",
            r"arm 'b': fork=a@5: fork from an arm that serves books of its own",
        ),
    ],
)
def test_a_fork_that_leads_nowhere_is_refused(table: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arms(table)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("fork=skg@3", r"fork='skg@3' must be null: it is arms that fork, as in '\+arms.NAME=\[fork=ARM@TURN\]'"),
        ("book=donor", r"book='donor' must be own; an arm that forks may serve another"),
        ("mood=bad", r"mood='bad' must be own or fresh"),
    ],
)
def test_the_root_does_not_fork(override: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compose([override, "arms={skg: []}", "reference=skg"])


def test_a_fork_is_part_of_what_a_run_is() -> None:
    identities = {
        prepare(compose([f"arms={{skg: [], a: ['fork=skg@{turn}', policy=always]}}", "reference=skg"])).identity
        for turn in (100, 101)
    }
    assert len(identities) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cache_size": 3}, r"arm 'skg': its composition has an unknown key 'cache_size'"),
        ({"serving": None}, "arm 'skg': its composition lacks serving"),
    ],
)
def test_a_composition_from_a_file_has_the_keys_of_an_arm(change: dict[str, object], message: str) -> None:
    composition = dict(compose(["arms={skg: []}", "reference=skg"]).arms["skg"]) | change
    kept = {key: value for key, value in composition.items() if key not in change or value is not None}
    with pytest.raises(UsageError, match=message):
        made_of({"skg": kept}, COMMAND_LINE)


def test_values_of_a_sweep_over_an_arm_are_said_to_be_arms() -> None:
    with pytest.raises(UsageError, match=r"several values are several arms, each with its own name \(expected"):
        compose(["+arms.mine=[policy.threshold=0.5],[policy.threshold=0.6]"])
