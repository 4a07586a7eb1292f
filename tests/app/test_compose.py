"""Overrides are checked before anything starts, and each arm is the root's overrides and its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from skg_bench.analysis.counts.metrics import PRICES
from skg_bench.app import hydra_trees as module
from skg_bench.app import root_checks
from skg_bench.app.compose import compose, composer
from skg_bench.app.overrides import override_value, parse, sweep_cells
from skg_bench.core.errors import UsageError
from tests.app.lab import forget, installed, write


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with installed(tmp_path, monkeypatch) as folder:
        yield folder


def refused(*texts: str) -> str:
    with pytest.raises(UsageError) as error:
        compose(texts)
    return str(error.value)


def test_the_command_line_beats_the_profile_and_the_profile_beats_the_root(conf: Path) -> None:
    assert compose([]).root["users"] == 3
    assert compose(["profile=large"]).root["users"] == 30
    assert compose(["profile=large", "users=4"]).root["users"] == 4
    assert compose(["users=4", "profile=large"]).root["users"] == 4


def test_a_yaml_file_that_changes_is_composed_anew_and_others_are_composed_once(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, composed = list[object](), module._composed

    def counted(*what: Any) -> Any:
        calls.append(what)
        return composed(*what)

    monkeypatch.setattr(module, "_composed", counted)
    assert compose([]).root["users"] == 3
    before = len(calls)
    first = compose(["users=4", "policy.every=9"])
    first.root["policy"]["every"] = first.arms["live"]["policy"]["every"] = 1  # nobody else sees it
    assert [compose([]).root["policy"]["every"], compose([]).arms["live"]["policy"]["every"]] == [5, 5]
    assert len(calls) == before > 0
    write(conf / "profile" / "small.yaml", "# @package _global_\nprofile: small\nusers: 5\nweeks: 2\n")
    assert compose([]).root["users"] == 5
    write(conf / "profile" / "later.yaml", "# @package _global_\nprofile: later\nusers: 6\nweeks: 2\n")
    forget()
    assert compose(["profile=later"]).root["users"] == 6


def test_no_more_trees_are_kept_than_memory_has_room_for(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TREES", 2)
    shared = composer()
    for choices in (["profile=large"], ["policy=never"], ["curator=frozen"], ["profile=large"]):
        assert shared.root(parse(choices))["seed"] == 0
        assert len(shared._trees._trees) <= 2


@pytest.mark.parametrize("sign", ["", "+", "++", "~"])
@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("sed=1", "'seed'"),
        ("user=1", "'users'"),
        ("polcy=never", "'policy'"),
        ("policy.evry=3", "'policy.every'"),
        ("policy.every.deep=3", "policy.every"),
        ("utility.wrnog=3", "'utility.wrong'"),
        ("utility={wrnog: 3}", "'utility.wrong'"),
        ("rate=0.5", "router.rate"),
        ("hydra.run.dir=x", "hydra.run.dir"),
    ],
)
def test_an_unknown_key_is_refused_whatever_sign_stands_before_it(
    conf: Path, sign: str, key: str, nearest: str
) -> None:
    if sign == "~" and "{" in key:
        key = "utility.wrnog"
    message = refused(sign + key)
    assert "there is no key" in message
    if "rate=" not in key:
        assert nearest in message


@pytest.mark.parametrize("key", ["foo=1", "foo.bar=1"])
def test_where_no_key_is_near_the_message_names_those_that_there_are(conf: Path, key: str) -> None:
    message = refused(key)
    assert f"there is no key '{key.partition('=')[0]}'; keys begin with " in message
    assert "policy" in message
    assert message.rstrip().endswith("`skg-bench list config` shows those of no seam, `skg-bench list` the others")


def test_a_known_key_may_carry_any_sign(conf: Path) -> None:
    for sign in ("", "+", "++"):
        composed = compose([f"{sign}seed=7", f"{sign}policy=never"])
        assert (composed.root["seed"], composed.root["policy"]["rate"]) == (7, 0.0)


@pytest.mark.parametrize("text", ["policy=nver", "+policy=nver", "policy=null", "policy=[never]", "policy={rate: 1}"])
def test_an_unknown_option_of_a_group_is_refused_with_the_valid_ones(conf: Path, text: str) -> None:
    assert "valid: never, threshold" in refused(text)


def test_a_component_cannot_be_left_out(conf: Path) -> None:
    assert "policy cannot be left out; valid: never, threshold" in refused("~policy")
    assert "lacks 'seed'" in refused("~seed")


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["~arms.never.0"], "~arms.never.0: no item of a list can be left out alone; write the list, arms.never=[...]"),
        (["arms.never.0={rate: 1}"], "arms.never.0={rate: 1}: there is no key 'arms.never.0.rate'"),
        (["+arms.never.0.rate=1"], "+arms.never.0.rate=1: there is no key 'arms.never.0.rate'"),
        (["~utility.wrong", "~utility.wrong"], "~utility.wrong: utility.wrong is left out already"),
        (["arms=never"], "arms=never: arms is a table, as in 'arms={one: [], other: [policy=never]}'"),
        (["arms=[never]"], "arms=[never]: arms is a table"),
        (["arms=null"], "arms=null: arms is a table"),
        (["arms.never=null"], "must be a list of overrides such as [policy=never]; '~arms.never' removes the arm"),
        (["~arms"], "there are no arms"),
        (["~arms", "~arms.never"], "~arms.never: arms.never is left out already"),
        (["arms={live: [2020-01-01]}"], "arm 'live': [datetime.date(2020, 1, 1)] must be a list of overrides"),
    ],
)
def test_lists_and_tables_are_changed_whole_or_refused(conf: Path, texts: list[str], reason: str) -> None:
    assert reason in refused(*texts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("users=0", "users=0 must be a whole number from 1"),
        ("users=-3", "from 1"),
        ("users=1.5", "whole number"),
        ("users=many", "whole number"),
        ("users=true", "whole number"),
        ("weeks=0", "weeks=0"),
        ("cohort=0", "cohort=0"),
        ("workers=0", "workers=0"),
        ("hit_latency_ms=-1", "milliseconds, not negative"),
        ("hit_latency_ms=.nan", "milliseconds, not negative"),
        ("hit_latency_ms=soon", "milliseconds, not negative"),
        ("refit_every=0", "refit_every=0"),
        ("refit_on_capture=maybe", "true or false"),
        ("serving=strored", "stored, prompted or procedure"),
        ("utility.wrong=-1", "none negative"),
        ("utility=3", "exactly the keys"),
        ("out=3", "must be a folder"),
        ("experiment=../x", "no such option"),
        ("reference=nver", "did you mean 'never'?"),
        ("arms={}", "there are no arms"),
        ("arms={never: policy=never}", "list of overrides"),
        ("seed=1,2", "add -m"),
        ("seed=[1", "an override reads key=value"),
        ("seed", "an override reads key=value"),
        ("policy@here=never", "may not carry a package"),
    ],
)
def test_values_out_of_range_are_refused_with_what_is_valid(conf: Path, text: str, reason: str) -> None:
    assert reason in refused(text)


def test_an_arm_is_the_roots_overrides_and_its_own(conf: Path) -> None:
    composed = compose(["curator.rate=0.3", "policy.every=9", "refit_every=20"])
    live, frozen, never = (composed.arms[name] for name in ("live", "frozen", "never"))
    assert live["curator"]["rate"] == 0.3
    assert live["policy"]["every"] == 9
    assert frozen["policy"]["every"] == 9
    assert [arm["refit_every"] for arm in (live, frozen, never)] == [20, 20, 20]
    assert frozen["curator"]["at_turn"] == 7
    assert set(live) >= {"router", "reranker", "policy", "curator", "llm", "signals"}
    assert "simulator" not in live


def test_a_value_of_the_root_reaches_the_component_that_an_arm_wraps(conf: Path) -> None:
    frozen = compose(["curator.rate=0.3"]).arms["frozen"]
    assert frozen["curator"]["curator"]["rate"] == 0.3


def test_an_option_inside_of_one_that_the_command_chose_reaches_the_arms() -> None:
    """Else the command names a scripted model, and the arm asks the server of the outer option."""
    composed = compose(
        [
            "experiment=learning_with_a_model",
            "curator.llm=recorded",
            "curator.llm.llm=scripted",
            "arms={model: []}",
            "reference=model",
        ]
    )
    assert composed.root["curator"]["llm"]["llm"]["_target_"] == "skg_bench.llm.scripted.Scripted"
    assert composed.arms["model"]["curator"] == composed.root["curator"]


def test_an_arm_whose_component_lacks_a_key_goes_without_and_that_is_told(conf: Path) -> None:
    composed = compose(["policy.every=9"])
    assert "every" not in composed.arms["never"]["policy"]
    assert composed.without == {"policy.every=9": ["never"]}


def test_arms_are_added_removed_changed_and_replaced(conf: Path) -> None:
    assert list(compose(["+arms.mine=[policy.every=2]"]).arms) == ["live", "frozen", "never", "mine"]
    assert list(compose(["~arms.frozen"]).arms) == ["live", "never"]
    assert compose(["arms.live=[policy.every=2]"]).arms["live"]["policy"]["every"] == 2
    assert list(compose(["arms={a: [policy=never], never: [policy=never]}"]).arms) == ["a", "never"]
    assert "write +arms.liv=" in refused("arms.liv=[policy=never]")
    assert "reference='never' is no arm" in refused("~arms.never")


def test_arms_that_the_command_changed_or_added_are_known(conf: Path) -> None:
    assert compose([]).changed == []
    assert compose(["policy.every=9"]).changed == []
    assert compose(["arms.live=[policy.every=2]", "+arms.mine=[]"]).changed == ["live", "mine"]
    whole = compose([]).root["arms"]
    assert compose([f"arms={json.dumps({**whole, 'mine': ['policy.every=2']})}"]).changed == ["mine"]


def test_a_learner_is_an_arm_or_left_to_the_run(conf: Path) -> None:
    assert compose(["learner=frozen"]).root["learner"] == "frozen"
    assert "learner='frzen' is no arm; did you mean 'frozen'?" in refused("learner=frzen")
    assert "learner=3 must be the name of an arm, or null" in refused("learner=3")


def test_the_arm_without_overrides_bears_the_name_of_the_assistant_that_the_command_chose(conf: Path) -> None:
    write(conf / "assistant" / "ttl.yaml", "_target_: lab_parts.things.Part\nrate: 0.0\n")
    alone = ["~arms.frozen", "~arms.never", "reference=live", "learner=live"]
    assert list(compose(alone).arms) == ["live"]
    composed = compose(["assistant=ttl", *alone])
    assert (list(composed.arms), composed.changed) == (["ttl"], ["ttl"])
    assert (composed.root["reference"], composed.root["learner"]) == ("ttl", "ttl")
    assert list(compose(["assistant=pipeline", *alone]).arms) == ["live"]
    own = compose(["assistant=ttl", "arms={mine: []}", "reference=mine"])  # a name that the command gave stays
    assert list(own.arms) == ["mine"]


@pytest.mark.parametrize("key", ["seed", "users", "weeks", "cohort", "workers", "out", "reference", "utility.wrong"])
def test_arms_share_users_and_draws(conf: Path, key: str) -> None:
    assert f"all arms share {key.split('.')[0]}" in refused(f"+arms.x=['+{key}=3']")


@pytest.mark.parametrize("text", ["simulator=plain", "simulator.rate=0.1", "embedder=plain", "arms.y=[]"])
def test_arms_share_simulator_and_embedder(conf: Path, text: str) -> None:
    assert "all arms share" in refused(f"+arms.x=['{text}']")


def test_a_misspelt_key_or_option_inside_an_arm_is_refused_with_the_arms_name(conf: Path) -> None:
    assert "arm 'x': +polcy=never: there is no key 'polcy'; did you mean 'policy'?" in refused(
        "+arms.x=['+polcy=never']"
    )
    assert "arm 'x': policy=nver" in refused("+arms.x=[policy=nver]")
    assert "arm 'x': curator.at_trun=3" in refused("+arms.x=[curator=frozen,curator.at_trun=3]")
    assert "arm 'x': curator.at_turn=3: there is no key" in refused("+arms.x=[curator.at_turn=3]")


@pytest.mark.parametrize("name", ["a.b", "a/b", "'*'", "a b", "ä", "''", "x" * 41])
def test_names_of_arms_are_safe_in_file_names(conf: Path, name: str) -> None:
    assert "must be a name of letters" in refused("arms={" + name + ": [policy=never], never: [policy=never]}")


def test_a_misspelt_key_in_a_yaml_is_refused_too(conf: Path) -> None:
    for name in ("typo", "torn", "loose"):
        write(conf / "experiment" / f"{name}.yaml", "")
    forget()
    write(conf / "experiment" / "typo.yaml", "# @package _global_\nexperiment: typo\nrefrence: never\n")
    assert "unknown key 'refrence'" in refused("experiment=typo")
    write(conf / "experiment" / "torn.yaml", "# @package _global_\nexperiment: [torn\n")
    assert "does not compose" in refused("experiment=torn")
    write(conf / "experiment" / "loose.yaml", "# @package _global_\nexperiment: loose\nquestion: ${nowhere}\n")
    assert "nowhere" in refused("experiment=loose")


RESOLVERS = [
    "${oc.env:OPIK_API_KEY}",
    "${ oc.env : OPIK_API_KEY }",
    "key ${oc.env:OPIK_API_KEY} or ${seed}",
    "${oc.decode:${oc.env:OPIK_API_KEY}}",
    "${oc.create:{a: ${oc.env:OPIK_API_KEY}}}",
    "${oc.select:nowhere,${oc.env:OPIK_API_KEY}}",
    "${${reference}:OPIK_API_KEY}",
    "${policy.${oc.env:OPIK_API_KEY}}",
    "$${seed}{oc.env:OPIK_API_KEY}",
    "${now:%Y}",
]


@pytest.mark.parametrize("text", RESOLVERS)
def test_a_text_that_asks_a_resolver_is_refused_wherever_it_stands(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OPIK_API_KEY", "hidden-key")
    experiment = (
        "# @package _global_\nexperiment: {name}\narms: {{never: [{arm}]}}\nreference: never\nquestion: {said}\n"
    )
    write(conf / "experiment" / "asks.yaml", experiment.format(name="asks", arm="policy=never", said=f"'{text}'"))
    arm = f"\"policy.kind='{text}'\""
    write(conf / "experiment" / "armed.yaml", experiment.format(name="armed", arm=arm, said="Why?"))
    added = tmp_path / "site" / "lab_parts" / "conf"
    write(added / "reranker" / "asks.yaml", f"_target_: lab_parts.things.Part\nrate: 0.5\nnames: [a, '{text}']\n")
    forget()
    for given in (
        [f"question='{text}'"],
        [f"+question='{text}'"],
        [f"policy.names=[a,'{text}']"],
        [f"utility={{wrong: '{text}'}}"],
        [f"""+arms.mine=["policy.kind='{text}'"]"""],
        ["experiment=asks"],
        ["experiment=armed"],
        ["reranker=asks"],
        ["+arms.mine=[reranker=asks]"],
    ):
        message = refused(*given)
        assert "may name another key of the configuration" in message, given
        assert "hidden-key" not in message


def test_a_resolver_cannot_be_spelt_in_another_way(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPIK_API_KEY", "hidden-key")
    for given in (
        r"question=$\{oc.env\:OPIK_API_KEY\}",
        "question=str(${oc.env:OPIK_API_KEY})",
        r"question='\${oc.env:OPIK_API_KEY}'",
        r"""arms={never: ["question=\x24{oc.env:OPIK_API_KEY}"]}""",
    ):
        assert "may name another key of the configuration" in refused(given)


def test_a_value_is_shown_as_a_command_writes_it(conf: Path) -> None:
    with pytest.raises(UsageError, match="workers=null must be a whole number from 1 to 1024"):
        compose(["workers=null"])
    with pytest.raises(UsageError, match="out='~/runs' would be a folder called ~ here"):
        compose(["out='~/runs'"])


def test_a_text_may_name_another_key(conf: Path) -> None:
    assert compose(["question='seed ${seed}, rate ${ policy.rate }'", "seed=7"]).root["question"] == "seed 7, rate 0.5"


def test_a_sweep_expands_to_cells_and_the_last_override_varies_fastest() -> None:
    assert sweep_cells(["seed=1,2", "users=3", "policy=never,always"]) == [
        ["seed=1", "users=3", "policy=never"],
        ["seed=1", "users=3", "policy=always"],
        ["seed=2", "users=3", "policy=never"],
        ["seed=2", "users=3", "policy=always"],
    ]
    assert sweep_cells(["+seed=range(3)"]) == [["+seed=0"], ["+seed=1"], ["+seed=2"]]


@pytest.mark.parametrize(("text", "says"), [
    ("users=glob(*)", "does not list the values of a sweep"), ("users=range(4,6,0)", "does not list the values"),
    ("policy.threshold=interval(0,1)", "does not list the values of a sweep"), ("users=range(4,4)", "has no value"),
    ("part=0/2,1/2", "part changes no result, so that all"), ("workers=1,2", "all values are one run; give one"),
])  # fmt: skip
def test_a_sweep_without_values_or_without_effect_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as refused:
        sweep_cells([text])
    assert str(refused.value).startswith(text)


def test_keys_of_utility_that_are_known_without_importing_its_module_are_those_of_that_module() -> None:
    assert root_checks._PRICES == PRICES


_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="$"), max_size=8)
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("key"), inner))


@hypothesis.given(_VALUES)
def test_a_value_that_is_written_as_an_override_is_read_as_the_same(value: Any) -> None:
    (override,) = parse([f"assistant.parameters.key={override_value(value)}"])
    assert override.value == value
    assert type(override.value) is type(value)


@pytest.mark.parametrize(("text", "shown"), [
    ("a-b/c.csv", "a-b/c.csv"), ("../x", "../x"), ("null", '"null"'), ("True", '"True"'), ("inf", '"inf"'),
    ("1e5", '"1e5"'), ("größe.csv", '"größe.csv"'), ("", '""'), ('a"b', r'"a\"b"'), ("end\\", r'"end\\"'),
])  # fmt: skip
def test_only_a_word_that_hydra_reads_as_itself_is_written_without_quotes(text: str, shown: str) -> None:
    assert override_value(text) == shown
    assert parse([f"assistant.parameters.key={shown}"])[0].value == text


def test_what_no_configuration_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="is of the class complex; a configuration holds texts, numbers, true"):
        override_value({"depth": [1j]})
