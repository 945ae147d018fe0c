"""Arithmetic on results: ratings, pairing, schedules, standings, statistics. Nothing here waits, reads or asks the time."""
