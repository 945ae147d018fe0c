"""The arithmetic that other parts need, written by hand on the standard library, without numpy or scipy.

Published figures must be the same, digit for digit, wherever anyone computes them again from the log. numpy and
scipy do not promise that. They leave sums and decompositions to a BLAS library, whose order of operations depends
on its version, the processor and the number of threads. Here every sum has one order. An import-linter contract
keeps numpy and scipy out of all of competition/.
"""
