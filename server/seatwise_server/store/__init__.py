"""Everything of the server that talks to Redis."""
