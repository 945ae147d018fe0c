"""Who ranks where: how a match is scored, tie-breaks, standings and the crosstable."""
