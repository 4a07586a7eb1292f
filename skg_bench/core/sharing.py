"""Users who share one memory of an assistant. They are one instance: played in order of time, never split."""

from skg_bench.core.errors import UsageError

Shares = str | int  # `user`, `all`, or a number of users

MOST = 4096  # users of a run in which some share a memory: their turns are played one after the other


def check_shares(shares: Shares) -> None:
    """Raises UsageError for a value that says no number of users."""
    number = isinstance(shares, int) and not isinstance(shares, bool) and shares >= 1
    if not number and shares not in ("user", "all"):
        raise UsageError(
            f"assistant.shares={shares!r} must be user (each has a memory of their own), all, or a number of users who "
            "share one"
        )


def instance_users(shares: Shares, users: int) -> int:
    """Number of users of an instance, in a run with `users` of them: ids 0 to that number - 1 are the first instance.

    Raises UsageError where the run's users are no whole instances, or too many.
    """
    size = {"user": 1, "all": users}.get(str(shares)) or int(shares)
    if size > 1 and users > MOST:
        raise UsageError(
            f"users={users} and assistant.shares={shares}: turns of users who share a memory are played one after the "
            f"other; valid are up to {MOST:,} users"
        )
    if users % size:
        below = users // size * size
        near = f"users={below + size}" if not below else f"users={below} or users={below + size}"
        raise UsageError(f"users={users} are no whole instances of assistant.shares={size} users; take {near}")
    return size
