"""Builds balanced rounds of tables, which hold numbers of entrants, and balances the seats at tables."""
