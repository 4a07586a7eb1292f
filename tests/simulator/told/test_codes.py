"""Codes, the messages that hold them, and a model that reads them."""

import numpy as np
import pytest

from skg_bench.asking.prompts import load_prompt
from skg_bench.core.spoken import PromptParts, WordsAsk
from skg_bench.llm.in_words import ANSWER_DATA, InWordsLLM
from skg_bench.llm.scripted import Scripted
from skg_bench.simulator.told.codes import (
    ASK_WORDINGS,
    CHANGE_WORDINGS,
    DETOUR_WORDINGS,
    N_CODES,
    NAMING_WORDINGS,
    OWNER_NAMES,
    TELL_WORDINGS,
    THINGS,
    codes,
    codes_in,
    messages,
    naming,
    question,
    statement,
    thing_words,
)
from skg_bench.simulator.told.world import stated

READER = InWordsLLM(Scripted("reader", 3.0, 15.0, 2000.0), 300, 0, None)


def said(about: PromptParts | str) -> str:
    about = PromptParts(about, "", ()) if isinstance(about, str) else about
    words, _ = READER.say([WordsAsk(about, 0, False, False)])
    return words[0]


def test_codes_are_all_different_and_are_found_in_words() -> None:
    given = codes()
    assert len(set(given)) == len(given) == N_CODES * len(THINGS)
    assert all(list(codes_in(f"It is {code}, I think.")) == [number] for number, code in enumerate(given))
    assert list(codes_in(f"{given[3].upper()} or {given[5]} or {given[3]}")) == [3, 5]
    for dash in ("\u2011", "\u2013", "\u2212", " - ", "-\n", "-\u200b"):  # as others set it
        assert list(codes_in(f"_{given[0].replace('-', dash)}_")) == [0], ascii(dash)
    assert list(codes_in("a2bb-cccc")) == [-1]  # of the form of a code, and nobody's
    assert not codes_in(f"x{given[0]} {given[0]}-y e2e4-e5 2026-01-05 1234-5678")


def text(number: np.ndarray) -> str:
    return messages()[int(number)]


def test_each_message_says_its_own_thing_and_code() -> None:
    texts, given = messages(), codes()
    assert len(set(texts)) == len(texts)
    assert len(set(OWNER_NAMES.values())) == len(OWNER_NAMES)
    for thing in (0, 7, len(THINGS) - 1):
        for code in (thing * N_CODES, thing * N_CODES + N_CODES - 1):
            for wording in range(len(TELL_WORDINGS) + len(CHANGE_WORDINGS)):
                text = texts[int(statement(*(np.array(each, np.int32) for each in (thing, code, wording))))]
                assert THINGS[thing] in text
                assert list(codes_in(text)) == [code], given[code]
        asked = {
            texts[int(question(*(np.array(each, np.int32) for each in (thing, wording))))]
            for wording in range(len(ASK_WORDINGS))
        }
        assert asked == {wording.format(thing=THINGS[thing]) for wording in ASK_WORDINGS}


def test_the_reader_finds_each_statement_by_each_question_and_none_of_another_thing() -> None:
    for at, thing in enumerate(THINGS):
        code = codes()[at * N_CODES]
        others = [f"The {other} is {codes()[place * N_CODES]}." for place, other in enumerate(THINGS) if other != thing]
        for ask in ASK_WORDINGS:
            message = ask.format(thing=thing)
            assert said(PromptParts(message, "", tuple((other, "Noted.") for other in others))) == "I do not know."
            for tell in (*TELL_WORDINGS, *CHANGE_WORDINGS):
                told = tell.format(thing=thing, code=code)
                assert code in said(
                    PromptParts(message, "", (*((other, "Noted.") for other in others), (told, "Noted.")))
                )
                assert code in said("\n".join([*others, told, message]))


@pytest.mark.parametrize("called", NAMING_WORDINGS)
@pytest.mark.parametrize("told", DETOUR_WORDINGS)
def test_the_reader_finds_a_code_under_a_name_only_where_the_name_is_explained(called: str, told: str) -> None:
    for place, thing in enumerate(THINGS):
        words, code = thing_words(place), codes()[place * N_CODES]
        naming_text, telling = called.format(**words), told.format(**words, code=code)
        number, wording = np.array(place, np.int32), np.array(NAMING_WORDINGS.index(called), np.int32)
        assert text(naming(number, wording)) == naming_text
        assert codes()[place * N_CODES] in telling
        assert thing not in telling
        for ask in ASK_WORDINGS:
            message = ask.format(thing=thing)
            assert said(f"{telling}\n{message}") == "I do not know."
            assert said(f"{naming_text}\n{message}") == "I do not know."
            for order in ([naming_text, telling], [telling, naming_text]):
                assert code in said("\n".join([*order, message]))
            other = THINGS[(place + 1) % len(THINGS)]
            assert said("\n".join([naming_text, telling, ask.format(thing=other)])) == "I do not know."


def test_the_reader_takes_the_first_statement_and_notes_what_it_is_told() -> None:
    thing, (first, second) = THINGS[0], codes()[:2]
    old, new = (f"The {thing} is {code}." for code in (first, second))
    ask = ASK_WORDINGS[0].format(thing=thing)
    assert second in said(PromptParts(ask, "", ((new, "Noted."), (old, "Noted."))))
    assert first in said(PromptParts(ask, "", ((old, "Noted."), (new, "Noted."))))
    assert first in said(PromptParts(ask, old, ((new, "Noted."),)))  # what a skill says comes before
    assert said(PromptParts(old, "", ((new, "Noted."),))) == "Noted."
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
        ("{now} or {before}", "several"), ("{now} or {theirs}", "another_user"), ("{now}, yes: {now}", "right"),
    ],
)  # fmt: skip
def test_words_are_judged_by_the_codes_in_them(words: str, state: str) -> None:
    now, before, mine, theirs = 5, 9, N_CODES + 1, 2 * N_CODES
    given = codes()
    text = words.format(now=given[now], before=given[before], mine=given[mine], theirs=given[theirs])
    assert stated(text, now, before, np.array([before, now, mine, -1], np.int32)).name.lower() == state


def test_where_nothing_was_told_each_code_is_wrong() -> None:
    mine = np.array([-1, N_CODES], np.int32)
    assert stated(codes()[0], -1, -1, mine).name.lower() == "another_user"
    assert stated(codes()[N_CODES], -1, -1, mine).name.lower() == "another_thing"
    assert stated("a2bb-cccc", -1, -1, mine).name.lower() == "invented"
    assert stated("No idea.", -1, -1, mine).name.lower() == "nothing"
