"""README is read first, mostly by people whose first language is another one: no sentence is longer than 25 words."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST = 25  # words


def sentences(markdown: str) -> list[str]:
    """Prose of a page without code, headings, pictures and comments; cells of tables and items of lists are apart."""
    prose = re.sub(r"```.*?```|<!--.*?-->", "\n\n", markdown, flags=re.DOTALL)
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    prose = re.sub(r"`[^`\n]*(?:\n[^`\n]+)?`", "code", prose)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:\* |\d+\. |\||#))|\|", prose)
    found = []
    for block in blocks:
        text = " ".join(block.strip().lstrip("#*").split())
        found += re.split(r"(?<=[.!?])(?:\*\*)?\s+(?=[A-Z*(\"'0-9]|code)", text)
    return [sentence for sentence in found if sentence]


def words(sentence: str) -> int:
    """Tokens with a letter or a digit; a figure counts as one."""
    return sum(1 for token in sentence.split() if re.search(r"\w", token))


def test_sentences_are_told_apart_and_counted() -> None:
    text = "# A heading\n\nOne two `a b c` three. Four (-0.1 to 2 %).\n\n* Five six.\n* [Seven eight](x.md) nine\n"
    text += "\n| a | b c |\n"
    counted = {sentence: words(sentence) for sentence in sentences(text)}
    assert counted == {
        "A heading": 2, "One two code three.": 4, "Four (-0.1 to 2 %).": 4, "Five six.": 2, "Seven eight nine": 3,
        "a": 1, "b c": 2,
    }  # fmt: skip


def test_no_sentence_of_readme_is_longer_than_25_words() -> None:
    long = [s for s in sentences((ROOT / "README.md").read_text("utf-8")) if words(s) > MOST]
    assert not long, "\n".join(f"{words(s)} words: {s}" for s in long)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_no_sentence_of_a_first_paragraph_is_longer_than_25_words(page: Path) -> None:
    first = next(p for p in page.read_text("utf-8").split("\n\n") if p.strip() and not p.startswith("#"))
    long = [s for s in sentences(first) if words(s) > MOST]
    assert not long, "\n".join(f"{words(s)} words: {s}" for s in long)


def test_the_readme_begins_with_one_sentence_one_picture_and_five_lines() -> None:
    first, picture, code = (ROOT / "README.md").read_text("utf-8").split("\n\n")[1:4]
    assert len(sentences(first)) == 1
    assert picture.startswith("![")
    assert code.startswith("```sh\n")
    assert len(code.splitlines()) == 5 + 2
