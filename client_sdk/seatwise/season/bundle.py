"""Season bundles as files: a zip with a manifest of hashes, the same bytes for the same season."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import math
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from seatwise_referee.journal import canonical_json
from seatwise_referee.verify import MOST_BYTES, escape_text, find_repeated_key, nesting_fault


class BadSeason(ValueError):  # it is the verdict, not a failure of the program
    """The first thing that is wrong; the text names the file in the bundle and the line, and is safe to print."""

    def __init__(self, text: str) -> None:
        super().__init__(escape_text(text))


class UncheckedSeason(BadSeason):
    """The season could not be checked, because its game is not installed here; the text says what to install."""


def fault_at(file: str, line: int, what: str) -> BadSeason:
    """Return the fault that names the file, the line, counted from 1, and what is wrong with it."""
    return BadSeason(f"{file}: line {line}: {what}")


def check_keys(value: Collection[str], known: Collection[str], where: str) -> None:
    """Raise `BadSeason`, which says where, if one of the keys in `value` is not known: it might change the meaning of the others."""
    for key in value:
        if key not in known:
            raise BadSeason(f"{where}: the key {key!r:.60} does not belong there")


BUNDLE_FORMAT: Final = "seatwise.season/1"
MANIFEST: Final = "manifest.json"
RECORDS: Final = "records.jsonl"
FILES: Final = (
    "settings.json",
    "results.jsonl",
    "voids.jsonl",
    "entrants.jsonl",
    RECORDS,
    "standings.json",
)
"""Besides the manifest; in this order."""
DRAWS: Final = "draws.jsonl"
"""One more file, at the end, if the season has draws that are stored."""

_MAGIC: Final = b"PK\x03\x04"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The one date of all files in it, so that the bundle depends on nothing but the season."""
_CHUNK: Final = 1 << 16

# Limits of a bundle. A genuine one stays far below all of them. Without them a forged bundle of a few kilobytes could fill
# memory and disk, because zip packs a thousand bytes into one.

MOST_UNPACKED: Final = 200
"""Bytes of all files together for each byte of the bundle; a genuine one has about six."""
LONGEST_FILE: Final = 1 << 22
"""Bytes of a file that is read as a whole."""
LONGEST_BUNDLE_LINE: Final = 1 << 16
"""Bytes of a line of any other file. Of records.jsonl a line may be as long as a record."""
MOST_LINES: Final = 1_000_000
"""In any file."""
LONGEST_READ: Final = 1 << 17
"""Bytes that zipfile may read at once. It reads more only of a directory, and that of eight files is short."""


