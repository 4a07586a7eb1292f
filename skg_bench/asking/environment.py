"""Variables of the environment that decide how models are asked."""

import os


def offline() -> bool:
    """Does it forbid to ask a server? `OFFLINE=1` does."""
    return os.environ.get("OFFLINE", "").strip().lower() in ("1", "true", "yes")
