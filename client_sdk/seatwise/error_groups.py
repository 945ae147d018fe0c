"""Finds the reason in a group of exceptions."""


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first exception of a group, however deep it lies in groups within groups."""
    first = group.exceptions[0]
    return first_error(first) if isinstance(first, BaseExceptionGroup) else first
