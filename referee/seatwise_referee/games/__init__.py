"""The games of the house, one module each."""
