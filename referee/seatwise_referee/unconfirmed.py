"""The error of a shell that is ahead of its journal. It has a module of its own, because mypyc compiles no class of errors."""


class Unconfirmed(RuntimeError):
    """The shell gave a command before it had confirmed the entries of the last one."""
