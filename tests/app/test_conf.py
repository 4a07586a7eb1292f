"""Every yaml composes and builds; a component is one file and one yaml."""

from dataclasses import fields
from pathlib import Path

import pytest

from skg_bench.app.arm_keys import PARTS_OF_PIPELINE, PIPELINE, SEAMS_OF_ARMS, SHARED_SEAMS
from skg_bench.app.building import build
from skg_bench.app.compose import compose, composer
from skg_bench.app.composed_arms import arms
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.overrides import parse
from skg_bench.app.packages import groups
from skg_bench.app.root_checks import SCALARS
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.assistant.pipeline.components import Components
from skg_bench.core.arms import Arm
from skg_bench.core.package import CONF
from skg_bench.engine.plan import Plan
from tests.conformance import suite

COMPONENTS = [
    (seam, option)
    for seam, options in groups().items()
    for option in options
    if seam not in ("experiment", "profile", "signals", "signs", "jobs", "store")  # a run has no store
]
CONFORMING = {(case.seam, case.option) for case in suite.cases() if str(case) not in suite.SKIPPED}

OF_A_DOMAIN = dict.fromkeys([("curator", "facts"), ("curator", "facts_clinc150")], "skg_bench.simulator.facts.")
"""Options that live in the folder of a domain: they read its file, and seams do not import one another."""


@pytest.mark.parametrize("seam", sorted({seam for seam, _ in COMPONENTS}))
def test_an_option_is_one_yaml_with_one_target_in_the_folder_of_its_seam(seam: str) -> None:
    options = [option for each, option in COMPONENTS if each == seam]
    for option, node in zip(options, hydra_trees().options(seam, options), strict=True):
        assert node["_target_"].startswith(OF_A_DOMAIN.get((seam, option), f"skg_bench.{seam}.")), option


@pytest.mark.parametrize(("seam", "option"), [each for each in COMPONENTS if each not in CONFORMING])
def test_an_option_that_no_case_of_conformance_builds_is_built(seam: str, option: str) -> None:
    node = composer().root(parse([f"{seam}={option}"]))[seam]
    assert node == {"_target_": PIPELINE} or build(seam, node, COMMAND_LINE)  # its components are groups of their own


@pytest.mark.parametrize("experiment", groups()["experiment"])
def test_every_experiment_composes_and_its_folder_and_name_agree(experiment: str) -> None:
    composed = compose([f"experiment={experiment}"])
    assert composed.root["experiment"] == experiment
    assert composed.root["question"]
    assert list(composed.arms) == [arm.name for arm in arms(composed.arms, COMMAND_LINE)]


def test_profiles_differ_in_size_only() -> None:
    sizes = {}
    for profile in groups()["profile"]:
        root = composer().root(parse([f"profile={profile}"]))
        assert root.pop("profile") == profile
        users, weeks = root.pop("users"), root.pop("weeks")
        sizes[profile] = users * weeks if profile != "log" else 0  # all of a log, whatever that is
        assert (users is None) == (weeks is None) == (profile == "log")
        root.pop("workers")
        assert root == {
            k: v for k, v in composer().root([]).items() if k not in ("profile", "users", "weeks", "workers")
        }
    assert sizes["smoke"] < sizes["demo"] < sizes["paper"]


def test_the_root_has_a_value_for_each_field_of_a_plan_and_of_an_arm() -> None:
    assert {*PARTS_OF_PIPELINE} == {field.name for field in fields(Components)}
    assert {field.name for field in fields(Arm)} == {"name", *SEAMS_OF_ARMS} - {*PARTS_OF_PIPELINE}
    assert {field.name for field in fields(Plan)} <= {*SCALARS, *SHARED_SEAMS, "arms"}


def test_every_group_has_a_folder_of_code(tmp_path: Path) -> None:
    seams = {folder.name for folder in CONF.iterdir() if folder.is_dir()} - {
        "experiment",
        "profile",
        "signals",
        "signs",
        "jobs",
    }
    assert all((CONF.parent / "skg_bench" / seam).is_dir() for seam in seams)
