"""How a bot stays connected: its presence in the lobby, its seats, and the streams that carry them."""
