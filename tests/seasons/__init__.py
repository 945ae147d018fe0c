"""Seasons without a server: a small league, points with a known truth, a ladder in virtual time."""
