"""Assistants: what answers messages and learns from feedback."""
