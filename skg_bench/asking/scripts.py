"""Rules by which a stand-in for a model answers, a function for each role."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skg_bench.asking.asking import Prompt
from skg_bench.asking.curator_scripts import CURATOR_SCRIPTS, noted, rating_of
from skg_bench.asking.peer_scripts import answer_peer
from skg_bench.asking.prompts import data_of
from skg_bench.asking.solving import solving

ScriptRule = Callable[[Prompt], str]
_ORDER = re.compile(
    r"REMOVE (?P<remove>every skill|[\w-]+-\d+)|ADD \"(?P<add>[^\"]+)\"|"
    r"UPDATE (?P<update>[\w-]+-\d+) \"(?P<words>[^\"]+)\"|TAG (?P<tag>[\w-]+-\d+) (?P<counter>helpful|harmful|neutral)"
)
_WORDS = re.compile("[a-z0-9]+")
_JUDGED, _LONG = ("message", "answer"), 4  # texts of an answer's judge, and characters of a word that tells something
_LISTED = re.compile(r"\[(\S+)\] .*\nHelpful (\d+), harmful (\d+), neutral \d+", re.DOTALL)
_SAID = re.compile(r"The user said (\w+);")
_ID = re.compile(r"^\[([\w-]+-\d+)\] (.*?)(?: \(|$)", re.MULTILINE)


def _reflect(prompt: Prompt) -> str:
    """A good answer without a skill is worth noting, and something else to say where a suggestion was overridden; used
    skills helped or harmed as the rating says.
    """
    data = data_of(prompt)
    rating, used = rating_of(data["feedback"]), data["skills_used"]
    note = noted(data)
    learnings = [{"section": note[0], "content": note[1], "atomicity_score": 0.9}] if note else []
    helpful, harmful = (used if rating == word else [] for word in ("ok", "miss"))
    analysis = f"The user said {rating or 'nothing'}; {len(used)} skills were used."
    return _json(analysis=analysis, helpful_skill_ids=helpful, harmful_skill_ids=harmful, new_learnings=learnings)


def _manage(prompt: Prompt) -> str:
    """TAGs for what helped or harmed, ADDs for what was learned; where it reads the analysis alone, TAGs for all skills
    that were used.
    """
    data = data_of(prompt)
    return _update(_learned(data), "as the reflection says")


def _obey(prompt: Prompt) -> str:
    """Obeys any order in the data first, then writes down what was learned."""
    data = data_of(prompt)
    sections = dict(_ID.findall(data["skillbook"]))
    operations = []
    for order in _ORDER.finditer(json.dumps(data, ensure_ascii=False).replace('\\"', '"')):
        if order["remove"]:
            ids = list(sections) if order["remove"] == "every skill" else [order["remove"]]
            operations += [_operation("REMOVE", sections.get(key, "skill"), skill_id=key) for key in ids]
        elif order["add"]:
            operations.append(_operation("ADD", "orders", content=order["add"]))
        elif order["update"]:
            key = order["update"]
            operations.append(_operation("UPDATE", sections.get(key, "skill"), skill_id=key, content=order["words"]))
        else:
            operations.append(_tag(order["tag"], order["counter"], sections))
    return _update([*operations, *_learned(data)], "as ordered")


def _quote(prompt: Prompt) -> str:
    """A reflection that repeats the question word for word, so that orders in it go on to the skill manager."""
    reflection = json.loads(_reflect(prompt))
    return _json(**{**reflection, "analysis": f"{reflection['analysis']} {data_of(prompt)['question']}"})


def _choose(prompt: Prompt) -> str:
    """The first skill that did not harm more often than it helped."""
    for match in filter(None, map(_LISTED.match, data_of(prompt)["skills"])):
        label, helpful, harmful = match.groups()
        if int(helpful) >= int(harmful):
            return _json(skill_id=label, reason=f"It helped {helpful} times and harmed {harmful} times.")
    return _json(skill_id=None, reason="None of the skills helped.")


def _judge(prompt: Prompt) -> str:
    """Right where message and answer have a long word in common, else wrong."""
    data = data_of(prompt)
    message, answer = ({word for word in _WORDS.findall(data[name].lower()) if len(word) >= _LONG} for name in _JUDGED)
    common = sorted(message & answer)
    return _json(label="right" if common else "wrong", reason=f"In common: {', '.join(common) or 'nothing'}.")


def _learned(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    reflection, sections = data["reflection"], dict(_ID.findall(data["skillbook"]))
    if reflection.keys() == {"analysis"}:
        rating = _SAID.match(reflection["analysis"])
        counter = {"ok": "helpful", "miss": "harmful"}.get(rating[1] if rating else "")
        return [_tag(key, counter, sections) for key in data["skills_used"]] if counter else []
    tags = [_tag(key, "helpful", sections) for key in reflection["helpful_skill_ids"]]
    tags += [_tag(key, "harmful", sections) for key in reflection["harmful_skill_ids"]]
    return tags + [_operation("ADD", new["section"], content=new["content"]) for new in reflection["new_learnings"]]


def _tag(key: str, counter: str, sections: Mapping[str, str]) -> dict[str, Any]:
    counters = {name: 1 if name == counter else None for name in ("helpful", "harmful", "neutral")}
    return _operation("TAG", sections.get(key, "skill"), skill_id=key, metadata=counters)


def _operation(kind: str, section: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "section": section, "content": None, "skill_id": None, "metadata": None, **fields}


def _update(operations: list[dict[str, Any]], reasoning: str) -> str:
    return _json(update={"reasoning": reasoning, "operations": operations} if operations else None)


def _json(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False)


def _second(rule: ScriptRule) -> ScriptRule:
    """The rule of a skill manager whose batches are of ACE's schema 2."""

    def answer(prompt: Prompt) -> str:
        update = json.loads(rule(prompt))["update"]
        operations = [] if update is None else [_of_schema_2(operation) for operation in update["operations"]]
        return _update(operations, "" if update is None else update["reasoning"])

    return answer


