"""Drawings of a hosted game: the small vocabulary, the check of what an author's `draw` returns, and the drawing of any view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from seatwise_referee.hosted.payload import LARGEST_NUMBER, encode_payload

Drawing: TypeAlias = "list[dict[str, Any]]"
"""The items of a drawing: zones of cards, counters, boards, texts."""

LONGEST_DRAWING: Final = 65_536
"""The most characters of a drawing as canonical JSON."""

MOST_PIECES: Final = 400
"""The most pieces of a drawing: items, cards, and pieces on boards."""

LARGEST_BOARD: Final = 40
LONGEST_NAME, LONGEST_PIECE, LONGEST_TEXT = 60, 24, 300

COLOURS: Final = ("red", "black", "blue", "green", "yellow", "orange", "purple", "grey")

_DEEPEST_NAME: Final = 3
"""The levels of a view that the drawing of any view names. Deeper ones are written as text."""

_Check: TypeAlias = "Callable[[Any], bool]"


def _is_text(longest: int) -> _Check:
    return lambda value: type(value) is str and len(value) <= longest and value.isprintable()


def _is_number(most: int, least: int = 0) -> _Check:
    return lambda value: type(value) is int and least <= value <= most


_IS_PIECE_TEXT: Final = _is_text(LONGEST_PIECE)


def _is_one_of(*texts: str) -> _Check:
    return lambda value: type(value) is str and value in texts


def _is_value(value: Any) -> bool:
    return _IS_PIECE_TEXT(value) or (type(value) is int and abs(value) <= LARGEST_NUMBER)


def _is_list(value: Any) -> bool:
    return type(value) is list


_IS_NAME: Final = _is_text(LONGEST_NAME)
_IS_PLACE: Final = _is_number(LARGEST_BOARD - 1)
_IS_SIZE: Final = _is_number(LARGEST_BOARD, 1)

_CARD: Final[Mapping[str, _Check]] = {
    "text": _IS_PIECE_TEXT, "colour": _is_one_of(*COLOURS), "face": _is_one_of("up", "down"), "rank": _is_value,
    "marked": lambda value: type(value) is bool,
}  # fmt: skip
_PIECE: Final[Mapping[str, _Check]] = {
    "row": _IS_PLACE,
    "column": _IS_PLACE,
    "text": _IS_PIECE_TEXT,
    "colour": _is_one_of(*COLOURS),
}
_ITEMS: Final[Mapping[str, Mapping[str, _Check]]] = {
    "zone": {"zone": _IS_NAME, "cards": _is_list, "layout": _is_one_of("row", "stack")},
    "counter": {"counter": _IS_NAME, "value": _is_value},
    "board": {"board": _IS_NAME, "rows": _IS_SIZE, "columns": _IS_SIZE, "pieces": _is_list},
    "text": {"text": _is_text(LONGEST_TEXT)},
}
_MAY_BE_LEFT_OUT: Final = {"layout"}
"""Keys of items besides the owner: all others must be there."""


def encode_drawing(drawing: Any, seats: int) -> str:
    """Return a drawing as canonical JSON. Raises `ValueError`, which says where, for anything that is none."""
    if type(drawing) is not list or any(type(item) is not dict for item in drawing):
        raise ValueError("a drawing is a list of dicts")
    pieces = len(drawing)
    for place, item in enumerate(drawing):
        pieces += _check_item(f"item {place}", item, seats)
    if pieces > MOST_PIECES:
        raise ValueError(f"it has {pieces} pieces; at most {MOST_PIECES} are allowed")
    return encode_payload(drawing, LONGEST_DRAWING)


def _check_item(where: str, item: dict[str, Any], seats: int) -> int:
    """Check one item, and return how many cards or pieces it has."""
    kind = next((each for each in _ITEMS if each in item), "")
    if not kind:
        raise ValueError(f"{where} has none of the keys {', '.join(_ITEMS)}")
    must = _ITEMS[kind].keys() - _MAY_BE_LEFT_OUT
    _check_keys(where, item, {**_ITEMS[kind], "owner": _is_owner(seats)}, must)
    for place, card in enumerate(item.get("cards", ())):
        needed = {"face"} if type(card) is dict and card.get("face") == "down" else {"text"}
        _check_keys(f"{where}, card {place}", card, _CARD, needed)
    for place, piece in enumerate(item.get("pieces", ())):
        _check_keys(f"{where}, piece {place}", piece, {**_PIECE, "owner": _is_owner(seats)}, {"row", "column", "text"})  # fmt: skip
        if piece["row"] >= item["rows"] or piece["column"] >= item["columns"]:
            raise ValueError(f"{where}, piece {place} is not on the board")
    return len(item.get("cards", ())) + len(item.get("pieces", ()))


def _is_owner(seats: int) -> _Check:
    return lambda value: value is None or _is_number(seats - 1)(value)


def _check_keys(where: str, value: Any, checks: Mapping[str, _Check], needed: set[str]) -> None:
    if type(value) is not dict:
        raise ValueError(f"{where} is no dict")
    if missing := needed - value.keys():
        raise ValueError(f"{where} has no {sorted(missing)[0]!r}")
    for key, each in value.items():
        if key not in checks:
            raise ValueError(f"{where} has the key {str(key)[:LONGEST_NAME]!r}, which no drawing has")
        if not checks[key](each):
            raise ValueError(f"{where} has a wrong value of {key!r}")


# The drawing of any view, for games that do not draw


def draw_any_view(data: Mapping[str, Any]) -> Drawing:
    """Return a drawing of a view: numbers as counters, lists as cards, tables as boards, and the rest as text."""
    drawn: Drawing = []
    pieces = 0
    for item in _draw_values("", data, 1):
        pieces += 1 + len(item.get("cards", ())) + len(item.get("pieces", ()))
        if pieces >= MOST_PIECES:
            return [*drawn, {"text": "The rest of the view is not shown."}]
        drawn.append(item)
    return drawn


def _draw_values(path: str, values: Mapping[str, Any], depth: int) -> Iterator[dict[str, Any]]:
    for key, value in values.items():
        label = key.replace("_", " ")
        name = _cut(f"{path}, {label}" if path else label.capitalize(), LONGEST_NAME)
        yield from _draw_value(name, value, depth)


def _draw_value(name: str, value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if value is None or value in ("", [], {}):
        return
    if type(value) is int:
        yield {"counter": name, "value": value}
    elif type(value) is dict and depth < _DEEPEST_NAME:
        yield from _draw_values(name, value, depth + 1)
    elif type(value) is list and all(map(_is_short, value)):
        yield {"zone": name, "cards": [{"text": _write_short(each)} for each in value]}
    elif type(value) is list and _is_table(value):
        pieces = [
            {"row": row, "column": column, "text": _write_short(each)}
            for row, cells in enumerate(value)
            for column, each in enumerate(cells)
            if each not in (None, "")
        ]
        yield {"board": name, "rows": len(value), "columns": len(value[0]), "pieces": pieces}
    elif type(value) is list and depth < _DEEPEST_NAME:
        for number, each in enumerate(value, 1):
            yield from _draw_value(_cut(f"{name} {number}", LONGEST_NAME), each, depth + 1)
    else:
        yield {"text": _cut(f"{name}: {_write_long(value)}", LONGEST_TEXT)}


def _is_table(rows: Sequence[Any]) -> bool:
    return (
        1 < len(rows) <= LARGEST_BOARD
        and all(type(row) is list and all(map(_is_short, row)) for row in rows)
        and len({len(row) for row in rows}) == 1
        and 1 < len(rows[0]) <= LARGEST_BOARD
    )


def _is_short(value: Any) -> bool:
    if type(value) is dict:  # a card, as in {"suit": "S", "rank": 7}
        return len(value) <= 3 and all(map(_is_short_value, value.values()))
    return _is_short_value(value)


def _is_short_value(value: Any) -> bool:
    return type(value) not in (dict, list) and len(_write_long(value)) <= LONGEST_PIECE


def _write_short(value: Any) -> str:
    values = value.values() if type(value) is dict else (value,)
    return _cut(" ".join(map(_write_long, values)), LONGEST_PIECE)


def _write_long(value: Any) -> str:
    """Return any value of a view as text for people."""
    if value is None:
        return "-"
    if type(value) is bool:
        return "yes" if value else "no"
    if type(value) is dict:
        return ", ".join(f"{key} {_write_long(each)}" for key, each in value.items())
    if type(value) is list:
        return " ".join(map(_write_long, value))
    return str(value)


def _cut(text: str, longest: int) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def describe_move_json(move: Any) -> str:
    """Return a move as text for people."""
    return _cut(_write_long(move), LONGEST_NAME)


# A drawing as text


def describe_drawing(drawing: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a drawing for terminals and screen readers."""
    lines: list[str] = []
    for item in drawing:
        if "zone" in item:
            lines.append(f"{item['zone']}: {_describe_cards(item['cards'])}")
        elif "counter" in item:
            lines.append(f"{item['counter']}: {item['value']}")
        elif "board" in item:
            lines += [f"{item['board']}:", *_describe_board(item)]
        else:
            lines.append(item["text"])
    return lines


def _describe_cards(cards: Sequence[Mapping[str, Any]]) -> str:
    down = sum(card.get("face") == "down" for card in cards)
    said = [f"{card['text']}{'*' if card.get('marked') else ''}" for card in cards if card.get("face") != "down"]  # fmt: skip
    return " ".join([*said, *([f"({down} face down)"] if down else [])]) or "none"


def _describe_board(item: Mapping[str, Any]) -> Iterator[str]:
    texts = {(piece["row"], piece["column"]): piece["text"] for piece in item["pieces"]}
    wide = max(map(len, texts.values()), default=1)
    for row in range(item["rows"]):
        cells = (texts.get((row, column), ".").ljust(wide) for column in range(item["columns"]))
        yield f"  {' '.join(cells).rstrip()}"
