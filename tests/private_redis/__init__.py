"""Fixtures for real Redis nodes on loopback, and a load of appends for them."""
