"""Controls of an arm that come with its name: each differs from it in one thing."""

import pytest

from skg_bench.app.compose import compose
from skg_bench.core.errors import UsageError

GUARDIAN = ("experiment=guardian", "users=2", "weeks=1")


def changed(*overrides: str) -> dict[str, set[str]]:
    """Parts in which each control differs from `x`."""
    arms = compose([*GUARDIAN, *overrides, "controls_of=[x]"]).arms
    return {
        name.removeprefix("x_"): {part for part in config if config[part] != arms["x"][part]}
        for name, config in arms.items() if name.startswith("x_")
    }  # fmt: skip


def test_each_control_differs_in_the_one_part_that_it_asks_about() -> None:
    assert changed("+arms.x=[curator=reflective,curator.adds=0.9,curator.rho=1]") == {
        "empty": {"policy"}, "frozen": {"curator"}, "sham": {"curator"}, "coin": {"curator"}, "random": {"policy"},
    }  # fmt: skip


def test_controls_are_the_arms_that_an_experiment_would_write_by_hand() -> None:
    by_hand = {
        "empty": ["policy=never"],
        "frozen": ["curator=none"],
        "sham": ["curator=sham", "curator.curator=mem0", "curator.tags=coin", "curator.says=any"],
        "random": ["policy=uniform"],
    }
    arms = [f"+arms.{name}=[curator=mem0,{','.join(texts)}]" for name, texts in by_hand.items()]
    composed = compose([*GUARDIAN, "+arms.x=[curator=mem0]", *arms, "controls_of=[x]"]).arms
    for name in by_hand:
        assert composed[f"x_{name}"] == composed[name]


def test_what_an_arm_sets_stays_inside_of_its_sham() -> None:
    arms = compose([*GUARDIAN, "curator.misses=0.3", "+arms.x=[curator.adds=0.9]", "controls_of=[x,live]"]).arms
    for name, adds in (("x", 0.9), ("live", 0.5)):
        for suffix in ("sham", "coin"):
            inside = arms[f"{name}_{suffix}"]["curator"]["curator"]
            assert inside == arms[name]["curator"]
            assert (inside["adds"], inside["misses"]) == (adds, 0.3)


def test_each_control_is_held_against_its_arm_on_the_page() -> None:
    root = compose([*GUARDIAN, "controls_of=[live]"]).root
    pairs = [(entry["arm"], entry["reference"]) for entry in root["contrasts"]][-5:]
    assert pairs == [("live", f"live_{suffix}") for suffix in ("empty", "frozen", "sham", "coin", "random")]
    assert "controls_of" not in root  # they are arms like any other


def test_a_coin_alone_is_no_control_where_skills_keep_answers() -> None:
    composed = compose(["users=2", "arms={skg: []}", "reference=skg", "controls_of=[skg]"])
    assert list(composed.arms) == ["skg", "skg_empty", "skg_frozen", "skg_sham", "skg_random"]
    assert composed.arms["skg_sham"]["curator"]["says"] == "other"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["controls_of=[liv]"], "controls_of has 'liv', which is no arm; did you mean 'live'?"),
        (["controls_of=live"], r"controls_of='live' must be a list of arms, as in controls_of=\[live\]"),
        (["controls_of=[never]"], "controls_of has 'never', which learns nothing; name an arm with a curator"),
        (["controls_of=[live]", "+arms.live_sham=[]"], "there is an arm 'live_sham' already; rename one of them"),
        (["+arms.x=[fork=live@3]", "controls_of=[x]"], "'x', which forks: its controls would begin with the book of"),
        (["+arms.x=[policy=never]", "controls_of=[x]"], "whose policy is never: x_empty would be the same arm"),
        (["+arms.x=[policy=uniform]", "controls_of=[x]"], "whose policy is uniform: x_random would be the same arm"),
        (["controls_of=[3]"], r"controls_of=\[3\] must be a list of arms"),
        (["+arms.echo=[assistant=recall]", "controls_of=[echo]"], "controls_of has 'echo', which learns nothing"),
    ],
)
def test_an_arm_that_can_have_no_controls_is_named(overrides: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        compose([*GUARDIAN, *overrides])
