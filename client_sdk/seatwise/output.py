"""Output and texts of the commands: progress; answers, apart from prints of bots; texts of people; files replaced in one step."""

from __future__ import annotations

import io
import os
import select
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from time import monotonic
from typing import IO, Any, BinaryIO, Final, TextIO, cast

from seatwise.errors import UsageError

PROGRESS_EVERY_S = 5.0
"""Without a terminal, the time between two lines of progress, in seconds."""

BAR_EVERY_S = 0.5
"""On a terminal, the time between two states of a bar, in seconds."""


def import_rich() -> Any:
    """Return the parts of rich that commands use; `None` if it is not installed."""
    from types import SimpleNamespace

    try:
        from rich.console import Console
        from rich.progress import Progress
        from rich.table import Table
    except ModuleNotFoundError:
        return None
    return SimpleNamespace(Console=Console, Progress=Progress, Table=Table)


# Progress, on standard error


@contextmanager
def show_progress(
    total: int | None,
    describe: Callable[[int], str],
    *,
    is_quiet: bool = False,
    every_s: float = PROGRESS_EVERY_S,
) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal with rich, and a line now and then elsewhere.

    Args:
        total: How much there is to do; `None` if nobody knows.
        describe: Says where the work stands, given how much of it is done. It is asked only when that is shown.
        is_quiet: Whether nothing is shown.
        every_s: The time between two lines, in seconds.

    Yields:
        A function that takes how much more is done: 1 by default.
    """
    if is_quiet:
        yield lambda _=1: None
    elif sys.stderr.isatty() and (rich := import_rich()) is not None:
        with rich.Progress(
            console=rich.Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty()
        ) as bar:
            task = bar.add_task(describe(0), total=total)
            yield _counter(
                BAR_EVERY_S, lambda done: bar.update(task, completed=done, description=describe(done))
            )
    else:
        yield _counter(every_s, lambda done: print(describe(done), file=sys.stderr, flush=True))


def _counter(every_s: float, show: Callable[[int], None]) -> Callable[..., None]:
    """Return a function that adds up what is done, and shows the sum at most once in `every_s` seconds."""
    done, due_s = 0, monotonic() + every_s

    def add(count: int = 1) -> None:
        nonlocal done, due_s
        done += count
        if monotonic() >= due_s:
            due_s = monotonic() + every_s
            show(done)

    return add


# Standard output


class AnswerOutput:
    """The standard output of a command that runs the code of others. Only the command's own answers go there.

    From its making on, whatever bots and their processes print goes to standard error. A fault of standard error is
    kept in `fault` and never reaches a bot, because it would cost the bot a move. After its `with` statement, callers in
    this process print as before. Standard output stays apart: bots may print until the process ends.
    """

    def __init__(self, on_fault: Callable[[], None] | None = None) -> None:
        """Create it. `on_fault` is called once, at the first fault, in whatever thread has met it."""
        self._on_fault = on_fault
        self._before = sys.stdout, sys.stderr
        self.stream: TextIO = sys.stdout
        """For the answers."""
        self.fault: OSError | None = None
        """The first fault of the output, which the command raises between two matches."""
        self._has_descriptor = _is_descriptor_1(sys.stdout)
        if self._has_descriptor:
            sys.stdout.flush()
            self.stream = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors)
            os.dup2(2, 1)
            cast("io.TextIOWrapper", sys.stdout).reconfigure(line_buffering=True)
        prints = sys.stdout if self._has_descriptor else sys.stderr
        sys.stdout = cast("TextIO", _FaultlessOutput(prints, self))
        sys.stderr = cast("TextIO", _FaultlessOutput(sys.stderr, self))

    def __enter__(self) -> AnswerOutput:
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._before

    def note_fault(self, error: OSError) -> None:
        """Keep the first fault."""
        if self.fault is None:
            self.fault = error
            if self._on_fault:
                self._on_fault()

    def note_lost_prints(self, error: OSError) -> None:
        """Keep the fault of a print, and drop all later ones: also those that a bot makes without Python must not fail."""
        self.note_fault(error)
        if self._has_descriptor:
            with open(os.devnull, "wb") as nothing:
                for number in (1, 2):
                    os.dup2(nothing.fileno(), number)

    def print_line(self, text: str) -> None:
        """Print a line of the answers. Raises `OSError`, which names standard output."""
        try:
            print(text, file=self.stream, flush=True)
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from None

    def raise_fault(self) -> None:
        """Raise the first fault of the output, if there was one."""
        if self.fault:
            raise self.fault

    def path_of(self, path: str) -> str:
        """Return a path that opens the same file. The names of standard output now mean standard error."""
        is_ours = self._has_descriptor and path in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
        return f"/dev/fd/{self.stream.fileno()}" if is_ours else path


def raise_lost_output(error: BaseException) -> None:
    """Raise the error of a bot's code again if it wrote past Python, and nobody reads our output any more: that is no fault of the bot."""
    if isinstance(error, BrokenPipeError) and hasattr(select, "poll"):
        outputs = select.poll()
        for number in (1, 2):
            outputs.register(number, 0)
        if any(event & select.POLLERR for _, event in outputs.poll(0)):
            raise error


