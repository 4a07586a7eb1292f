"""A library of strategies: what their texts really are, and what fits where in general."""
