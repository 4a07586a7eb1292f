"""Ends of error messages: the nearest valid value, and the list of valid ones."""

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 24  # more options than this are not listed
_FIRST = 12  # of these, where nothing is like what was given


def nearest(given: str, valid: Iterable[str]) -> str:
    """`did you mean X? valid: A, B, C`, for the end of an error message; empty without options. Of many options the
    first ones are named where none is like what was given.
    """
    options = sorted(set(valid))
    close = get_close_matches(given, options, n=1, cutoff=0.6)
    if not close:  # the right word at the wrong depth: `threshold` for `policy.threshold`
        by_end = {option.rsplit(".", 1)[-1]: option for option in reversed(options)}
        close = [by_end[end] for end in get_close_matches(given.rsplit(".", 1)[-1], by_end, n=1, cutoff=0.75)]
    listed = f"valid: {', '.join(options)}" if 0 < len(options) <= _LISTED else ""
    if not close and len(options) > _LISTED:
        listed = f"valid: {', '.join(options[:_FIRST])} and {len(options) - _FIRST} more"
    return " ".join(part for part in (f"did you mean {close[0]!r}?" if close else "", listed) if part)