def _is_descriptor_1(stream: TextIO) -> bool:
    """Return whether it is the standard output of the process, and no stand-in of a test."""
    try:
        return stream.fileno() == 1
    except (OSError, ValueError):
        return False


class _FaultlessOutput:
    """A stream that keeps its faults from who writes to it: it drops what cannot be written."""

    def __init__(self, stream: Any, answers: AnswerOutput) -> None:
        self._stream = stream
        self._answers = answers

    def write(self, text: Any) -> int:
        try:
            self._stream.write(text)
        except OSError as error:
            self._answers.note_lost_prints(error)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._answers.note_lost_prints(error)

    def close(self) -> None:
        """Do nothing: the stream is that of the command, too."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._stream, name)
        return _FaultlessOutput(found, self._answers) if name in ("buffer", "raw") else found


def open_standard_streams() -> None:
    """Open those of the three standard streams that were closed before the start, as `>&-` does, on nothing.

    Otherwise the next file that is opened would take the place of one, and be written to.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115  # for as long as we run


def silence_output() -> None:
    """Drop all further output, because nothing reads it. Without this the interpreter would print an error at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Texts of a server


class CleanOutput:
    """A stream of text that writes a question mark for each control character, except line feeds and tabs.

    A terminal would obey the control characters of a server.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        """The stream below, for a program that writes colours itself and cleans its own texts."""

    def write(self, text: str) -> int:
        if not text.isprintable():
            text = "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def cleaning_output() -> Iterator[None]:
    """Clean all that is printed as long as the context lasts."""
    with redirect_stdout(cast("TextIO", CleanOutput(sys.stdout))):
        yield


def uncleaned_output() -> TextIO:
    """Return the standard output as it is without `cleaning_output`."""
    output: Any = sys.stdout
    return output.stream if isinstance(output, CleanOutput) else output


# Texts that a person wrote or saved: a league file, settings, a deck, records. Other programs may have encoded them otherwise.

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
    head = file.peek(_HEAD)[:_HEAD] if isinstance(file, io.BufferedReader) else b""
    _refuse_encoding(head, name)
    if head.startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))


def _refuse_encoding(head: bytes, name: str) -> None:
    for magic, program in _COMPRESSED.items():
        if head.startswith(magic):
            raise UsageError(f"{name} is compressed: unpack it first, with {program}")
    if head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) or [not byte for byte in head[:2]].count(True) == 1:
        raise UsageError(f"{name} is text in UTF-16: save it as UTF-8")


# Files that are written


@contextmanager
def writing_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to write. If there is one, it is replaced in one step at the end, and stays as it was after an error.

    An interrupt is no error: what was written until then is kept. Raises `OSError`, which names the file.
    """
    name = os.fspath(path)
    target = Path(os.path.realpath(name))
    if name.startswith(("/dev/", "/proc/")) or not target.is_file() or not os.access(target.parent, os.W_OK):
        with io.BufferedWriter(_NamedFile(name, name)) as file:
            yield file
        return
    with target.open("ab"):  # a file that may not be written is not replaced either
        draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with io.BufferedWriter(_NamedFile(os.fspath(draft), name)) as file:
            draft.chmod(target.stat().st_mode & 0o7777)
            try:
                yield file
            except KeyboardInterrupt:
                file.close()
                draft.replace(target)
                raise
        draft.replace(target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


class _NamedFile(io.FileIO):
    """A file whose faults name it as the user did."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(path, "wb")
        self._told_name = name

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._told_name) from None
