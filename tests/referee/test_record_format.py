"""docs/record-format.md is true: its vectors are worked out again, and it leaves no key out."""

from __future__ import annotations

import hmac
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from matches.example_record import FILE
from matches.forging import record_of, the

from seatwise_referee.ending import Ending, SeatExit, VoidReason, result_ranks
from seatwise_referee.game import ranks_of
from seatwise_referee.games import ubongo
from seatwise_referee.games.registry import GAMES
from seatwise_referee.games.ugo.cards import UgoCard
from seatwise_referee.games.ugo.kingdoms import default_order
from seatwise_referee.games.ugo.tricks import farmers_gained, winner_of
from seatwise_referee.journal import (
    ENTRY_TYPES,
    PRIVATE_FIELDS,
    canonical_json,
    decode_entry,
    encode_entry,
    entry_from_json,
)
from seatwise_referee.record import TAIL_KEYS
from seatwise_referee.shuffle import commitment_to, deal_seed, deal_seed_of_set, seed_in_set, shuffle_items
from seatwise_referee.verify import MOST_BYTES
from seatwise_referee.verify.fault import MOST_LETTERS
from seatwise_referee.verify.reading import MOST_DEPTH, MOST_QUOTES, MOST_VALUES
from seatwise_referee.verify.shape import LONGEST_TEXT

PAGE = (Path(__file__).parents[2] / "docs" / "record-format.md").read_text()
EXAMPLE: dict[str, Any] = json.loads(FILE.read_bytes())
SEED = bytes(range(32))
NONCES = (bytes([0xA0]) * 32, None)
CARDS = [colour + str(value) for colour in "RBGYK" for value in range(9)]


def section(title: str) -> str:
    """The text between this heading and the next."""
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def vectors(text: str) -> dict[str, str]:
    """The lines of code blocks that have two columns."""
    lines = "\n".join(re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)).splitlines()
    columns = (re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines)
    return {each[0]: each[1] for each in columns if len(each) == 2}


def test_the_vector_of_canonical_json_is_right() -> None:
    written = canonical_json({"b": [1, None, True], "a": {'\u00e9\n\a/"\\': "\U0001f600\x7f"}}).decode()
    assert f"\n{written}\n" in section("1 The file")


def test_the_longest_line_is_as_the_page_says() -> None:
    (power,) = re.findall(r"2\^(\d+) bytes", section("1 The file"))
    assert 2 ** int(power) == MOST_BYTES


def test_the_bounds_of_a_line_are_as_the_page_says() -> None:
    page = section("1 The file")
    assert f"nested more than {MOST_DEPTH} deep" in page
    assert f"{MOST_VALUES:,} (2^20) commas and opening brackets" in page
    assert f"{MOST_QUOTES:,} (2^22) quotes" in page
    assert f"a string of 1 to {LONGEST_TEXT} characters" in page
    assert f"at most {MOST_LETTERS}\ncharacters" in page


def test_the_vectors_of_chance_are_right() -> None:
    found = vectors(section("4 Chance"))
    seed = deal_seed(SEED, NONCES)
    assert found["commitment"] == commitment_to(SEED).hex()
    assert found["deal_seed"] == seed.hex()
    hmacs = {key.removeprefix("HMAC of "): value for key, value in found.items() if key.startswith("HMAC")}
    assert len(hmacs) == 3
    for message, digest in hmacs.items():
        assert digest == hmac.digest(seed, message.encode(), "sha256").hex()
    for number in (1, 2):
        label = f"ugo/round/{number}"
        assert found[f"order of {label}"].split() == shuffle_items(CARDS, seed, label)
    deck = [f"2-{number:02}" for number in range(1, 37)]
    assert found["order of ubongo/deck/2"].split() == shuffle_items(deck, seed, "ubongo/deck/2")


def test_the_vectors_of_a_set_are_right() -> None:
    found = vectors(section("4 Chance"))
    for number in (1, 12):
        assert found[f"seed of match {number}"] == seed_in_set(SEED, number).hex()
    assert found["commitment of match 1"] == commitment_to(seed_in_set(SEED, 1)).hex()
    assert found["deal_seed of the set"] == deal_seed_of_set(SEED).hex()


def test_the_vectors_of_the_chain_are_right() -> None:
    links = [(text, link) for text, link in vectors(section("5 The chain")).items() if text.startswith("{")]
    assert len(links) == 3
    before = b""
    for text, link in links:
        assert text.encode() == canonical_json(json.loads(text))
        before = sha256(before + text.encode()).digest()
        assert link == before.hex()


def test_the_links_of_the_example_are_right() -> None:
    text = section("16 An example")
    header = canonical_json({key: value for key, value in EXAMPLE.items() if key not in TAIL_KEYS})
    assert f"({len(header)} bytes)" in text
    link = sha256(header).digest()
    found = vectors(text)
    assert found["header"] == link.hex()
    for entry in EXAMPLE["entries"][:2]:
        link = sha256(link + canonical_json(entry)).digest()
        assert found[f"seq {entry['seq']}"] == link.hex()
    assert f"\n{EXAMPLE['chain']}\n" in text


