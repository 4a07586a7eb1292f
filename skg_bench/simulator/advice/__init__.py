"""The world of advice: users who are about to buy something on impulse, and what they do (Pause's Guardian)."""
