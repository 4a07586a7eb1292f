"""Warnings about comparisons of few users and of unfinished runs, wherever verdicts are shown."""

from skg_bench.core.text import plural
from skg_bench.runfolder.manifest import users_left
from skg_bench.runfolder.run import Run

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


def unfinished_run(run: Run) -> str:
    """Warning about a run of which users are missing; empty for a finished one."""
    if run.finished:
        return ""
    here, whole = sum(map(len, run.rows())), plural(users_left(run.manifest), "user")
    return f"{run.path} is unfinished, with {here:,} of {whole}: its `skg-bench run` command goes on with it"
