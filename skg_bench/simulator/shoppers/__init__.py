"""Users who are about to buy something on impulse, and an assistant that steps in (Pause's Guardian)."""
