"""`seatwise ctl health`: whether one process is ready, for container probes and scripts."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from seatwise.cli.security import add_security_arguments
from seatwise.defaults import ADDRESS
from seatwise.errors import EncryptionError, from_rpc
from seatwise.link.dialing import explain_failure, open_blocking_channel
from seatwise_server.cli import asking

HEALTH_HELP = "ask whether a process is ready: Redis answers, and a referee has free tables"
HEALTH_TIMEOUT_S = 3.0

_Status = health_pb2.HealthCheckResponse.ServingStatus


def configure(parser: ArgumentParser) -> None:
    """Add the arguments. The command needs no token."""
    parser.add_argument("--address", default=ADDRESS, help="address of the process (default: %(default)s)")
    parser.add_argument(
        "--service", default="", metavar="NAME",
        help="ask about one service, such as seatwise.v1.PlayService (default: the process as a whole)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    add_security_arguments(parser)
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Return 0 if the server is ready, and 1 if it is not or does not answer."""
    status = _fetch_status(args)
    if args.json:
        print(json.dumps({"status": status}))
    else:
        print(status, file=sys.stdout if status == "SERVING" else sys.stderr)
    return 0 if status == "SERVING" else 1


def _fetch_status(args: Namespace) -> str:
    endpoint, security = asking.server_of(args, token="")
    with open_blocking_channel(endpoint, security) as channel:
        request = health_pb2.HealthCheckRequest(service=args.service)
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(request, timeout=HEALTH_TIMEOUT_S)
        except grpc.RpcError as error:
            explained = explain_failure(endpoint, security, from_rpc(error))
            if isinstance(explained, EncryptionError):
                raise explained from error
            return f"no answer from {args.address}: {error.code().name}"
        return str(_Status.Name(answer.status))
