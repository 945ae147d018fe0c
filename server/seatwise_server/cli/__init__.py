"""The commands that need the server extra; found by entry points."""
