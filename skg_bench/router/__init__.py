"""Message and skillbook to a shortlist."""
