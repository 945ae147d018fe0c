"""Texts that a person wrote or saved: a league file, settings, a deck, records. Other programs may have encoded them otherwise."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from io import BufferedReader
from typing import BinaryIO, Final

from seatwise.errors import UsageError

_HEAD: Final = 6
_COMPRESSED: Final = {
    b"\x1f\x8b": "gunzip", b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"\x28\xb5\x2f\xfd": "unzstd",
}  # fmt: skip
"""The programs that unpack a file, by its first bytes."""


def read_text_file(path: str | os.PathLike[str], most: int = -1) -> str:
    """Return the text of a file in UTF-8, of at most so many bytes; "-" is standard input.

    Raises `UsageError`, which names the file.
    """
    name = os.fspath(path)
    try:
        if name == "-":
            name, data = "standard input", sys.stdin.buffer.read(most)
        else:
            with open(name, "rb") as file:
                data = file.read(most)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    _refuse_encoding(data[:_HEAD], name)
    try:
        text = getincrementaldecoder("utf-8-sig")().decode(data, final=most < 0)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not text in UTF-8") from None
    return text.replace("\r\n", "\n")


def skip_mark(file: BinaryIO, name: str) -> None:
    """Skip the byte order mark that some editors write. Raises `UsageError` for a compressed file, or text in UTF-16."""
    head = file.peek(_HEAD)[:_HEAD] if isinstance(file, BufferedReader) else b""
    _refuse_encoding(head, name)
    if head.startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))


def _refuse_encoding(head: bytes, name: str) -> None:
    for magic, program in _COMPRESSED.items():
        if head.startswith(magic):
            raise UsageError(f"{name} is compressed: unpack it first, with {program}")
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or [not byte for byte in head[:2]].count(True) == 1:
        raise UsageError(f"{name} is text in UTF-16: save it as UTF-8")
