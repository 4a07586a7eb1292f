"""Prompts are files, and what others wrote enters them as data."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skg_bench.asking.prompts import PROMPTS, PromptFile, data_of, json_block, load_prompt
from skg_bench.core.errors import UsageError
from skg_bench.curator import reflecting

NEEDS = ("question", "answer")
GOOD = """---
role: tester
version: 3
data: question
---
You test.

```schema
{"type": "object"}
```

# Request
Test this.

{{data}}
"""


def file(folder: Path, text: str) -> PromptFile:
    (folder / "tester.md").write_text(text, "utf-8")
    load_prompt.cache_clear()
    return load_prompt("tester", str(folder), NEEDS)


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=9,
        ),
        max_size=4,
    )
)
def test_a_block_is_written_as_json_with_an_indent_is(data: dict[str, object]) -> None:
    written = json.dumps(data, ensure_ascii=False, indent=1).replace("`", "\\u0060")
    assert json_block(data) == f"```json\n{written}\n```"


def test_a_prompt_has_the_systems_words_the_request_and_its_data_as_one_block(tmp_path: Path) -> None:
    prompt = file(tmp_path, GOOD).ask({"question": "why?", "answer": "unused"}, draw=7, limit=90)
    assert (prompt.role, prompt.system, prompt.draw, prompt.limit) == ("tester", "You test.", 7, 90)
    assert prompt.user == 'Test this.\n\n```json\n{\n "question": "why?"\n}\n```'
    assert prompt.schema == {"type": "object"}
    assert [message["role"] for message in prompt.messages] == ["system", "user"]


@given(st.text(st.characters(codec="utf-8")))
def test_no_text_can_leave_the_block_of_data(text: str) -> None:
    made = PromptFile("tester", "1", ("question",), "", "Ask.\n{{data}}\nEnd.", {}, "")
    prompt = made.ask({"question": text}, draw=0, limit=1)
    assert prompt.user.count("```") == 2
    assert prompt.user.endswith("\n```\nEnd.")
    assert data_of(prompt) == {"question": text}


def test_a_placeholder_among_data_stays_a_text(tmp_path: Path) -> None:
    prompt = file(tmp_path, GOOD).ask({"question": "{{data}} \\1", "answer": ""}, draw=0, limit=1)
    assert data_of(prompt) == {"question": "{{data}} \\1"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("role: tester", "role: other"), "has role: other; its name asks for tester"),
        (("version: 3", "colour: red"), "front matter 'colour: red'"),
        (("version: 3\n", ""), "front matter lacks version"),
        (("data: question", "data: question, secrets"), "has data: 'secrets'; the role tester is given question, ans"),
        (("{{data}}", "{{question}}"), r"unknown placeholder \{\{question\}\}"),
        (("{{data}}", "all"), r"0 times \{\{data\}\}"),
        (("{{data}}", "{{data}} {{data}}"), r"2 times \{\{data\}\}"),
        (("You test.", "You test {{data}}."), r"unknown placeholder \{\{data\}\}"),
        (('{"type": "object"}', '{"type": '), "its schema is no JSON"),
        (('{"type": "object"}', "[]"), "its schema must be a JSON object"),
        (("# Request", "# Question"), "is no prompt file"),
    ],
)
def test_a_file_that_is_no_prompt_is_refused_with_what_is_valid(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        file(tmp_path, GOOD.replace(*change))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no prompt file .*absent\.md"):
        load_prompt("absent", str(tmp_path), NEEDS)


def test_the_packages_prompts_hold_no_date_and_no_machine() -> None:
    for path in sorted(PROMPTS.glob("*.md")):
        text = path.read_text("utf-8")
        assert not any(word in text for word in ("2025", "2026", "/home", "localhost"))
        assert path.stem in text.splitlines()[1]


@pytest.mark.req("P21")
def test_the_reflector_answers_in_the_fields_of_the_article() -> None:
    schema = load_prompt("reflector", None, reflecting.REFLECTING_DATA["reflector"]).schema
    assert schema is not None
    assert list(schema["properties"]) == ["analysis", "helpful_skill_ids", "harmful_skill_ids", "new_learnings"]
    learning = schema["properties"]["new_learnings"]["items"]["properties"]
    assert list(learning) == ["section", "content", "atomicity_score"]


@pytest.mark.req("P23")
def test_the_skill_manager_answers_with_an_update_batch_or_null() -> None:
    schema = load_prompt("skill_manager", None, reflecting.REFLECTING_DATA["skill_manager"]).schema
    assert schema is not None
    null, batch = schema["properties"]["update"]["anyOf"]
    assert null == {"type": "null"}
    assert batch["properties"]["operations"]["items"]["properties"]["type"]["enum"] == [
        "ADD",
        "UPDATE",
        "TAG",
        "REMOVE",
    ]


def test_equal_data_make_equal_prompts(tmp_path: Path) -> None:
    made = file(tmp_path, GOOD)
    first, second = (made.ask({"question": "é", "answer": ""}, draw=1, limit=2) for _ in range(2))
    assert first == second
    assert json.dumps(first.messages) == json.dumps(second.messages)
