"""Codes, the messages that hold them, and a model that reads them."""

import numpy as np
import pytest

from skg_bench.asking.prompts import load_prompt
from skg_bench.core.types import Exchange, WordsAsk
from skg_bench.llm.in_words import ANSWER_DATA, AnswersInWords
from skg_bench.llm.scripted import Scripted
from skg_bench.simulator.told.codes import (
    ASKS,
    CHANGES,
    CODES,
    TELLS,
    THINGS,
    codes,
    codes_in,
    messages,
    question,
    statement,
)
from skg_bench.simulator.told.outcome import STATES
from skg_bench.simulator.told.world import stated

READER = AnswersInWords(Scripted("reader", 3.0, 15.0, 2000.0), 300, None)


def said(about: Exchange | str) -> str:
    words, _ = READER.say([WordsAsk(about, 0, False, False)])
    return words[0]


def test_codes_are_all_different_and_are_found_in_words() -> None:
    given = codes()
    assert len(set(given)) == len(given) == CODES * len(THINGS)
    assert all(list(codes_in(f"It is {code}, I think.")) == [number] for number, code in enumerate(given))
    assert list(codes_in(f"{given[3].upper()} or {given[5]} or {given[3]}")) == [3, 5]
    assert list(codes_in("a2bb-cccc")) == [-1]  # of the form of a code, and nobody's
    assert not codes_in(f"x{given[0]} {given[0]}-y e2e4-e5 2026-01-05 1234-5678")


def test_each_message_says_its_own_thing_and_code() -> None:
    texts, given = messages(), codes()
    assert len(set(texts)) == len(texts)
    for thing in (0, 7, len(THINGS) - 1):
        for code in (thing * CODES, thing * CODES + CODES - 1):
            for wording in range(len(TELLS) + len(CHANGES)):
                text = texts[int(statement(*(np.array(each, np.int32) for each in (thing, code, wording))))]
                assert THINGS[thing] in text
                assert list(codes_in(text)) == [code], given[code]
        asked = {
            texts[int(question(*(np.array(each, np.int32) for each in (thing, wording))))]
            for wording in range(len(ASKS))
        }
        assert asked == {wording.format(thing=THINGS[thing]) for wording in ASKS}


def test_the_reader_finds_each_statement_by_each_question_and_none_of_another_thing() -> None:
    for at, thing in enumerate(THINGS):
        code = codes()[at * CODES]
        others = [f"The {other} is {codes()[place * CODES]}." for place, other in enumerate(THINGS) if other != thing]
        for ask in ASKS:
            message = ask.format(thing=thing)
            assert said(Exchange(message, "", tuple((other, "Noted.") for other in others))) == "I do not know."
            for tell in (*TELLS, *CHANGES):
                told = tell.format(thing=thing, code=code)
                assert code in said(Exchange(message, "", (*((other, "Noted.") for other in others), (told, "Noted."))))
                assert code in said("\n".join([*others, told, message]))


def test_the_reader_takes_the_first_statement_and_notes_what_it_is_told() -> None:
    thing, (first, second) = THINGS[0], codes()[:2]
    old, new = (f"The {thing} is {code}." for code in (first, second))
    ask = ASKS[0].format(thing=thing)
    assert second in said(Exchange(ask, "", ((new, "Noted."), (old, "Noted."))))
    assert first in said(Exchange(ask, "", ((old, "Noted."), (new, "Noted."))))
    assert first in said(Exchange(ask, old, ((new, "Noted."),)))  # what a skill says comes before
    assert said(Exchange(old, "", ((new, "Noted."),))) == "Noted."
    assert said("") == "Noted."


def test_the_prompt_holds_data_in_its_block_alone() -> None:
    file = load_prompt("answer", None, ANSWER_DATA)
    assert file.schema is None
    asked = file.ask({"message": "```json {}", "skill": None, "earlier": []}, 0, 10)
    assert asked.user.count("```") == 2


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("I do not know.", "nothing"), ("", "nothing"), ("It is {now}.", "right"), ("It was {before}.", "outdated"),
        ("{mine}", "another_thing"), ("{theirs}", "another_user"), ("a2bb-cccc", "invented"),
        ("{now} or {before}", "several"), ("{now}, yes: {now}", "right"),
    ],
)  # fmt: skip
def test_words_are_judged_by_the_codes_in_them(words: str, state: str) -> None:
    now, before, mine, theirs = 5, 9, CODES + 1, 2 * CODES
    given = codes()
    text = words.format(now=given[now], before=given[before], mine=given[mine], theirs=given[theirs])
    assert STATES[stated(text, now, before, np.array([before, now, mine, -1], np.int32))] == state


def test_where_nothing_was_told_each_code_is_wrong() -> None:
    mine = np.array([-1, CODES], np.int32)
    assert STATES[stated(codes()[0], -1, -1, mine)] == "another_user"
    assert STATES[stated(codes()[CODES], -1, -1, mine)] == "another_thing"
    assert STATES[stated("a2bb-cccc", -1, -1, mine)] == "invented"
    assert STATES[stated("No idea.", -1, -1, mine)] == "nothing"
