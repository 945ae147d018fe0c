"""`seatwise ctl certificates`: certificates for the processes of one operator, signed by a CA of its own."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from seatwise_server.tls.private_ca import issue_certificate
from seatwise_server.tls.tls_files import TlsError, read_identity

CERTIFICATES_HELP = "sign a certificate for servers with these hosts, by a CA of your own, or renew it"


def configure(parser: ArgumentParser) -> None:
    """Add the arguments. The command needs no server."""
    parser.add_argument(
        "hosts", nargs="+", metavar="HOST", help="names and IP addresses by which clients call the server"
    )
    parser.add_argument(
        "--ca",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder of the CA; it is made at the first run",
    )
    parser.add_argument(
        "--into",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder to write tls.crt, tls.key and ca.crt to",
    )
    parser.add_argument(
        "--readable", action="store_true",
        help="let every user that can open the folder read the key, for a server that runs as another user",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Issue the certificate and print the pin of its key; return the exit code."""
    try:
        files = issue_certificate(args.ca, args.into, args.hosts, is_readable=args.readable)
        identity = read_identity(files)
    except TlsError as error:
        print(f"seatwise ctl: {error}", file=sys.stderr)
        return 1
    expires = f"{identity.expires:%Y-%m-%d}"
    if args.json:
        print(json.dumps({"cert": str(files.cert), "pin": identity.pin, "expires": expires}))
    else:
        print(f"{files.cert} for {', '.join(args.hosts)}, until {expires}. Pin of its key: {identity.pin}")
    return 0
