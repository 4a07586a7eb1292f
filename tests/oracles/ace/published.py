"""Plays cases on the published package: a case a line in, what was observed a line out.

It runs in an environment that holds ace-framework and nothing of this project (`make peers-ace`). The parts that need
no model are loaded by themselves, as the packages around them import clients of models.

    python published.py v2 < cases.jsonl > observed.jsonl
"""

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

NOW = "<NOW>"
Json = dict[str, Any]


class Clock:
    """Stands for `datetime` in their modules: it is always now."""

    @staticmethod
    def now(_zone: object = None) -> SimpleNamespace:
        return SimpleNamespace(isoformat=lambda: NOW)


def bare_package(name: str) -> None:
    """A package whose modules can be imported without running its own start."""
    parent = importlib.import_module(name.rpartition(".")[0])
    module = ModuleType(name)
    module.__path__ = [f"{parent.__path__[0]}/{name.rpartition('.')[2]}"]
    sys.modules[name] = module


def children() -> Any:
    """The class that takes over a child agent's work; of the agent around it only the name is needed."""

    @dataclass
    class AgenticDeps:
        unused: object = field(default=None)

    for name, names in (
        ("pydantic_ai", {"RunContext": object}),
        ("ace.core.recursive_agent", {"AgenticDeps": AgenticDeps}),
    ):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    return importlib.import_module("ace.implementations.sm_tools").SMDeps


class Published:
    """The package of one format."""

    def __init__(self, era: str) -> None:
        self.era = era
        root = "ace" if era == "v1" else "ace.core"
        self.module: Any = importlib.import_module(f"{root}.skillbook")
        self.updates = importlib.import_module("ace.updates") if era == "v1" else self.module
        operations = importlib.import_module("ace.deduplication.operations")
        self.dedup = importlib.import_module("ace.deduplication")
        for module in (self.module, operations):
            vars(module)["datetime"] = Clock
        config = "ace.deduplication.config" if era == "v1" else "ace.protocols.deduplication"
        self.config = importlib.import_module(config).DeduplicationConfig
        if era != "v1":
            bare_package("ace.implementations")
            bare_package("ace.steps")
        if era == "v2":
            self.rendering = importlib.import_module("ace.implementations.skill_rendering")
            self.helpers = importlib.import_module("ace.implementations.helpers")
            self.children = children()
        if era == "v09":
            self.attaching = importlib.import_module("ace.steps.attach_insight_sources")
            self.outputs = importlib.import_module("ace.core.outputs")
        wrapping = "ace.prompts_v2_1" if era == "v1" else "ace.implementations.prompts"
        self.wrap = importlib.import_module(wrapping).wrap_skillbook_for_external_agent
        self.book = self.module.Skillbook()

    def load(self, initial: Any) -> Json:
        self.book = self.module.Skillbook()
        if initial is not None:
            text = initial if isinstance(initial, str) else json.dumps(initial)
            self.book = self.module.Skillbook.loads(text)
        return {"ok": "load"}

    def do_apply(self, step: Json) -> Json:
        batch = self.parsed(step["batch"])
        try:
            self.book.apply_update(batch)
        except Exception as error:  # noqa: BLE001 (whatever they raise is recorded)
            return failed("apply", error) | {"parsed": batch.to_json()}
        return {"ok": "apply", "parsed": batch.to_json()}

    def parsed(self, payload: Any) -> Any:
        try:
            return self.updates.UpdateBatch.from_json(payload)
        except Exception as error:
            raise StageError("parse", error) from error

    def do_apply_direct(self, step: Json) -> Json:
        operations = [self.updates.UpdateOperation(**fields) for fields in step["operations"]]
        try:
            self.book.apply_update(self.updates.UpdateBatch(reasoning="", operations=operations))
        except Exception as error:
            raise StageError("apply", error) from error
        return {"ok": "apply"}

    def do_reload(self, step: Json) -> Json:
        self.book = self.module.Skillbook.loads(self.book.dumps())
        return {"ok": "reload"}

    def do_mark_used(self, step: Json) -> Json:
        self.book.mark_used(step["ids"])
        return {"ok": "mark_used"}

    def do_soft_remove(self, step: Json) -> Json:
        self.book.remove_skill(step["id"], soft=True)
        return {"ok": "soft_remove"}

    def do_purge(self, step: Json) -> Json:
        self.book.remove_skill(step["id"], soft=False)
        return {"ok": "purge"}

    def do_consolidate(self, step: Json) -> Json:
        manager = self.dedup.DeduplicationManager(self.config())
        operations = manager.parse_consolidation_operations({"consolidation_operations": step["operations"]})
        manager.apply_operations(operations, self.book)
        return {"ok": "consolidate", "n_parsed": len(operations)}

    def do_embed(self, step: Json) -> Json:
        for key, vector in step["vectors"].items():
            if key in self.book._skills:
                self.book._skills[key].embedding = list(vector)
        return {"ok": "embed"}

    def do_similar_pairs(self, step: Json) -> Json:
        detector = self.dedup.SimilarityDetector(self.config(**(step.get("config") or {})))
        pairs = detector.detect_similar_pairs(self.book, step.get("threshold"))
        return {"ok": "similar_pairs", "pairs": [[a.id, b.id, round(cosine, 6)] for a, b, cosine in pairs]}

    def do_retrieve(self, step: Json) -> Json:
        detector = self.dedup.SimilarityDetector(self.config())
        detector.compute_embedding = lambda text: step["query_embedding"]
        detector.compute_embeddings_batch = lambda texts: [None] * len(texts)
        wanted = {name: step[name] for name in ("section", "keywords", "top_k") if name in step}
        skills = self.rendering.retrieve_top_k(self.book, step["query"], detector=detector, **wanted)
        return {"ok": "retrieve", "ids": [skill.id for skill in skills]}

    def do_cited(self, step: Json) -> Json:
        return {"ok": "cited", "ids": self.helpers.extract_cited_skill_ids(step["text"])}

    def do_wrap_context(self, step: Json) -> Json:
        text = self.wrap(self.book)
        return {"ok": "wrap_context", "empty": not text, "contains_as_prompt": self.book.as_prompt() in text}

    def do_xml(self, step: Json) -> Json:
        return {
            "ok": "xml",
            "strategies_block": self.rendering.render_skills_xml(self.book.skills()).rpartition("\n\n")[0],
        }

    def do_source_summary(self, step: Json) -> Json:
        return {"ok": "source_summary", "value": self.book.source_summary()}

    def do_source_filter(self, step: Json) -> Json:
        return {"ok": "source_filter", "value": self.book.source_filter(**step["kwargs"])}

    def do_commit_child(self, step: Json) -> Json:
        read = self.updates.UpdateOperation.from_json
        child = self.children(skillbook=self.book.clone(), operations=[read(f) for f in step["child_operations"]])
        parents = [read(fields) for fields in step["parent_operations"]]
        self.book.apply_update(self.updates.UpdateBatch(reasoning="", operations=parents))
        return {"ok": "commit_child", "id_map": self.children(skillbook=self.book).commit_child(child)}

    def do_attach(self, step: Json) -> Json:
        batch = self.updates.UpdateBatch.from_json(step["batch"])
        reflections = [self.outputs.ReflectorOutput(**payload) for payload in step["reflections"]]
        wanted = {name: step[name] for name in ("epoch", "sample_question") if name in step}
        batch.operations = self.attaching.build_insight_source(
            reflections=reflections, operations=batch.operations, trace=step["trace"], **wanted
        )
        self.book.apply_update(batch)
        return {"ok": "attach", "operations": [operation.to_json() for operation in batch.operations]}


