"""Builds balanced rounds of tables. The tables hold numbers of entrants, not bots."""
