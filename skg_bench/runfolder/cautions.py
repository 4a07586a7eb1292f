"""Warning about comparisons of few users, wherever verdicts are shown."""

FEW_USERS = 4  # with fewer users an interval is not to be trusted, whatever its width


def few_users(users: int) -> str:
    """Warning about a comparison of two or three users; empty for more, and for one, which verdicts mention."""
    if not 1 < users < FEW_USERS:
        return ""
    why = "an interval of so few may have any width, and a verdict is luck"
    return f"{users} users decide nothing: {why}; take more users"
