"""Memory and knowledge that several curators have in common."""
