"""Arms held against one another, within a run and across runs, and what that says of the claims."""
