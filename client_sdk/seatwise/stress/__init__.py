"""Plays hostile bots beside honest matches on a server of this machine, and reports what the honest ones felt."""
