"""A second world that looks the same to one seat, for the tests that look for leaks."""