class StageError(Exception):
    """An error of a known stage."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(stage)
        self.stage, self.error = stage, error


def failed(stage: str, error: Exception) -> Json:
    if isinstance(error, StageError):
        stage, error = error.stage, error.error
    return {"error": {"stage": stage, "type": type(error).__name__}}


def observed(name: str, view: Callable[[], Any]) -> Any:
    try:
        return view()
    except Exception as error:  # noqa: BLE001 (whatever they raise is recorded)
        return failed(name, error)


def play(published: Published, case: Json) -> Json:
    """The case's `expect`; with `goes_on` also after an error, and with the text of the book after each step."""
    try:
        outcomes = [published.load(case["initial"])]
    except Exception as error:  # noqa: BLE001 (whatever they raise is recorded)
        return {"outcomes": [failed("load", error)], "skillbook": None}
    texts = [observed("dumps", published.book.dumps)]
    for step in case["steps"]:
        if "error" in outcomes[-1] and not case.get("goes_on"):
            break
        try:
            outcomes.append(getattr(published, f"do_{step['op']}")(step))
        except Exception as error:  # noqa: BLE001 (whatever they raise is recorded)
            outcomes.append(failed(step["op"], error))
        if case.get("goes_on"):
            texts.append(observed("dumps", published.book.dumps))
    book = published.book
    return {
        "outcomes": outcomes,
        "skillbook": observed("to_dict", book.to_dict),
        "active_ids": [skill.id for skill in book.skills()],
        "as_prompt": observed("as_prompt", book.as_prompt),
        "stats": observed("stats", book.stats),
        **({"texts": texts} if case.get("goes_on") else {}),
    }


def main() -> None:
    published = Published(sys.argv[1])
    out, sys.stdout = sys.stdout, sys.stderr  # some of their modules print
    for line in sys.stdin:
        out.write(json.dumps(play(published, json.loads(line))) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
