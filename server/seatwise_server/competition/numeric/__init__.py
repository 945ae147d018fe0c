"""Arithmetic that other wings need, written by hand so that the same log gives the same figures on every machine."""
