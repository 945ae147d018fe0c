"""The commands that need the server extra. `seatwise` finds them by their entry points."""
