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


def rise_or_fall(rise: float | None, fall: float | None, unit: str) -> str:
    """Sizes above and below 0, as `+0.012 / -0.018`; one number without a sign where they read the same."""
    up, down = number(rise, unit, signed=True), number(None if fall is None else -fall, unit, signed=True)
    return up.removeprefix("+") if up.lstrip("+") == down.lstrip("-") else f"{up} / {down}"


def least(users: float | None, intents: float | None) -> str:
    """Smallest shares of users and of intents that a run of this design sees, in words."""
    pairs = ((users, "users"), (intents, "intents"))
    known = [f"{100 * share:.1f} % of {name}" for share, name in pairs if share is not None and isfinite(share)]
    shares = " or ".join(known)
    return f"95 % of such runs see a harm that at least {shares} bear."


def bare(text: str) -> str:
    """Number without the unit, where what stands beside it has one."""
    return text.replace(" pp", "").replace(" s", "").replace("$", "")


def named(text: str, noun: str) -> str:
    """A text about requests, for a world in which users bring something else; what stands between backticks is a
    name.
    """
    parts = text.split("`")
    title = noun[:1].upper() + noun[1:]
    parts[::2] = [part.replace("request", noun).replace("Request", title) for part in parts[::2]]
    return "`".join(parts)
