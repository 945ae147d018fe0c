"""The whole referee shell in one process and in no time: see `world`."""
