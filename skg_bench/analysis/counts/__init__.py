"""The logs of a run as counts by user, request and week, and the metrics that are made of them."""
