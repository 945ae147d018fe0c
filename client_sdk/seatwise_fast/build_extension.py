"""Builds the compiled part of `seatwise_fast`: cffi in API mode, for the stable ABI of Python 3.11 and later.

    python client_sdk/seatwise_fast/build_extension.py        # beside this file, for work in a clone

`setup.py` uses the same builder for a wheel.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

from cffi import FFI

HERE: Final = Path(__file__).resolve().parent
C_FILE: Final = HERE / "ugo_rules.c"

DECLARATIONS: Final = """
typedef struct {
    uint64_t hand[4]; uint64_t played[4]; int32_t points[4]; int32_t round_points[4];
    int8_t trick[4]; int8_t won[4]; int8_t section[4][5]; int8_t top[4][5];
    int8_t opened[4]; int8_t farmers[4]; uint8_t missing[4];
    int8_t trick_size, leader, asked, is_laying, supply, seats, round, rounds, is_over;
    ...;
} ugo_table;
void ugo_prepare(void);
void ugo_deal(ugo_table *tables, int count, int seats, int rounds, const uint8_t *deals);
uint64_t ugo_choices(const ugo_table *table);
uint64_t ugo_act(ugo_table *table, int action, const uint8_t *deals);
int ugo_step(ugo_table *tables, int count, const int64_t *actions, const uint8_t *deals);
void ugo_mask(const ugo_table *tables, int count, uint8_t *out);
void ugo_random_actions(const ugo_table *tables, int count, int64_t *out, uint64_t *random);
void ugo_observe(const ugo_table *tables, int count, int viewer, int size, int8_t *out);
int ugo_worlds(const ugo_table *table, int viewer, int count, uint64_t seed, ugo_table *out);
int ugo_search(const ugo_table *table, int most, double seconds, uint64_t seed, int *done);
int ugo_count_deals(const ugo_table *table, const int8_t *sizes, const int8_t *others, int8_t *pool, int pool_size,
    double whim, const uint32_t *words, int count, int *used, int deals, const int8_t *cards, int card_count,
    int64_t *points);
"""


def make_builder(name: str = "seatwise_fast._ugo_rules") -> Any:
    """Return the builder of cffi for the C file, as a module of this name."""
    builder = FFI()
    builder.cdef(DECLARATIONS)
    given = os.environ.get("SEATWISE_FAST_CFLAGS", "").split()
    builder.set_source(
        name,
        C_FILE.read_text(encoding="utf-8"),
        py_limited_api=True,
        define_macros=[("Py_LIMITED_API", "0x030b0000")],
        extra_compile_args=["-O3", "-ffp-contract=off", *given],
        extra_link_args=given,
        libraries=["m"],
    )
    return builder


def build_beside(folder: Path = HERE) -> Path:
    """Compile into a folder for a while, and move the finished module here at once. Return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(make_builder("_ugo_rules").compile(tmpdir=scratch, verbose=False))
        part = folder / f".{built.name}.{os.getpid()}"
        copyfile(built, part)
        return part.replace(folder / built.name)


if __name__ == "__main__":
    try:
        print(build_beside().name)
    except Exception as error:
        sys.exit(f"seatwise_fast was not compiled, and NumPy or nothing takes its place: {error}")
