"""Which entrants meet in which round: balanced designs, as tables of entrant numbers that know no bots."""
