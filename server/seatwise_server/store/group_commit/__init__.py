"""Group commit: journal entries of all matches go to each Redis node in batches, in order, each exactly once."""
