"""Real processes, killed and stopped while they play; and what every bot wrote down, held against the records."""
