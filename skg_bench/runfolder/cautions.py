"""Warning about comparisons of few users, wherever verdicts are shown."""

from skg_bench.core.text import plural

FEW_USERS = 4  # with fewer users an interval is not to be trusted, whatever its width


def few_users(users: int, unit: str = "user") -> str:
    """Warning about a comparison of two or three users, or of as many of another unit; empty for more, and for one,
    which verdicts mention.
    """
    if not 1 < users < FEW_USERS:
        return ""
    why = "an interval of so few may have any width, and a verdict is luck"
    return f"{plural(users, unit)} decide nothing: {why}; take more users"


def trusted_verdict(verdict: str, users: int, unit: str = "user") -> str:
    """The verdict, as a list of runs gives it without its warning; of few users, or units, that they decide nothing."""
    return verdict if users >= FEW_USERS else f"undecided by {plural(users, unit)}"
