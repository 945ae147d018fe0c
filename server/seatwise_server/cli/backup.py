"""`seatwise ctl backup` and `restore`: all data of a server as one folder, also while it plays."""

from __future__ import annotations

import json
import os
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from seatwise.defaults import data_folder
from seatwise.errors import UsageError
from seatwise_server.store.snapshot import SNAPSHOT, OpenRedis, load_embedded

BACKUP_HELP = "copy all data of a server into a folder, also while matches run: a snapshot of its Redis, and its admin token"
RESTORE_HELP = "put a backup into an empty data folder, or into an empty Redis"
FACTS, ADMIN_TOKEN = "backup.json", "admin.token"


def configure(add_verb: Callable[[str, str], ArgumentParser]) -> None:
    """Add both verbs."""
    for name, text, run in (("backup", BACKUP_HELP, _back_up), ("restore", RESTORE_HELP, _restore)):
        parser = add_verb(name, text)
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder of the backup")
        told = "file with the URL of your own Redis, as of `seatwise serve`"
        parser.add_argument("--redis-file", type=Path, metavar="FILE", help=told)
        told = "the data folder of the server (default: the user's)"
        parser.add_argument("--data", type=Path, metavar="FOLDER", help=told)
        parser.add_argument("--json", action="store_true", help="print one line of JSON")
        parser.set_defaults(run=run)


def _back_up(args: Namespace) -> int:
    folder, data = args.folder, args.data or data_folder()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; name a new folder for each backup")
    source = OpenRedis.of_file(args.redis_file) if args.redis_file else OpenRedis.of_folder(data)
    os.umask(0o077)
    folder.mkdir(parents=True, exist_ok=True)
    size = source.copy_snapshot(folder / SNAPSHOT)
    if (data / ADMIN_TOKEN).exists():
        shutil.copy(data / ADMIN_TOKEN, folder / ADMIN_TOKEN)
    facts = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "seatwise": version("seatwise"),
        "redis": source.version,
        "bytes": size,
    }
    (folder / FACTS).write_text(json.dumps(facts) + "\n")
    said = f"{folder}: {size >> 10} KiB. A backup is proved by a restore, and by `seatwise ctl check` on it"
    print(json.dumps(facts) if args.json else said)
    return 0


def _restore(args: Namespace) -> int:
    folder, data = args.folder, args.data or data_folder()
    if not (folder / FACTS).is_file():
        raise UsageError(f"{folder} is no complete backup: it has no {FACTS}")
    snapshot = folder / SNAPSHOT
    if args.redis_file:
        keys = OpenRedis.of_file(args.redis_file).load_snapshot(snapshot, data)
    else:
        keys = load_embedded(snapshot, data / "redis")
    if (folder / ADMIN_TOKEN).exists() and not (data / ADMIN_TOKEN).exists():
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(folder / ADMIN_TOKEN, data / ADMIN_TOKEN)
    said = f"{keys} keys are restored. Before bots come, start `seatwise serve --role gateway` on them, and `seatwise ctl check`"
    print(json.dumps({"keys": keys}) if args.json else said)
    return 0
