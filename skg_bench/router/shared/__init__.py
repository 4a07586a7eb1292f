"""Routing in one skillbook that many share, of up to a million examples."""
