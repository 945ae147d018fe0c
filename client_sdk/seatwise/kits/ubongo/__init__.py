"""Ubongo - Das Kartenspiel: its kit, codec, frames and texts, the method of its bots, and its sample bots."""
