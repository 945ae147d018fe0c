"""Arithmetic on results: schedules, designs, standings, ratings, statistics. It does no I/O and reads no clock."""
