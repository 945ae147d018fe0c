"""Says in one sentence how a season ended, or stands, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence

from seatwise.replay.frame_builder import join_names

NO_RESULT = "No result counts yet."


def describe_leaders(leaders: Sequence[str], rivals: Sequence[str] | None, *, is_over: bool) -> str:
    """Return the verdict on a season.

    Args:
        leaders: The names of the entrants that share the first rank; none if there is no result.
        rivals: The names of the entrants that cannot be told apart from the only leader; `None` if that is not known.
        is_over: Whether the season is over.

    >>> describe_leaders(["ann"], ["bob", "eve"], is_over=True)
    'ann wins, but the results do not tell it apart from bob and eve.'
    """
    if not leaders:
        return NO_RESULT
    if len(leaders) > 1:
        return f"{join_names(leaders)} share the first rank."
    verb = "wins" if is_over else "leads"
    if rivals is None:
        return f"{leaders[0]} {verb}."
    if not rivals:
        return f"{leaders[0]} {verb}, and the results tell it apart from every other entrant."
    return f"{leaders[0]} {verb}, but the results do not tell it apart from {join_names(rivals)}."
