"""Decides which matches a season consists of: one module for each format, and the parts that formats share."""
