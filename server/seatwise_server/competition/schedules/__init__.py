"""Decide which matches a season consists of: one module for each format, and what the formats share."""
