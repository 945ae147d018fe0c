"""A league from a file to its table: what to play, playing it, and what is published of it."""
