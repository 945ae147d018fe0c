"""The shuffle is the same for ever: whoever holds a record can compute it anew, in any language."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from seatwise_referee.shuffle import NO_NONCE, commitment_to, deal_seed, shuffle_items

SEED = bytes(range(32))
CARDS = [colour + value for colour in "RBGYK" for value in "012345678"]


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104 for keys of up to one block, from nothing but SHA-256."""
    inner, outer = (bytes(byte ^ pad for byte in key.ljust(64, b"\0")) for pad in (0x36, 0x5C))
    return sha256(outer + sha256(inner + message).digest()).digest()


def test_the_shuffle_of_a_known_seed_is_known() -> None:
    assert " ".join(shuffle_items(CARDS, SEED, "ugo/round/1")) == (
        "G3 Y7 R4 K2 Y8 B6 G4 B3 R1 G2 K7 B2 R3 K1 B7 "
        "R5 G8 Y5 K4 Y0 B8 K8 R2 B5 R8 Y3 R0 Y4 R7 G7 "
        "G1 B1 K5 Y2 Y6 K6 Y1 B4 G0 R6 G6 B0 K3 G5 K0"
    )


def test_another_label_gives_another_order() -> None:
    assert " ".join(shuffle_items(CARDS, SEED, "ugo/round/2")[:10]) == "R0 K8 G0 Y7 G5 G4 R3 K3 Y2 K6"


def test_the_digest_that_orders_a_card_is_known() -> None:
    assert hmac_sha256(SEED, b"ugo/round/1:R3").hex() == (
        "3493468e9db89ac75473085f255b678374be34311748c4f6b51b536e5272b188"
    )


@given(st.binary(min_size=32, max_size=32), st.text(max_size=20), st.lists(st.text(max_size=5), unique=True))
def test_five_lines_of_sha256_shuffle_the_same(seed: bytes, label: str, items: list[str]) -> None:
    digests = {item: hmac_sha256(seed, f"{label}:{item}".encode()) for item in items}
    assert shuffle_items(items, seed, label) == sorted(items, key=digests.__getitem__)


def test_the_order_does_not_depend_on_how_the_items_came() -> None:
    assert shuffle_items(CARDS[::-1], SEED, "any") == shuffle_items(CARDS, SEED, "any")


def test_the_commitment_is_the_hash_of_the_seed() -> None:
    assert commitment_to(SEED).hex() == "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd"


def test_the_seed_of_the_deals_takes_in_every_nonce_in_seat_order() -> None:
    one, two = b"\x01" * 32, b"\x02" * 32
    assert deal_seed(SEED, [one, two]) == sha256(SEED + one + two).digest()
    assert deal_seed(SEED, [one, two]) != deal_seed(SEED, [two, one])


def test_an_absent_nonce_counts_as_zeros() -> None:
    assert bytes(32) == NO_NONCE
    assert deal_seed(SEED, [None, b"\x02" * 32]) == sha256(SEED + bytes(32) + b"\x02" * 32).digest()
