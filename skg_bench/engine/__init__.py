"""The turn and the run."""
