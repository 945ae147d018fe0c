"""Dataclasses whose values never change, for what each move of a match makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value_type(cls: type[T]) -> type[T]:
    """Make the class a dataclass whose values never change, as mypy checks.

    Python itself does not refuse an assignment: a frozen dataclass takes more than twice as long to make (measured). A value that
    is made for each move gets its arguments without names, which takes half the time.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
