"""The published ace-framework as a curator: its contract, and its operations beside ours for the same decisions.

What needs the package runs where `make peers-ace` was; with CI=true and PEERS=ace in the environment it must.
"""

import ast
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from skg_bench.app.building import build
from skg_bench.app.hydra_trees import hydra_trees
from skg_bench.app.trust import COMMAND_LINE
from skg_bench.asking.asking import Completion, Prompt
from skg_bench.asking.wire import ChatChoice
from skg_bench.core.batch import OPERATIONS, Batch
from skg_bench.curator.peer import Peer
from skg_bench.curator.reflecting import Reflecting
from skg_bench.simulator.advice.levels import OUTCOME, OVERRIDDEN
from skg_bench.skillbook.proposals import refusals_of
from tests.curator.advised import Turn
from tests.curator.test_writers import books
from tests.imports import parsed, syntax_nodes
from tests.skillbook.ace.live import ROOT, python

Decision = tuple[str, Mapping[str, Any]]
PEER = ROOT / "skg_bench" / "peers" / "ace_framework.py"


def made(name: str) -> Any:
    (node,) = hydra_trees().options("curator", [name])
    return build("curator", node, COMMAND_LINE)


@pytest.fixture(scope="module")
def published() -> Peer:
    """The package's curator, where it is installed: one program for all tests, whose model decides as they say."""
    if not python("v2").exists() or not _installed():
        if os.environ.get("CI") == "true" and os.environ.get("PEERS") == "ace":
            pytest.fail("PEERS=ace asks for ace-framework 0.13.0, which has no environment here: make peers-ace")
        pytest.skip("ace-framework 0.13.0 has no environment here: make peers-ace")
    curator = made("ace_framework")
    assert isinstance(curator, Peer)
    return replace(curator, llm=Deciding(), command=[str(python("v2")), *(curator.command or ())[1:]])


def _installed() -> bool:
    done = subprocess.run([python("v2"), "-c", "import openai, pydantic_ai"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.req("P15")
def test_one_file_imports_the_learning_engine_and_no_other_one_names_it() -> None:
    naming = set()
    for folder in ("skg_bench", "experiments", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in syntax_nodes(parsed(path)):
                match node:
                    case ast.Import(names=names):
                        modules = [alias.name for alias in names]
                    case ast.ImportFrom(module=str(module), level=0):
                        modules = [module]
                    case ast.Constant(value=str(text)):  # as for importlib
                        modules = [text] if text.startswith(("ace.core", "ace.implementations")) else []
                    case _:
                        continue
                if any(module.split(".")[0] == "ace" for module in modules):
                    naming.add(path)
    assert naming == {PEER}


def test_the_peer_imports_nothing_of_this_project() -> None:
    tree = ast.parse(PEER.read_text("utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in modules if name and name.startswith("skg_bench")}


@dataclass(frozen=True, eq=False)
class Deciding:
    """Decides by a list of calls of tools, for the package and for ours, and keeps what it was asked."""

    changes: list[Decision] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)

    def decide(self, changes: Sequence[Decision]) -> None:
        """Decide so from now on."""
        self.changes[:] = changes
        self.prompts.clear()

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"model": "test", "temperature": 0.0, "top_p": 1.0}

    @property
    def prices(self) -> None:
        return None

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        self.prompts.extend(prompts)
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: Prompt) -> Completion:
        if prompt.raw is not None:
            return Completion(self._choice(prompt.raw).text, None, "ok", 10, 0, 5, 0.25, 100.0)
        value: Mapping[str, Any] = {
            "analysis": "r",
            "helpful_skill_ids": [],
            "harmful_skill_ids": [],
            "new_learnings": [],
        }
        if prompt.role != "reflector":
            value = {"update": {"reasoning": "r", "operations": [operation_of(*each) for each in self.changes]}}
        return Completion(json.dumps(value), value, "ok", 10, 0, 5, 0.25, 100.0)

    def _choice(self, raw: Mapping[str, Any]) -> ChatChoice:
        tools = {tool["function"]["name"] for tool in raw["tools"]}
        done = any(message["role"] == "tool" for message in raw["messages"])
        if "add_skill" not in tools:
            calls = [("final_result", {"reasoning": "r", "correct_approach": "c", "key_insight": "k"})]
        elif done or not self.changes:
            calls = [("final_result", {"reasoning": "r"})]
        else:
            calls = [(name, dict(fields)) for name, fields in self.changes]
        listed = [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(fields)}}
            for i, (name, fields) in enumerate(calls)
        ]
        return ChatChoice({"tool_calls": listed}, "tool_calls")


def ours() -> Reflecting:
    """Our curator with batches of the package's schema."""
    curator = replace(made("reflecting"), batches="v2", llm=Deciding())
    assert isinstance(curator, Reflecting)
    return curator


