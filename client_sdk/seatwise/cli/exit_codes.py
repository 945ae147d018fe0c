"""The exit codes of the `seatwise` command, apart from 0 for success."""

FAILED = 1
USAGE = 2
"""The arguments are wrong, or the server refuses what they ask for."""
INTERRUPTED = 130
"""Ended by Ctrl-C: 128 and the number of SIGINT, as shells have it."""
