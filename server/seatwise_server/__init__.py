"""The server: the roles of a process, their services, the store behind them, and the commands that run them."""
