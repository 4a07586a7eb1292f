"""Bodies of responses, whoever wrote them, and answers in them."""

import json
from typing import Any

import pytest

from skg_bench.asking.structured import structured_answer
from skg_bench.asking.wire import chat_answer

ASKED = [{"role": "user", "content": "x" * 40}]


def body(message: Any, **fields: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, **fields}]}).encode()


@pytest.mark.parametrize(
    "content",
    [b"", b"no", b"\xff\xfe\x00", b"[]", b"1", b"null", b"{}", b'{"choices": []}', b'{"choices": {}}',
     b'{"choices": [1]}', b"[" * 100_000, b'{"choices": [{"message": null}]}', body({"content": ["a"]}),
     body({"content": 1})],
)  # fmt: skip
def test_what_is_no_chat_completion_is_one_kind_of_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  of json, or ours
        chat_answer(content, ASKED)


@pytest.mark.parametrize(
    "usage",
    [None, [], "many", {"prompt_tokens": "9"}, {"prompt_tokens": -1, "completion_tokens": 2.5},
     {"prompt_tokens": None, "prompt_tokens_details": None}, {"prompt_tokens": 0, "completion_tokens": 0},
     {"prompt_tokens": 10**12, "completion_tokens": 2**31}, {"prompt_tokens": True, "completion_tokens": True}],
)  # fmt: skip
def test_tokens_that_cannot_be_read_are_estimated(usage: Any) -> None:
    content = json.dumps({"choices": [{"message": {"content": "y" * 8}}], "usage": usage}).encode()
    answer = chat_answer(content, ASKED)
    assert (answer.tokens_in, answer.tokens_cached, answer.tokens_out) == (10, 0, 2)
    assert answer.estimated


def test_no_more_tokens_are_cached_than_there_are() -> None:
    usage = {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}, "completion_tokens": 1}
    answer = chat_answer(json.dumps({"choices": [{"message": {"content": "y"}}], "usage": usage}).encode(), ASKED)
    assert (answer.tokens_in, answer.tokens_cached, answer.estimated) == (5, 5, False)


def test_a_message_without_content_is_an_empty_answer() -> None:
    assert [chat_answer(body(message), ASKED).text for message in ({}, {"content": None})] == ["", ""]


def test_half_a_surrogate_pair_which_no_file_can_hold_is_replaced_in_texts_and_refused_in_values() -> None:
    answer = chat_answer(body({"content": "a\ud800b \U0001f600"}), ASKED)
    assert answer.text == "a?b \U0001f600"
    value, wrong = structured_answer('{"a": "\\ud800"}', {"type": "object"})
    assert value is None
    assert wrong.startswith("the answer is no JSON")
    assert structured_answer('{"a": "\\ud83d\\ude00"}', {"type": "object"}) == ({"a": "\U0001f600"}, "")
