"""Estimates how strong each bot is: openskill ratings, updated by each match, and strengths fitted to all matches."""
