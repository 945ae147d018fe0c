"""Games from outside: the class that their authors derive from, and the rules that the referee plays them by."""
