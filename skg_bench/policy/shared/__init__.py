"""Functions of several policies: `distributions` over the fallback and a shortlist."""
