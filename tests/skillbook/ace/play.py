"""Plays a recorded case on our documents, step by step, and returns what the recorder wrote down of the package."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skg_bench.skillbook.ace import published_prompts, upkeep
from skg_bench.skillbook.ace.attach import attach, reflection_of
from skg_bench.skillbook.ace.book import AceBook, CompatMode, Era, dumps, to_dict
from skg_bench.skillbook.ace.consolidation import consolidate
from skg_bench.skillbook.ace.engine import apply_as_published, apply_operations
from skg_bench.skillbook.ace.engine_failures import ERRORS, AceFailure
from skg_bench.skillbook.ace.loading import published_loads
from skg_bench.skillbook.ace.operations import batch_json, batch_of, built, operation_of, to_json
from skg_bench.skillbook.ace.similarity import THRESHOLD, retrieve, similar_pairs
from skg_bench.skillbook.ace.sources import source_filter, source_summary

NOW = "<NOW>"
CASES = Path(__file__).parents[2] / "oracles" / "ace"
MODES: dict[Era, CompatMode] = {"v1": "compat-v1", "v09": "compat-v09", "v2": "compat-v2"}
Case = dict[str, Any]
TELL = ("apply", "consolidate", "mark_used", "purge", "soft_remove")  # steps that return failures of the package


def cases(file: str = "cases.jsonl") -> list[Case]:
    return [json.loads(line) for line in (CASES / file).read_text("utf-8").splitlines()]


class Player:
    """A book that steps change."""

    def __init__(self, schema: Era) -> None:
        self.era: Era = schema
        self.mode: CompatMode = MODES[schema]
        self.book = AceBook(self.era)

    def load(self, initial: Any) -> Case:
        if initial is None:
            return {"ok": "load"}
        try:
            self.book = published_loads(initial if isinstance(initial, str) else json.dumps(initial), self.mode, NOW)
        except ERRORS as error:
            return {"error": {"stage": "load", "type": type(error).__name__}}
        return {"ok": "load"}

    def step(self, step: Case) -> Case:
        name = step["op"]
        if name in TELL:
            return self._done(step)
        try:
            return self._done(step)
        except (*ERRORS, RuntimeError) as error:
            return {"error": {"stage": name, "type": type(error).__name__}}

    def _done(self, step: Case) -> Case:
        outcome: Case = getattr(self, f"do_{step['op']}")(step)
        return outcome

    def do_apply(self, step: Case) -> Case:
        outcome = apply_as_published(self.book, step["batch"], self.mode, NOW)
        self.book = outcome.book
        parsed = {} if outcome.batch is None else {"parsed": batch_json(outcome.batch, self.era)}
        return _outcome("apply", outcome.failure) | parsed

    def do_apply_direct(self, step: Case) -> Case:
        operations = [built(fields, self.era) for fields in step["operations"]]
        self.book, failure = apply_operations(self.book, operations, self.mode, NOW)
        return _outcome("apply", failure)

    def do_reload(self, step: Case) -> Case:
        self.book = published_loads(dumps(self.book), self.mode, NOW)
        return {"ok": "reload"}

    def do_mark_used(self, step: Case) -> Case:
        self.book, failure = upkeep.mark_used(self.book, step["ids"], NOW)
        return _outcome("mark_used", failure)

    def do_soft_remove(self, step: Case) -> Case:
        self.book, failure = upkeep.soft_remove(self.book, step["id"], NOW)
        return _outcome("soft_remove", failure)

    def do_purge(self, step: Case) -> Case:
        self.book, failure = upkeep.purge(self.book, step["id"])
        return _outcome("purge", failure)

    def do_consolidate(self, step: Case) -> Case:
        outcome = consolidate(self.book, step["operations"], NOW)
        self.book = outcome.book
        return _outcome("consolidate", outcome.failure) | ({} if outcome.failure else {"n_parsed": outcome.parsed})

    def do_embed(self, step: Case) -> Case:
        self.book = upkeep.embed(self.book, step["vectors"])
        return {"ok": "embed"}

    def do_similar_pairs(self, step: Case) -> Case:
        config = step.get("config") or {}
        pairs = similar_pairs(
            self.book, step.get("threshold"), usual=config.get("similarity_threshold", THRESHOLD),
            within_section=config.get("within_section_only", True),
        )  # fmt: skip
        return {"ok": "similar_pairs", "pairs": [[a.id, b.id, round(cosine, 6)] for a, b, cosine in pairs]}

    def do_retrieve(self, step: Case) -> Case:
        wanted = {name: step[name] for name in ("section", "keywords") if name in step}
        skills = retrieve(self.book, step["query"], step["query_embedding"], step.get("top_k", 5), **wanted)
        return {"ok": "retrieve", "ids": [skill.id for skill in skills]}

    def do_cited(self, step: Case) -> Case:
        return {"ok": "cited", "ids": list(published_prompts.cited(step["text"]))}

    def do_wrap_context(self, step: Case) -> Case:
        text = published_prompts.wrap_context(self.book)
        return {
            "ok": "wrap_context",
            "empty": not text,
            "contains_as_prompt": published_prompts.as_prompt(self.book) in text,
        }

    def do_xml(self, step: Case) -> Case:
        return {"ok": "xml", "strategies_block": published_prompts.xml(self.book)}

    def do_source_summary(self, step: Case) -> Case:
        return {"ok": "source_summary", "value": json.loads(json.dumps(source_summary(self.book)))}

    def do_source_filter(self, step: Case) -> Case:
        return {"ok": "source_filter", "value": source_filter(self.book, **step["kwargs"])}

    def do_commit_child(self, step: Case) -> Case:
        parents = [operation_of(fields, self.era) for fields in step["parent_operations"]]
        self.book, failure = apply_operations(self.book, parents, self.mode, NOW)
        if failure is not None:
            return {"error": {"stage": "commit_child", "type": failure.type}}
        children = [operation_of(fields, self.era) for fields in step["child_operations"]]
        self.book, ids, failure = upkeep.commit_child(self.book, children, NOW)
        return _outcome("commit_child", failure) | ({} if failure else {"id_map": ids})

    def do_attach(self, step: Case) -> Case:
        batch = batch_of(step["batch"], self.era)
        reflections = [reflection_of(payload) for payload in step["reflections"]]
        wanted = {name: step[name] for name in ("epoch", "sample_question") if name in step}
        operations = attach(batch.operations, reflections, step["trace"], **wanted)
        self.book, failure = apply_operations(self.book, operations, self.mode, NOW)
        if failure is not None:
            return {"error": {"stage": "attach", "type": failure.type}}
        return {"ok": "attach", "operations": [to_json(operation, self.era) for operation in operations]}


def _outcome(name: str, failure: AceFailure | None) -> Case:
    return {"ok": name} if failure is None else {"error": {"stage": failure.stage, "type": failure.type}}


def observed(view: Callable[[AceBook], Any], book: AceBook) -> Any:
    """What a view of the book says, or the class of its error."""
    try:
        return view(book)
    except ERRORS as error:
        return {"error": {"stage": view.__name__, "type": type(error).__name__}}


def expectation(player: Player, outcomes: list[Case]) -> Case:
    """What the recorder writes down after the last step."""
    if "error" in outcomes[0]:
        return {"outcomes": outcomes, "skillbook": None}
    return {
        "outcomes": outcomes,
        "skillbook": observed(to_dict, player.book),
        "active_ids": [skill.id for skill in player.book.active],
        "as_prompt": observed(published_prompts.as_prompt, player.book),
        "stats": observed(published_prompts.stats, player.book),
    }


def played(case: Case) -> Case:
    """The case as our documents behave; it ends with the first step that fails."""
    player = Player(case["schema"])
    outcomes = [player.load(case["initial"])]
    for step in case["steps"]:
        if "error" in outcomes[-1]:
            break
        outcomes.append(player.step(step))
    return expectation(player, outcomes)