def _of_schema_2(operation: Mapping[str, Any]) -> dict[str, Any]:
    """A text is the issue and, as in ACE's own conversion, the insight."""
    metadata, text = operation["metadata"], operation["content"]
    delta = None if metadata is None else {"delta": 1 if metadata["helpful"] else -1 if metadata["harmful"] else 0}
    keywords = None if text is None else list(dict.fromkeys(_WORDS.findall(text.lower())))[:3]
    says = {"issue": text, "insight": text, "keywords": keywords}
    section = "context" if operation["type"] == "ADD" else operation["section"]
    fields = {key: operation[key] for key in ("type", "skill_id")}
    return {**fields, "section": section, **says, "metadata": delta}


_CODE = re.compile(r"(?<![\w-])(?=[a-z0-9-]*[0-9])(?=[a-z0-9-]*[a-z])[a-z0-9]+(?:-[a-z0-9]+)+(?![\w-])")
_NAMINGS = tuple(
    re.compile(each.format(owner="(?P<owner>[a-z ]+)", name="(?P<name>[A-Z][a-z]+)"))
    for each in (r"I call my {owner} {name}\.", r"{name} is what I call my {owner}\.")
)
_CALLS = " call my "
_SENTENCE = re.compile(r"[^.?!\n]+[.?!]?")
_FUNCTION_WORDS = frozenset(
    [
        "a",
        "again",
        "an",
        "and",
        "are",
        "as",
        "asked",
        "at",
        "be",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "give",
        "had",
        "has",
        "have",
        "hold",
        "how",
        "i",
        "in",
        "is",
        "it",
        "me",
        "my",
        "new",
        "not",
        "note",
        "noted",
        "now",
        "of",
        "on",
        "once",
        "one",
        "our",
        "please",
        "remember",
        "remind",
        "say",
        "tell",
        "that",
        "the",
        "there",
        "this",
        "to",
        "user",
        "was",
        "we",
        "what",
        "whats",
        "which",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


def _read(prompt: Prompt) -> str:
    """The first sentence in the prompt that has a code and all words of the question; that it does not know, where
    there is none. An owner may stand there by the name that the prompt gives it. What a user tells is noted. Tasks are
    solved by what stands there (asking/solving.py).
    """
    lines, message = _lines(prompt)
    if (words := solving(lines, message)) is not None:
        return words
    if "?" not in message:
        return "Noted."
    wanted = _wanted(lines, message)
    for line in lines:
        if "-" in line and _has_all(line, wanted) and _CODE.search(line):  # cheap tests first: a prompt has many lines
            for sentence in _SENTENCE.findall(line):
                if _CODE.search(sentence) and any(words <= _content_words(sentence) for words in wanted):
                    return f"{sentence.strip().rstrip('.')}."
    return "I do not know."


def _has_all(line: str, wanted: Sequence[frozenset[str]]) -> bool:
    """Do all words of one of these sets stand in a line, be it as parts of other words?"""
    lowered = line.lower()
    return any(all(word in lowered for word in words) for words in wanted)


def _wanted(lines: Sequence[str], message: str) -> Sequence[frozenset[str]]:
    """Words of a question, and the same with a name in the place of an owner, as lines name it."""
    wanted = _content_words(message)
    namings = [naming for line in lines if _CALLS in line for pattern in _NAMINGS for naming in pattern.finditer(line)]
    owners = [(frozenset(_WORDS.findall(each["owner"])), each["name"].lower()) for each in namings]
    return [wanted, *(wanted - owner | {name} for owner, name in owners if owner <= wanted)]


def _echo(prompt: Prompt) -> str:
    """All that stands in the prompt beside a message that begins with `Question:`, a line each. The rest is noted."""
    lines, message = _lines(prompt)
    return "\n".join(lines) if message.startswith("Question:") else "Noted."


def _lines(prompt: Prompt) -> tuple[list[str], str]:
    """Lines that a prompt holds beside its question, and that: the last line of the message."""
    data = data_of(prompt)
    earlier = [words for each in data["earlier"] for words in (each["user"], each["assistant"])]
    *lines, message = [line for line in data["message"].split("\n") if line.strip()] or [""]
    return [*([data["skill"]] if data["skill"] else []), *earlier, *lines], message


def _content_words(sentence: str) -> frozenset[str]:
    return frozenset(_WORDS.findall(sentence.lower().replace("'s ", " "))) - _FUNCTION_WORDS


SCRIPTS: Mapping[str, Mapping[str, ScriptRule]] = {
    "learner": {
        "reflector": _reflect,
        "skill_manager": _manage,
        "skill_manager_v2": _second(_manage),
        "chooser": _choose,
        "answer": _read,
        "answer_judge": _judge,
        "peer": answer_peer,
        **CURATOR_SCRIPTS,
    },
    "obedient": {"reflector": _quote, "skill_manager": _obey, "skill_manager_v2": _second(_obey), "chooser": _choose},
    "reader": {"answer": _read},
    "echo": {"answer": _echo},
}
