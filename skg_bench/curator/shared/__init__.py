"""What curators have in common."""
