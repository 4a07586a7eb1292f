"""The one error a user is meant to read: it names the value, what is valid, and what to do."""


class UsageError(Exception):
    """Bad input: printed as one plain message without a traceback, exit code 2."""
