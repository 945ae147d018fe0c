"""Build balanced rounds of tables. The tables hold numbers of entrants, and know no bots."""
