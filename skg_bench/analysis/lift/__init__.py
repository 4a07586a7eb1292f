"""Worth of each skill, from the logs of a run."""
