"""Computes schedules, designs, standings, ratings and statistics from results. It does no I/O and reads no clock.

Every figure is a pure function of settings and results, with pseudo-random draws only from stated seeds. So
everyone who has the log gets the same figures, to the last published digit.

- `logged_result` is the one input: a match that counts.
- `schedules` decides which matches a season consists of, on the balanced `designs`.
- `standings` scores matches and ranks entrants by declared tie-breaks.
- `ratings` has openskill ratings, which depend on the order of the matches, and fitted strengths, which do not.
- `statistics` measures how certain a season's figures are, and whether it was fair.
- `numeric` has the arithmetic that several of them need. It is written by hand, on the standard library alone.

docs/statistics.md defines every figure and lists every constant.
"""
