"""Season bundles as files: a zip with a manifest of hashes, the same bytes for the same season."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from seatwise.season.fault import BadSeason, at
from seatwise_referee.journal import canonical_json

FORMAT: Final = "seatwise.season/1"
MANIFEST: Final = "manifest.json"
FILES: Final = (
    "settings.json",
    "results.jsonl",
    "voids.jsonl",
    "entrants.jsonl",
    "records.jsonl",
    "standings.json",
)
"""Besides the manifest; in this order."""

_MAGIC: Final = b"PK\x03\x04"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The one date of all files in it, so that the bundle depends on nothing but the season."""
_MOST_BYTES: Final = 1 << 28
"""Of a file that is read as a whole, and of a line."""
_CHUNK: Final = 1 << 16


def is_bundle(path: Path) -> bool:
    """Whether it looks like one, from its first bytes. A pipe, which gives them only once, is none."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def written(path: Path, files: Mapping[str, Path]) -> str:
    """Writes the bundle, never half of it; returns its digest."""
    manifest = (
        canonical_json({"format": FORMAT, "files": {name: _sha256(files[name]) for name in FILES}}) + b"\n"
    )
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(_member(MANIFEST), manifest)
        for name in FILES:
            _add(bundle, name, files[name])
    draft.replace(path)
    return hashlib.sha256(manifest).hexdigest()


def _add(bundle: zipfile.ZipFile, name: str, path: Path) -> None:
    with path.open("rb") as source, bundle.open(_member(name), "w", force_zip64=True) as target:
        while chunk := source.read(_CHUNK):
            target.write(chunk)


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Bundle:
    """A bundle that is open for reading."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, and so of all that is in the bundle."""
        return hashlib.sha256(self._whole(MANIFEST)).hexdigest()

    def check_manifest(self) -> None:
        """`BadSeason` unless the files are those that the manifest lists, with the hashes that it gives."""
        self._check_names()
        manifest = self.json(MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise BadSeason(f"{MANIFEST}: the format is not {FORMAT}")
        if not isinstance(manifest.get("files"), dict) or sorted(manifest["files"]) != sorted(FILES):
            raise BadSeason(f"{MANIFEST}: it must list {', '.join(FILES)}")
        for name in FILES:
            self._check_hash(name, manifest["files"][name])

    def json(self, name: str) -> Any:
        """The value in that file."""
        try:
            return json.loads(self._whole(name))
        except ValueError as error:
            raise BadSeason(f"{name}: this is no JSON: {error}") from None

    def jsons(self, name: str) -> Iterator[dict[str, Any]]:
        """The objects in that file, one a line."""
        for number, line in enumerate(self.lines(name), start=1):
            try:
                value = json.loads(line)
            except ValueError as error:
                raise at(name, number, f"this is no JSON: {error}") from None
            if not isinstance(value, dict):
                raise at(name, number, "this is no object")
            yield value

    def size_of(self, name: str) -> int:
        """In bytes, as the bundle says; 0 if there is no such file."""
        return sum(member.file_size for member in self._archive.infolist() if member.filename == name)

    def lines(self, name: str) -> Iterator[bytes]:
        """Line by line, so that a season may be larger than memory."""
        with self._open(name) as file:
            while line := file.readline(_MOST_BYTES):
                yield line

    def _check_names(self) -> None:
        names, wanted = self._archive.namelist(), [MANIFEST, *FILES]
        for name in wanted:
            if names.count(name) != 1:
                raise BadSeason(f"{name} is {'in it twice' if name in names else 'missing'}")
        if strange := sorted(set(names) - set(wanted)):
            raise BadSeason(f"{strange[0][:60]!r} does not belong into a bundle")

    def _check_hash(self, name: str, published: object) -> None:
        digest = hashlib.sha256()
        with self._open(name) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        if digest.hexdigest() != published:
            raise BadSeason(
                f"{name}: SHA-256 is {digest.hexdigest()}, and {MANIFEST} says {published}: it was changed"
            )

    def _whole(self, name: str) -> bytes:
        with self._open(name) as file:
            found = file.read(_MOST_BYTES + 1)
        if len(found) > _MOST_BYTES:
            raise BadSeason(f"{name}: is longer than {_MOST_BYTES >> 20} MiB")
        return found

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._archive.open(name) as file:
                yield file
        except KeyError:
            raise BadSeason(f"{name} is missing") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise BadSeason(f"{name}: cannot be unpacked: {error}") from None


@contextmanager
def opened(path: Path) -> Iterator[Bundle]:
    """The bundle in that file; `BadSeason` if it is none, `OSError` if it cannot be read."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise BadSeason(f"this is no bundle: {error}") from None
    with archive:
        yield Bundle(archive)
