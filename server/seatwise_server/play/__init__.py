"""Live matches: tables, the streams of their bots, and the referee that owns them."""
