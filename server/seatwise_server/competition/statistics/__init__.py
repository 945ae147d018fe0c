"""Measures how certain a season's figures are and whether it was fair: intervals, luck of the deal, and tests."""
