"""Numbers as people read them."""

from math import isfinite


def number(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A value of a metric in its unit (`Metric.unit`); a dash where there is none. `signed`: a difference."""
    if value is None or not isfinite(value):
        return "-"
    text = _size(abs(value), unit, signed)
    if not any(digit in text for digit in "123456789"):
        return text  # rounded to nothing, it has no sign
    return f"-{text}" if value < 0 else f"+{text}" if signed else text


def _size(size: float, unit: str, signed: bool) -> str:
    match unit:
        case "share" | "difference":
            return f"{100 * size:.1f} {'pp' if signed or unit == 'difference' else '%'}"
        case "usd":
            return f"${size:.5f}"
        case "ms":
            return f"{size / 1000:.2f} s"
        case "utility" | "calls":
            return f"{size:.3f}"
        case _:
            return f"{size:.1f}"


def interval(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """`low to high`; a dash where there is none."""
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return "-"
    return f"{number(low, unit, signed=signed)} to {number(high, unit, signed=signed)}"


def bare(text: str) -> str:
    """Without the unit, where what stands beside it has one."""
    return text.replace(" pp", "").replace(" s", "").replace("$", "")


def of_purchases(text: str) -> str:
    """A text about requests, for a world in which users bring purchases; what stands between backticks is a name."""
    parts = text.split("`")
    parts[::2] = [part.replace("request", "purchase").replace("Request", "Purchase") for part in parts[::2]]
    return "`".join(parts)
