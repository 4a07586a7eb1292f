"""Who answers on fallback."""
