"""A seat for a language model: `model_seat.py` is played by calls, and `mcp_server.py` makes tools of them."""
