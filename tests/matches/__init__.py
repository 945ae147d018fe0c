"""Matches that tests begin with: played without a server, finished with something to look at, or forged."""
