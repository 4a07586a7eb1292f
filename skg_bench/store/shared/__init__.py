"""What stores share."""
