"""Ladders: attending bots are paired by rating, and a table shows how they rank."""
