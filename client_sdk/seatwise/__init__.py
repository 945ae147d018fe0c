"""Write a bot, try it at a local table, connect it to a referee."""
