"""Tables, comparisons and the page, computed from the logs of a run."""