def operation_of(tool: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The operation that a call of a tool stands for, in a batch of schema 2."""
    kind = tool.removesuffix("_skill").upper()
    kept = {name: value for name, value in fields.items() if name != "delta"}
    delta = {"metadata": {"delta": fields["delta"]}} if "delta" in fields else {}
    return {"type": kind, **kept, **delta}


USED, OTHER = "section0-00001", "section1-00002"
ADD = {"section": "context", "issue": "Late at night", "insight": "Offer to wait.", "keywords": ["night"]}
TAG_USED = ("tag_skill", {"skill_id": USED, "delta": 1})


def played(curator: Peer | Reflecting, *changes: Decision, served: int = 0) -> tuple[Turn, Batch, list[Prompt]]:
    """A turn of a user whose book has three skills, what it got by decisions, and what was asked."""
    turn = Turn(1)
    books(turn, "Say the price in hours.", "Wait for a day.", "Ask what for.")
    turn.hear(OUTCOME, OVERRIDDEN, skill=served)
    assert isinstance(curator.llm, Deciding)
    curator.llm.decide(changes)
    _, batch = turn.curated(curator)
    return turn, batch, [*curator.llm.prompts]


def outcome(curator: Peer | Reflecting, *changes: Decision) -> tuple[list[Any], list[str]]:
    """Operations of decisions, and the codes of what is refused."""
    turn, batch, _ = played(curator, *changes)
    contents = [
        each and (each.section, each.issue, each.insight, each.keywords)
        for each in turn.texts.contents.of(batch.content)
    ]
    rows = zip([OPERATIONS[op] for op in batch.op], batch.skill.tolist(), batch.rating.tolist(), contents, strict=True)
    (jobs,) = turn.jobs
    refusals = turn.texts.read(jobs.refusals, jobs.row)[0] if jobs.refused[0] else ""
    return [*rows], [refusal.code for refusal in refusals_of(refusals)]


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ([TAG_USED], []),
        ([TAG_USED, ("add_skill", ADD), ("add_skill", {**ADD, "issue": "At noon", "keywords": ["b", "a"]})], []),
        ([("remove_skill", {"skill_id": OTHER, "reason": "old"}), ("add_skill", ADD)], ["too few ratings"]),
        ([("update_skill", {"skill_id": OTHER, "issue": "Wait for two days."}), TAG_USED], ["too few ratings"]),
        ([("tag_skill", {"skill_id": OTHER, "delta": -1}), TAG_USED], ["not shown"]),
        ([("add_skill", {**ADD, "insight": "See https://a.example/b"}), TAG_USED], ["an address"]),
        ([], []),
    ],
)
@pytest.mark.req("P15")
def test_the_same_decisions_are_the_same_operations_of_the_package_and_of_ours(
    published: Peer, changes: list[Decision], refused: list[str]
) -> None:
    theirs = outcome(published, *changes)
    assert theirs == outcome(ours(), *changes)
    assert theirs[1] == refused
    assert len(theirs[0]) == len(changes) - len(refused)


@pytest.mark.parametrize(
    ("change", "theirs", "mine", "why"),
    [
        (("tag_skill", {"skill_id": "gone-00009", "delta": 1}), [], ["unknown skill"], "its tool says there is none"),
        (("update_skill", {"skill_id": "gone-00009", "issue": "x"}), [], ["unknown skill"], "its tool says so, too"),
        (
            ("add_skill", {**ADD, "section": "hints"}),
            [("context", ("night",))],
            ["invalid"],
            "its tool has two sections",
        ),
        (("add_skill", {**ADD, "keywords": ["At Night"]}), [("context", ("at_night",))], [], "both write keywords so"),
    ],
)
def test_a_decision_that_the_format_does_not_have_is_mended_by_the_package_and_refuses_our_whole_batch(
    published: Peer, change: Decision, theirs: list[Any], mine: list[str], why: str
) -> None:
    tag = ("TAG", 0, 0, None)
    rows, refused = outcome(published, TAG_USED, change)
    assert (rows[0], refused) == (tag, []), why
    assert [(content[0], content[3]) for _, _, _, content in rows[1:]] == theirs, why
    assert outcome(ours(), TAG_USED, change) == ([] if mine else rows, mine)
    mended, _ = outcome(replace(ours(), batches="compat-v2"), TAG_USED, change)
    assert [(content[0], content[1]) for *_, content in mended[1:]] == [(each[0], ADD["issue"]) for each in theirs]
    assert mended[0] == tag


@pytest.mark.req("U13")
@pytest.mark.parametrize("served", range(3))
def test_the_packages_roles_are_told_the_skill_that_was_served_and_may_tag_no_other(
    published: Peer, served: int
) -> None:
    labels = [USED, OTHER, "section2-00003"]
    tags: list[Decision] = [("tag_skill", {"skill_id": label, "delta": -1}) for label in labels]
    turn, batch, prompts = played(published, *tags, served=served)
    reflector, manager, _ = prompts
    assert [label for label in labels if f"[{label}] Issue" in reflector.user] == [labels[served]]
    assert f'["{labels[served]}"]' in manager.user
    assert batch.skill[batch.rating >= 0].tolist() == [served]
    assert turn.jobs[0].refused.tolist() == [2]
    assert turn.jobs[0].tokens_in.tolist() == [30]  # reflector, manager, and its report


def test_the_package_asks_and_proposes_alike_in_another_process(published: Peer) -> None:
    changes: list[Decision] = [TAG_USED, *(("add_skill", {**ADD, "issue": f"case {i}"}) for i in range(2))]
    turns = [played(curator, *changes) for curator in (published, replace(published))]
    first, again = ([prompt.raw for prompt in prompts] for _, _, prompts in turns)
    assert first == again  # a set in its prompts has one order
    assert [*turns[0][1].op] == [*turns[1][1].op]  # TAG and ADDs in the order of the model
