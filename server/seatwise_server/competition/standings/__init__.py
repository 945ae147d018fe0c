"""Ranks entrants: the scoring of matches, tie-breaks, standings, and the crosstable."""
