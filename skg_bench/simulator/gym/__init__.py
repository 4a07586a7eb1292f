"""Users with tasks of reasoning-gym, which come back in other words: the same, others of their family, or neither."""
