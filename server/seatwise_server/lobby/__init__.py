"""The lobby role: attendance of bots, waiting in queues, pairing and seating."""
