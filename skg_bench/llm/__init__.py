"""Models, one module each: they answer users on fallback, or write texts for a curator or policy. `asking` sends."""
