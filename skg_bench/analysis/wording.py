"""Numbers as people read them."""

from math import isfinite


def number(value: float | None, unit: str, *, signed: bool = False) -> str:
    """A value of a metric in its unit (`Metric.unit`); a dash where there is none. `signed`: a difference."""
    if value is None or not isfinite(value):
        return "-"
    sign = "+" if signed and value > 0 else "-" if value < 0 else ""
    size = abs(value)
    match unit:
        case "share" | "difference":
            return f"{sign}{100 * size:.1f} {'pp' if signed or unit == 'difference' else '%'}"
        case "usd":
            return f"{sign}${size:.5f}"
        case "ms":
            return f"{sign}{size / 1000:.2f} s"
        case "utility" | "calls":
            return f"{sign}{size:.3f}"
        case _:
            return f"{sign}{size:.1f}"


def interval(low: float | None, high: float | None, unit: str, *, signed: bool = False) -> str:
    """`low to high`."""
    return f"{number(low, unit, signed=signed)} to {number(high, unit, signed=signed)}"
