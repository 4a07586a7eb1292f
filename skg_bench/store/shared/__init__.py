"""Tables and waiting times that several stores share."""
