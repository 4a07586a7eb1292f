"""Parts that curators which ask a model have in common: checks of their parameters, and the book as a prompt has it."""

from collections.abc import Sequence

from skg_bench.asking.asking import TextModel, check_writes
from skg_bench.core.errors import UsageError
from skg_bench.curator.shared.learning_job import LearningJob
from skg_bench.skillbook.prompt_layout import SkillOrder
from skg_bench.skillbook.rendering import Rendered, render

_LEAST = 100  # characters of a book and tokens of an answer that say something


def check_asking(llm: TextModel, book_characters: int, answer_tokens: int) -> None:
    """Raises UsageError for a model that writes no texts, and for prompts or answers without room."""
    check_writes(llm, "curator.llm")
    for name, value in (("book_characters", book_characters), ("answer_tokens", answer_tokens)):
        if value < _LEAST:
            raise UsageError(f"curator.{name}={value} must be at least {_LEAST}")


def rendered_books(jobs: Sequence[LearningJob], characters: int, order: SkillOrder = "evidence") -> list[Rendered]:
    """The user's book of each job as prompts show it, each book rendered once."""
    books = {id(job.book): job.book for job in jobs}
    rendered = {key: render(book, characters, order) for key, book in books.items()}
    return [rendered[id(job.book)] for job in jobs]
