"""Who the users are."""
