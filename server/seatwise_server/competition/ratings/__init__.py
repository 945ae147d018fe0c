"""How strong each bot is: openskill ratings, folded match by match, and strengths fitted to all matches at once."""