def is_bundle(path: Path) -> bool:
    """Return whether the file at this path looks like a bundle, from its first bytes. A pipe, which gives them only once, is none."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def write_bundle(path: Path, files: Mapping[str, Path]) -> str:
    """Write a bundle, and return its digest: the SHA-256 of its manifest, in hexadecimal.

    Args:
        path: The file to write. It is never there with half a bundle.
        files: The path of each file of the season, by its name in the bundle.
    """
    names = [name for name in (*FILES, DRAWS) if name in FILES or name in files]
    manifest = (
        canonical_json({"format": BUNDLE_FORMAT, "files": {name: _hash_file(files[name]) for name in names}})
        + b"\n"
    )
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(_make_member(MANIFEST), manifest)
        for name in names:
            _add_file(bundle, name, files[name])
    draft.replace(path)
    return hashlib.sha256(manifest).hexdigest()


def _add_file(bundle: zipfile.ZipFile, name: str, path: Path) -> None:
    with path.open("rb") as source, bundle.open(_make_member(name), "w", force_zip64=True) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)


def _make_member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Bundle:
    """A bundle that is open for reading: its archive, and its size in bytes. `open_bundle` makes one."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        self._size = size

    @property
    def digest(self) -> str:
        """The SHA-256 of the manifest, and so of all that is in the bundle, in hexadecimal."""
        return hashlib.sha256(self._read_whole(MANIFEST)).hexdigest()

    @property
    def has_draws(self) -> bool:
        """Whether the season has draws that are stored."""
        return DRAWS in self._archive.namelist()

    @property
    def _names(self) -> tuple[str, ...]:
        return (*FILES, DRAWS) if self.has_draws else FILES

    def check_manifest(self) -> None:
        """Raise `BadSeason` unless the files are those that the manifest lists, with the hashes that it gives."""
        self._check_names()
        self._check_size()
        manifest = self.read_json(MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != BUNDLE_FORMAT:
            raise BadSeason(f"{MANIFEST}: the format is not {BUNDLE_FORMAT}")
        if not isinstance(manifest.get("files"), dict) or sorted(manifest["files"]) != sorted(self._names):
            raise BadSeason(f"{MANIFEST}: it must list {', '.join(self._names)}")
        check_keys(manifest, ("format", "files"), MANIFEST)
        for name in self._names:
            self._check_hash(name, manifest["files"][name])

    def read_json(self, name: str) -> Any:
        """Return the value in the file of this name. Raises `BadSeason` if the file is missing or is no JSON."""
        data = self._read_whole(name)
        try:
            return _parse_json(data)
        except ValueError as error:
            raise BadSeason(f"{name}: this is no JSON: {error}") from None

    def read_json_lines(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the objects in the file of this name, one a line. Raises `BadSeason` at the first line that is no object."""
        for number, line in enumerate(self.read_lines(name), start=1):
            try:
                value = _parse_json(line)
            except ValueError as error:
                raise fault_at(name, number, f"this is no JSON: {error}") from None
            if not isinstance(value, dict):
                raise fault_at(name, number, "this is no object")
            yield value

    def size_of(self, name: str) -> int:
        """Return the size of the file of this name in bytes, as the bundle says; 0 if there is no such file."""
        return sum(member.file_size for member in self._archive.infolist() if member.filename == name)

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of the file of this name, so that a season may be larger than memory.

        Raises `BadSeason` if the file is missing, or if it or one of its lines is too long.
        """
        longest = MOST_BYTES if name == RECORDS else LONGEST_BUNDLE_LINE
        with self._open_file(name) as file:
            for number in itertools.count(1):
                if not (line := file.readline(longest + 1)):
                    return
                if len(line) > longest:
                    raise fault_at(name, number, f"is longer than {longest} bytes")
                if number > MOST_LINES:
                    raise BadSeason(f"{name}: has more than {MOST_LINES} lines")
                yield line

    def _check_names(self) -> None:
        names, wanted = self._archive.namelist(), [MANIFEST, *self._names]
        for name in wanted:
            if names.count(name) != 1:
                raise BadSeason(f"{name} is {'in it twice' if name in names else 'missing'}")
        if strange := sorted(set(names) - set(wanted)):
            raise BadSeason(f"{strange[0][:60]!r} does not belong into a bundle")
        for member in self._archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise BadSeason(f"{member.filename}: is packed in another way than a bundle's files are")

    def _check_size(self) -> None:
        unpacked = sum(member.file_size for member in self._archive.infolist())
        if unpacked > MOST_UNPACKED * self._size:
            raise BadSeason(
                f"its files have {unpacked} bytes, more than {MOST_UNPACKED} for each of the bundle's {self._size}"
            )

    def _check_hash(self, name: str, published: object) -> None:
        digest = hashlib.sha256()
        with self._open_file(name) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != published:
            found = digest.hexdigest()
            raise BadSeason(f"{name}: SHA-256 is {found}, and {MANIFEST} says {published}: it was changed")

    def _read_whole(self, name: str) -> bytes:
        found = bytearray()
        with self._open_file(name) as file:
            while chunk := file.read(_CHUNK):
                found += chunk
                if len(found) > LONGEST_FILE:
                    raise BadSeason(f"{name}: is longer than {LONGEST_FILE} bytes")
        return bytes(found)

    @contextmanager
    def _open_file(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._archive.open(name) as file:
                yield file
        except KeyError:
            raise BadSeason(f"{name} is missing") from None
        except (
            zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError,
        ) as error:  # fmt: skip  # the last one is of a name before a file that is not in UTF-8
            raise BadSeason(f"{name}: cannot be unpacked: {error}") from None


def _parse_json(data: bytes) -> Any:
    """The value; `ValueError` says why there is none.

    Bytes are decoded here, because `json` would take them for UTF-16 or UTF-32 too, where `nesting_fault` sees no brackets.
    """
    if fault := nesting_fault(data):
        raise ValueError(fault)
    return json.loads(
        data.decode(),
        object_pairs_hook=_make_object,
        parse_constant=_refuse_constant,
        parse_float=_parse_finite,
    )


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object. Of a key that stands twice some readers take the first value, and some the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {find_repeated_key(pairs)!r:.60} stands twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _parse_finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:20]} is too large")
    return value


class _ShortReads(io.FileIO):
    """Refuses to be read in long pieces: zipfile reads a directory at once, however long it says that it is."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = LONGEST_READ + 1 if size is None or size < 0 else size
        found = super().read(min(wanted, LONGEST_READ + 1))
        if len(found) > LONGEST_READ:
            raise zipfile.BadZipFile("its directory is too long")
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_SET and offset < 0:
            raise zipfile.BadZipFile("its directory names a place before its beginning")
        return super().seek(offset, whence)


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Open the file at this path, and yield the `Bundle`. Raises `BadSeason` if it is none, and `OSError` if it cannot be read."""
    with _ShortReads(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise BadSeason(f"this is no bundle: {error}") from None
        with archive:
            yield Bundle(archive, os.fstat(file.fileno()).st_size)
