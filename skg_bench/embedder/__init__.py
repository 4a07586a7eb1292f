"""Texts to vectors on the integer grid."""
