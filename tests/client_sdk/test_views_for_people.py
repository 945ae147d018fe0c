"""A view as its author sees it: `help` tells each field, and `print` fits a screen."""

from __future__ import annotations

import pydoc
from dataclasses import fields
from typing import Any

import pytest

import seatwise
from seatwise import ubongo, ugo

COLUMNS, LINES = 110, 24


@pytest.mark.parametrize("view", [ugo.View, ubongo.View])
def test_help_tells_each_field(view: Any) -> None:
    text = pydoc.render_doc(view, renderer=pydoc.plaintext)
    missing = [field.name for field in fields(view) if f"{field.name}: " not in text]
    assert not missing


@pytest.mark.parametrize(("game", "seats"), [("ugo", 2), ("ugo", 4), ("ubongo", 2), ("ubongo", 4)])
def test_every_view_of_a_match_fits_a_screen_and_names_its_fields(game: str, seats: int) -> None:
    shown: list[str] = []
    names = {field.name for field in fields({"ugo": ugo, "ubongo": ubongo}[game].View)}

    class Looking(seatwise.Bot):
        def choose(self, view: ugo.View) -> ugo.Card:
            shown.append(repr(view))
            return view.legal_cards[0]

        def build(self, view: ubongo.View) -> Any:
            shown.append(repr(view))
            yield ()

    seatwise.play([Looking, *["random"] * (seats - 1)], game=game, seed=1)
    for text in shown:
        lines = text.splitlines()
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= COLUMNS
    assert all(
        name in shown[-1] or name == "rounds" or (name == "layout" and game == "ubongo") for name in names
    )


def test_a_view_tells_its_hand_and_its_kingdoms() -> None:
    found: list[ugo.View] = []

    class Looking(seatwise.Bot):
        def choose(self, view: ugo.View) -> ugo.Card:
            found.append(view)
            return view.legal_cards[0]

    seatwise.play([Looking, "random"], seed=1)
    text = repr(found[6])
    assert all(str(card) in text for card in found[6].hand)
    assert all(str(top) in text for kingdom in found[6].kingdoms for top in kingdom.tops if top)
