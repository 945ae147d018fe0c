"""The options that say how the link to a server is kept secret; for all commands that have an address."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from seatwise.cli.arguments import InputFile

if TYPE_CHECKING:
    from seatwise.link.security import SecurityOptions


def add_security_arguments(parser: ArgumentParser) -> None:
    """Adds the arguments."""
    group = parser.add_argument_group("encryption")
    group.add_argument(
        "--insecure", action="store_true", default=None,
        help="let the token travel in clear to another machine (default: $SEATWISE_INSECURE)",
    )  # fmt: skip
    group.add_argument(
        "--tls-pin", action="append", metavar="PIN",
        help="fingerprint of the server's key, as `seatwise serve` prints it; may be repeated (default: $SEATWISE_TLS_PIN)",
    )  # fmt: skip
    group.add_argument(
        "--tls-ca",
        type=InputFile,
        metavar="FILE",
        help="the CAs to trust, as PEM (default: $SEATWISE_TLS_CA, or the public ones)",
    )
    group.add_argument(
        "--tls-cert",
        type=InputFile,
        metavar="FILE",
        help="a client certificate, as PEM (default: $SEATWISE_TLS_CERT)",
    )
    group.add_argument(
        "--tls-key", type=InputFile, metavar="FILE", help="its key, as PEM (default: $SEATWISE_TLS_KEY)"
    )


def security_of(args: Namespace) -> SecurityOptions:
    """Return the options of the encryption that the command line has."""
    return {
        "insecure": args.insecure,
        "tls_pin": args.tls_pin,
        "tls_ca": args.tls_ca,
        "tls_cert": args.tls_cert,
        "tls_key": args.tls_key,
    }
