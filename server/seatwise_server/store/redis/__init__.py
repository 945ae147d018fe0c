"""Redis as a transport: addresses, clients of one server, sentinels and clusters, scripts, outages, durability checks."""
