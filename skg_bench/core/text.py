"""Text of others, such as messages of a log, as it may be printed."""

_CONTROLS = dict.fromkeys(code for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t")


def printable(text: str) -> str:
    """Without the characters that command a terminal (C0 and C1, so no escape sequence begins); lines and tabs stay."""
    return text.translate(_CONTROLS)