def test_the_entries_shown_are_those_of_the_example() -> None:
    shown = [
        json.loads(line) for line in re.findall(r'^\{"seq".*\}$', section("16 An example"), re.MULTILINE)
    ]
    assert [entry["seq"] for entry in shown] == list(range(1, 11))
    for entry, real in zip(shown, EXAMPLE["entries"], strict=False):
        nonce = {"nonce": real["nonce"]} if entry.get("nonce") == "a0a0..." else {}
        assert {**entry, **nonce} == real


def test_the_vector_of_ranks_is_right() -> None:
    assert "points 5, 9, 8, 1; seat 1 left with seq 40, seat 2 never sat, seat 3 left with seq 60" in PAGE
    points = (5, 9, 8, 1)
    exits = (
        None,
        SeatExit(Ending.RESIGNED, 40),
        SeatExit(Ending.NEVER_SAT, 0),
        SeatExit(Ending.TIMED_OUT, 60),
    )
    assert ", ".join(map(str, ranks_of(points))) == "3, 1, 2, 4"
    assert ", ".join(map(str, result_ranks(ranks_of(points), exits))) == "1, 3, 4, 2"
    assert "`outcome.ranks` 3, 1, 2, 4; `result.ranks` 1, 3, 4, 2" in PAGE


def test_the_table_of_farmers_is_right() -> None:
    rows = re.findall(r"^\| (?:the winning|a losing) card[^|]* \| ([\d |]+) \|$", PAGE, re.MULTILINE)
    winning, lost_same, lost_other = (list(map(int, row.split(" | "))) for row in rows)
    for value in range(9):
        assert gained(f"R{value}", "B0")[0] == winning[value]
        assert gained("R8", f"B{value}")[1] == lost_other[value]
    assert [gained("R8", f"R{value}")[1] for value in range(8)] == lost_same[:8]
    assert lost_same[8] == 0  # cannot be: there is one card of each value and colour


def gained(*texts: str) -> tuple[int, ...]:
    cards = trick(*texts)
    return tuple(farmers_gained(cards, winner_of(cards)))


def trick(*texts: str) -> tuple[UgoCard, ...]:
    return tuple(map(UgoCard.parse, texts))


def test_the_example_of_the_default_order_is_right() -> None:
    assert 'So of K0, R4, K6, B4: `["K0", "K6", "R4", "B4"]`' in PAGE
    assert list(map(str, default_order(trick("K0", "R4", "K6", "B4")))) == ["K0", "K6", "R4", "B4"]


def test_the_vectors_of_turned_cards_are_right() -> None:
    found = vectors(section("12 Ubongo"))
    for turn in range(4):
        written = " ".join(f"({x},{y})" for x, y in ubongo.cells(0, 0, turn))
        assert found[f"turn {turn}"] == written


def test_the_vectors_of_touching_cards_are_right() -> None:
    one, other = ubongo.CARDS[:2]
    found = [item for item in vectors(section("12 Ubongo")).items() if not item[0].startswith("turn")]
    assert {said.split(":")[0] for _, said in found} == {"fits", "wrong"}
    for placed, said in found:
        symbols, x, y, turn = placed.split()
        layout = (ubongo.Placement(one, 0, 0, 0), ubongo.Placement(other, int(x), int(y), int(turn)))
        assert ubongo.is_fitting(layout, {one: "ABCDEF", other: symbols}) == said.startswith("fits"), placed


def test_every_key_and_option_of_a_race_is_described() -> None:
    body = record_of("raced")
    for key in body["deals"][0]:
        assert f"| `{key}` |" in section("4 Chance"), key
    for option in body["options"]:
        assert f"| `{option}` |" in section("12 Ubongo"), option
    for kind in ("called", "agreed"):
        for key in the(body if kind == "called" else record_of("agreed"), kind).keys() - {
            "kind",
            "seq",
            "at_ms",
        }:
            assert f"| `{key}` |" in section("9 Races"), key
    for key in the(body, "called")["calls"][0]:
        assert f"`{key}`" in section("9 Races"), key


def test_every_key_of_a_record_is_described() -> None:
    for key in EXAMPLE:
        assert f"| `{key}` |" in section("2 The record"), key
    for key in EXAMPLE["time_control"]:
        assert f"| `{key}` |" in section("3 The header"), key
    for key in EXAMPLE["deals"][0]:
        assert f"| `{key}` |" in section("4 Chance"), key
    for option in EXAMPLE["options"]:
        assert f"Option `{option}`" in section("11 UGO!"), option


@pytest.mark.parametrize("kind", sorted(ENTRY_TYPES.keys() - {"voided"}))
def test_every_kind_of_entry_and_every_key_of_it_is_described(kind: str) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \|(.*)$", section("6 Entries"), re.MULTILINE)
    for name in ENTRY_TYPES[kind].__dataclass_fields__.keys() - PRIVATE_FIELDS - {"kind", "seq", "at_ms"}:
        assert f"`{name}`" in row, name


def test_fields_of_the_journal_alone_are_described() -> None:
    text = section("15 The journal")
    for name in (*PRIVATE_FIELDS, *VoidReason):
        assert f"`{name}`" in text, name


def test_the_example_reads_and_writes_as_a_journal_does() -> None:
    for body in EXAMPLE["entries"]:
        entry = entry_from_json(body)
        assert decode_entry(encode_entry(entry)) == entry


def test_the_page_names_the_versions_it_is_about() -> None:
    assert EXAMPLE["format"] in section("2 The record")
    for name, game in GAMES.items():
        assert f"`{game.rules_version}` of `{name}`" in section("2 The record")
