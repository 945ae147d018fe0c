"""Ladders: bots that attend are paired by rating, and everybody can see where they stand."""
