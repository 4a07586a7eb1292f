"""A placebo for a memory: as many hits, as old, and with nothing to do with the message."""

from collections.abc import Sequence

from skg_bench.core.spoken import answer_words, references

GivenAnswers = list[tuple[int, str]]  # keys of the answers that a user's assistant had, with their requests, in order


def scrambled(words: str, event: int, given: Sequence[tuple[int, str]]) -> str:
    """Words of another of the answers `given`, where `words` are one of these: the one before or after it.

    The key `event` of the message says which of both. Words stay as they are where they are no earlier answer, and
    where there is no other.
    """
    inside = references(words)
    places = [place for place, (key, _) in enumerate(given) if inside and key == inside[-1]]
    if not places or inside[-1] == event:
        return words
    near = [place for place in (places[0] - 1, places[0] + 1) if 0 <= place < len(given)]
    if not near:
        return words
    key, request = given[near[event % len(near)]]
    return answer_words(request, key)
