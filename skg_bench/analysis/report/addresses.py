"""Addresses on the page, behind the `#`: a user, a turn, the turns behind a bar. `users.js` follows them."""

from urllib.parse import urlencode


def flips_link(arm: str, against: str) -> str:
    """Turns that one of two arms answered rightly and the other wrongly."""
    return "#" + urlencode({"arm": arm, "against": against})


def lost(arm: str, cause: str) -> str:
    """Turns of an arm whose loss is booked to a cause."""
    return "#" + urlencode({"arm": arm, "lost": cause})


def turn_link(user: int, turn: int) -> str:
    """A turn of a user."""
    return "#" + urlencode({"user": user, "turn": turn})
