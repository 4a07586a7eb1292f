"""What several policies use: `distributions` over the fallback and a shortlist."""
