"""Random books and batches, sensible and not, for the published packages and ours."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skg_bench.skillbook.ace.book import Era
from skg_bench.skillbook.ace.operations import PRINTED, TAGS
from tests.skillbook.ace.play import Case

TIME = "2026-01-01T00:00:00+00:00"
JUNK: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2.7, -0.5, 0.0, 1e-7, 1e22, float("inf"), float("nan"), "", "  ", " \n", "5",
    " -2 ", "--5", "²", "9" * 4400, "x", "true", "null", "-a", "# b", "1e5", "a\tb", 'say "a": [b], {c}\\', "a\nb\r",
    "Ünï \u200f עברית 🙂", "\ud800", "\x00\x1f", "context", "HARNESS ", "tone of voice", "İ", "ſ", "a,b", [], ["a"],
    ["A b", " a  b ", "", None, 3, ["c"], "a_b"], [[]], [["a", 1], []], {}, {"a": 1}, {"a": {"b": 1}, "c": {"b": 2}},
    {"a": [], "c": [{"b": 1}, 2]}, [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], [{"a": {"b": 1}}, {"a": {"b": 2}}],
    [{"a": 1}, {"b": 2}, {}, [1, 2], [{"a": 1}], "s"],
)  # fmt: skip
WORDS = ("check units", "split sums", "be brief", "  Ask first. ", "log the payload\nbefore", "Long sums | go wrong")
VECTORS = ([1, 0], [0.5, 1.0], [1, 0.1], [0, 0], [-1, 2], [0.9, 0.1])
ATTRIBUTES = (
    "status", "id", "section", "created_at", "embedding", "delta", "tag", "to_llm_dict", "apply_metadata", "__dict__",
    "__class__", "__weakref__", "__doc__", "updated_at", "content", "surplus",
)  # fmt: skip
SELDOM = ("justification", "evidence", "reason", "insight_source", "learning_index", "reflection_index")
TEXTS = ("content", "issue", "insight", "keywords")


class Dice:
    """Random parts of a case in one format. `junk`: share of values that are anything at all."""

    def __init__(self, seed: int, era: Era) -> None:
        self._rng, self.era = np.random.default_rng(seed), era
        self.junk: float = self.pick((0.0, 0.03, 0.12, 0.3))

    def chance(self, p: float) -> bool:
        return bool(self._rng.random() < p)

    def below(self, n: int) -> int:
        return int(self._rng.integers(n))

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Any], p: float) -> list[Any]:
        return [option for option in options if self.chance(p)]

    def spoil(self, value: Any, share: float = 1.0) -> Any:
        """The value, or junk."""
        return self.pick(JUNK) if self.chance(self.junk * share) else value

    def identity(self) -> str:
        names = ("context", "harness") if self.era == "v2" else ("math", "tone", "context")
        return f"{self.pick(names)}-{self.below(4) + 1:05d}"

    def identities(self, most: int) -> list[str]:
        return [self.identity() for _ in range(self.below(most + 1))]

    def section(self) -> str:
        late = ("context", "context", "harness", " Context", "Math Strategies")
        return str(self.pick(late if self.era == "v2" else ("Math Strategies", "tone")))

    def source(self) -> Any:
        values = {
            "trace_uid": self.pick(("lab:t1", "lab:", ":t2", "t3")), "source_system": self.pick(("lab", " a ")),
            "trace_id": f"t{self.below(3)}", "display_name": "shown", "relation": "seed",
            "epoch": self.pick((1, 2, "3")),
            "sample_question": self.pick(("Alpha q", "beta")), "operation_type": "ADD", "error_identification": "e",
            "learning_text": "l", "sample_id": "s1", "item_id": 7, "id": "i", "surplus": 1,
        }  # fmt: skip
        return {name: self.spoil(value) for name, value in values.items() if self.chance(0.3)}

    def sources(self) -> Any:
        several = [self.spoil(self.source()) for _ in range(self.below(3))]
        return self.spoil(self.source() if self.chance(0.5) else several)

    def metadata(self) -> Any:
        if self.era == "v2":
            return {"delta": self.spoil(self.pick((1, -1, 0)))}
        names = [*self.some(TAGS, 0.5), *(self.some(ATTRIBUTES, 0.15) if self.chance(0.2) else [])]
        return {name: self.spoil(self.pick((1, 2, -1, 0)), 0.5) for name in names}

    def operation(self) -> Any:
        """Most operations have what their type needs; ADDs mostly come without an id."""
        kind = self.pick(("ADD", "ADD", "UPDATE", "TAG", "TAG", "REMOVE", "tag", "Add"))
        values = {
            "type": kind, "section": self.section(), "content": self.pick(WORDS), "issue": self.pick(WORDS),
            "insight": self.pick(WORDS), "keywords": self.some(("k", "Two words", "k", " z "), 0.5),
            "skill_id": self.identity(), "metadata": self.metadata(), "justification": "because", "evidence": "seen",
            "reason": "stale", "insight_source": self.sources(), "learning_index": self.below(2),
            "reflection_index": self.below(3), "reflection_indices": self.some((2, 1, 0, 1, "1", -1, 5), 0.4),
        }  # fmt: skip
        made = {name: self.spoil(values[name], 1 / 3) for name in PRINTED[self.era]}
        for name in list(made):
            needed = name in ("type", "skill_id") and not (name == "skill_id" and kind.upper() == "ADD")
            seldom = name in (*SELDOM, "skill_id", "reflection_indices") or (name == "metadata" and kind != "TAG")
            idle = kind in ("TAG", "REMOVE") and name in TEXTS
            if self.chance(self.junk / 3 if needed else 0.7 if seldom or idle else 0.12):
                del made[name]
        if self.chance(self.junk / 2):
            made["content" if self.era == "v2" else "issue"] = "of another format"
        return made

    def batch(self) -> Any:
        items = [self.spoil(self.operation(), 0.2) for _ in range(self.below(6))]
        return self.spoil({"reasoning": self.spoil("r"), "operations": self.spoil(items, 0.2)}, 0.1)

    def built_operation(self) -> Any:
        """Fields of an operation that is not parsed; the published class takes anything."""
        made = self.operation()
        made.pop("content" if self.era == "v2" else "issue", None)
        return made if isinstance(made.get("type"), str) or self.chance(0.1) else made | {"type": "ADD"}

    def consolidation(self) -> Any:
        values = {
            "type": self.pick(("MERGE", "DELETE", "KEEP", "UPDATE", "merge", "SPLIT")),
            "source_ids": self.identities(3),
            "skill_ids": self.identities(3), "keep_id": self.identity(), "skill_id": self.identity(),
            "merged_content": self.pick((*WORDS, "")), "new_content": self.pick((*WORDS, "")),
            "reasoning": self.pick(("same", "")), "differentiation": "differ",
        }  # fmt: skip
        return {name: self.spoil(value, 0.25) for name, value in values.items() if self.chance(0.85)}

    def child_operation(self) -> Case:
        return {
            "type": self.pick(("ADD", "TAG", "UPDATE", "REMOVE")), "section": "context", "skill_id": self.identity(),
            "issue": self.pick(WORDS), "insight": self.pick((*WORDS, "")), "keywords": ["k"], "metadata": {"delta": 1},
        }  # fmt: skip

    def attachment(self) -> Case:
        """A batch, reflections and the traces that they are about."""
        items = [self.spoil(self.trace(i), 0.3) for i in range(self.below(4))]
        steps = [{"role": "conversation", "content": self.trace(i)} for i in range(2)]
        given = {"trace_identity": {"trace_id": "given", "source_system": "s"}}
        trace = self.pick((
            items, items, {"items": items}, {"tasks": items, "question": "w"}, self.trace(9), None, "text", given,
            {"question": "only"}, {"trace": {"question": "inner"}, "source_system": "lab"}, {"steps": steps},
            {"steps": []},
        ))  # fmt: skip
        return {
            "op": "attach",
            "batch": {"reasoning": "", "operations": [self.operation() for _ in range(self.below(3) + 1)]},
            "reflections": [self.reflection(i) for i in range(self.below(4))], "trace": trace,
            "epoch": self.pick((None, 2)), "sample_question": self.pick(("", "sq")),
        }  # fmt: skip

    def trace(self, i: int) -> Case:
        question = {"question": f"q{i}"} if self.chance(0.7) else {}
        return {self.pick(("trace_id", "sample_id", "id")): f"tr-{i}", **question}

    def reflection(self, i: int) -> Case:
        return {
            "reasoning": "r", "correct_approach": "c", "key_insight": "k",
            "error_identification": self.pick(("", "e", " ")),
            "raw": self.pick(({}, {"trace_id": f"tr-{self.below(3)}"}, {"id": f"tr-{i}"})),
            "extracted_learnings": [{"learning": f"l{j}"} for j in range(self.below(3))],
        }  # fmt: skip

    def step(self) -> Case:
        """Mostly a batch; sometimes another thing that happens to a book."""
        if self.chance(0.75):
            return {"op": "apply", "batch": self.batch()}
        count = range(self.below(3) + 1)
        steps: list[Case] = [
            {"op": "apply_direct", "operations": [self.built_operation() for _ in count]},
            {"op": "consolidate", "operations": self.spoil([self.consolidation() for _ in count], 0.3)},
            {"op": "soft_remove", "id": self.identity()},
            {"op": "purge", "id": self.identity()},
            {"op": "reload"},
            {"op": "wrap_context"},
            {"op": "embed", "vectors": {self.identity(): self.pick(VECTORS) for _ in range(4)}},
            {"op": "similar_pairs",
             "config": {"within_section_only": self.chance(0.5), "similarity_threshold": self.pick((0, 0.9))},
             "threshold": self.pick((None, 0, 0.5))},
        ]  # fmt: skip
        if self.era == "v2":
            steps += self.steps_of_v2()
        if self.era == "v09":
            steps += [self.attachment() for _ in range(3)]
        if self.era != "v1":
            part = self.pick(({"epoch": 1}, {"sample_question": "ALPHA"}, {"trace_id": "t1"}, {"source_system": "lab"}))
            steps += [{"op": "source_summary"}, {"op": "source_filter", "kwargs": part}]
        return dict(self.pick(steps))

    def steps_of_v2(self) -> list[Case]:
        wanted = self.pick(({}, {"section": " Context"}, {"keywords": ["K", "two words"]}))
        return [
            {"op": "mark_used", "ids": self.identities(4)},
            {"op": "commit_child", "child_operations": [self.child_operation() for _ in range(3)],
             "parent_operations": [self.child_operation()]},
            {"op": "xml"},
            {"op": "cited", "text": f"[{self.identity()}] [a-b-1] [x_y-2]{self.identity()}[{self.pick(WORDS)}-3]"},
            {"op": "retrieve", "query": self.pick((*WORDS, "k", "")), "top_k": self.below(5),
             "query_embedding": self.pick(([1, 0.5], [0, 0], None)), **wanted},
        ]  # fmt: skip

    def entry(self, key: str) -> Any:
        """A skill of a book."""
        values: Case = {"id": key, "section": self.section(), "created_at": TIME, "updated_at": TIME}
        if self.era == "v2":
            values |= {"issue": self.pick(WORDS), "insight": self.pick((*WORDS, None)), "keywords": ["k"]}
            values |= {"occurrences": [self.source()], "active": self.chance(0.8)}
            counters = ("used_count", "helpful_count", "harmful_count", "neutral_count")
            values |= {name: self.below(4) for name in counters}
        else:
            values |= {"content": self.pick(WORDS), "status": self.pick(("active", "active", "invalid"))}
            values |= {"embedding": self.pick((None, [1.0, 0.5]))}
        if self.era == "v1":
            values |= {name: self.below(4) for name in TAGS}
        if self.era == "v09":
            values |= {"justification": None, "sources": self.sources()}
        needed = ("id", "section", "content", "issue")
        spoiled = {name: self.spoil(value, 1 / 8) for name, value in values.items()}
        return {name: v for name, v in spoiled.items() if self.chance(1 - self.junk / 20 if name in needed else 0.85)}

    def book(self) -> Any:
        keys = list(dict.fromkeys(self.identities(5)))
        skills = {key: self.spoil(self.entry(key), 0.1) for key in keys}
        listed: dict[str, Any] = {}
        for key in keys:
            listed.setdefault(key.split("-")[0] if self.era == "v2" else self.section(), []).append(key)
        kept = {"decision": "KEEP", "reasoning": "r", "decided_at": TIME, "similarity_at_decision": 0.5}
        decisions = {f"{self.identity()},{self.identity()}": self.spoil(kept, 0.2) for _ in range(self.below(3))}
        payload = {
            "skills": self.spoil(skills, 0.1), "sections": self.spoil(listed, 0.2),
            "next_id": self.spoil(len(keys) + self.below(3), 0.2), "similarity_decisions": self.spoil(decisions, 0.2),
        }  # fmt: skip
        if self.era == "v2":
            payload["schema_version"] = self.spoil(self.pick(("2", 2)), 0.1)
        return {name: value for name, value in payload.items() if self.chance(1 - self.junk / 4)}


def case(seed: int, era: Era, steps: int = 5) -> Case:
    """A book and steps on it that go on after errors; a quarter of the cases is sensible, the others less and less."""
    dice = Dice(seed, era)
    initial = None if dice.chance(0.25) else dice.book()
    return {
        "uid": f"{era}/random/{seed}", "schema": era, "initial": initial, "goes_on": True,
        "steps": [dice.step() for _ in range(steps)],
    }  # fmt: skip
