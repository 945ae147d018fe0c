"""The bots of docs/starters/, as their authors build and run them."""
