"""The plan of a run of units: the function that does one, the settings that they share, and the files that these name; and its workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import file_digest, sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from zipfile import ZipFile

from seatwise.errors import UsageError

PART_FORMAT: Final = "seatwise-units/1"
MOST_FILES, MOST_BYTES = 4_096, 256 * 2**20
"""The most files, and bytes, of a folder of bots that is hashed or sent to other machines."""

UnitPlayer: TypeAlias = "Callable[[int, Any], tuple[Any, dict[str, Any]]]"
"""Does one unit, given its number and what it is told. Returns two values for JSON: the result, which is the same for the same unit,
and notes that need not be, such as times."""


def encode_result(value: Any) -> bytes:
    """Return the bytes by which two results are compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@dataclass(frozen=True)
class UnitPlan:
    """The part of a run that all its units share. All of it is JSON."""

    task: str
    """The function that does a unit, as module:function. It is called once in each worker with the settings, and returns a
    `UnitPlayer`."""

    settings: Mapping[str, Any]
    files: tuple[str, ...] = ()
    """The values among the settings that name files: FILE.py:CLASS for a bot, whose folder goes with it, or FILE alone."""

    def open_player(self) -> UnitPlayer:
        """Return the function that does a unit in this process."""
        module, _, function = self.task.partition(":")
        player: UnitPlayer = getattr(import_module(module), function)(self.settings)
        return player

    def with_files(self, places: Mapping[str, str]) -> UnitPlan:
        """Return the plan with other places for its files."""
        return UnitPlan(self.task, _replace_values(self.settings, places), tuple(places.values()))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that the results follow from: settings, bots and the version of Seatwise, but not the places of files."""
        places = {each: f"{_name_in(each)}#{digest_of(folder_of(each))}" for each in self.files}
        told = [version("seatwise"), self.task, _replace_values(self.settings, places)]
        return sha256(encode_result(told)).hexdigest()

    def pack_files(self) -> dict[str, bytes]:
        """Return each folder or file of the plan as a zip, by its digest. Raises `UsageError` if one is too large."""
        packed = {}
        for root in {folder_of(each) for each in self.files}:
            buffer = BytesIO()
            with ZipFile(buffer, "w") as out:
                for path in list_files(root):
                    out.write(path, path.relative_to(root.parent if root.is_file() else root))
            packed[digest_of(root)] = buffer.getvalue()
        return packed

    def unpack_files(self, packed: Mapping[str, bytes], places: Mapping[str, str], folder: Path) -> UnitPlan:
        """Return the plan with its files unpacked below a folder. `places` are their places by `list_places`."""
        for digest, content in packed.items():
            with ZipFile(BytesIO(content)) as source:
                source.extractall(folder / digest)
        return self.with_files({each: str(folder / place) for each, place in places.items()})

    def list_places(self) -> dict[str, str]:
        """Return the place of each file below the folder to which `unpack_files` writes."""
        return {each: f"{digest_of(folder_of(each))}/{_name_in(each)}" for each in self.files}


def _replace_values(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return places.get(value, value)
    if isinstance(value, Mapping):
        return {key: _replace_values(each, places) for key, each in value.items()}
    return [_replace_values(each, places) for each in value] if isinstance(value, list | tuple) else value


def _split_class(text: str) -> tuple[Path, str]:
    file, colon, name = text.rpartition(":")
    return (Path(file), colon + name) if file.endswith(".py") else (Path(text), "")


def _name_in(text: str) -> str:
    path, name = _split_class(text)
    return path.name + name


def folder_of(text: str) -> Path:
    """Return what goes with a file: the folder of a bot, and any other file alone."""
    path, name = _split_class(text)
    return path.resolve().parent if name else path.resolve()


def digest_of(root: Path) -> str:
    """Return the SHA-256 of a file, or of all files of a folder with their names. Raises `UsageError`."""
    digest = sha256()
    for path in list_files(root):
        with path.open("rb") as file:
            content = file_digest(file, "sha256").hexdigest()
        name = "" if path == root else path.relative_to(root).as_posix()
        digest.update(f"{name}\0{content}\n".encode())
    return digest.hexdigest()


def list_files(root: Path) -> list[Path]:
    """Return the files of a folder, sorted, but hidden ones, caches, parts of a run and folders of leagues. Raises `UsageError`."""
    if root.is_file():
        return [root]
    if not root.is_dir():
        raise UsageError(f"{root}: there is no such file")
    found, size = [], 0
    for path in _walk_files(root):
        found.append(path)
        size += path.stat().st_size
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise UsageError(
                f"{root}: more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB; put the bot into a folder of its own"
            )
    return sorted(found)


def _walk_files(root: Path) -> Iterator[Path]:
    for path in root.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__" or (path / "season.jsonl").exists():
            continue
        if path.is_dir():
            yield from _walk_files(path)
        elif path.is_file() and not _is_part(path):
            yield path


def _is_part(path: Path) -> bool:
    if path.suffix != ".jsonl":
        return False
    with path.open("rb") as file:
        return file.readline(200).startswith(f'{{"format": "{PART_FORMAT}"'.encode())


class WorkerLost(Exception):
    """The worker has ended. The text says why, as far as anybody knows."""

    def __init__(self, why: str, *, was_at_it: bool) -> None:
        super().__init__(why)
        self.was_at_it = was_at_it
        """Whether it was doing this unit, and not one before."""


@dataclass(frozen=True, slots=True)
class UnitAnswer:
    """The answer of a worker to one unit."""

    number: int
    result: Any
    """The outcome, the same for the same unit at any worker."""

    note: dict[str, Any] = field(default_factory=dict)
    """The rest, such as times and the texts of failures. It need not be the same."""

    worker: str = ""


class UnitWorker(Protocol):
    """One worker. It does its units in the order in which it is asked."""

    name: str

    async def run_unit(self, number: int, told: Any) -> UnitAnswer:
        """Do one unit. Raises `WorkerLost`."""

    async def stop(self) -> None:
        """End the worker, whatever it does."""


class UnitWorkers(Protocol):
    """A make of workers."""

    count: int

    async def start_worker(self, plan: UnitPlan, place: int) -> UnitWorker:
        """Start the worker of that place, from 0. It may be the next one there."""
