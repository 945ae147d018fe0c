"""The arithmetic that other parts need, written by hand.

Published figures must be the same, digit for digit, wherever anyone computes them again from the log. The sums and
decompositions of numpy and scipy do not promise that. They leave them to a BLAS library, whose order of operations depends
on its version, the processor and the number of threads. Here every sum has one order.

An import-linter contract keeps scipy out of all of competition/, and numpy out of all but the fit of strengths. That fit adds
and multiplies the numbers of arrays one by one, in the same order (`sandwich_covariance`).
"""
