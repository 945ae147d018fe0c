"""Validates every file of this folder with the tools that are installed: `python deploy/check.py [FOLDER]`.

No tool needs a container engine, a cluster or a running systemd. The program names each check whose tool is missing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
INSTALLED = "/opt/seatwise/bin/seatwise"
"""The path of the program in the units."""
EXPOSURE = "15"
"""The limit of systemd's exposure level, in tenths. A unit without any hardening has 96."""
ELSEWHERE = re.compile(
    r"(?<=\bserver )[\w.-]+(?=:)|(?<=\bresolver )[\w.-]+|(?<=proxy_pass https://)[\w.-]+(?=:)"
)
"""Names of servers that only the operator's network can resolve."""


CERTIFICATES = re.compile(r"/etc/nginx/(internal-)?tls(?=/)")
"""The folders in which nginx looks for certificates."""


class Missing(Exception):
    """A tool is not installed."""


def dockerfile(folder: Path) -> Iterator[str]:
    """Yields what hadolint reports, and a default base without a version, which it does not see in an argument."""
    yield from _complaints([_tool("hadolint"), "--no-color", folder / "Dockerfile"])
    if not re.search(r"^ARG BASE=[^\s:]+:(?!latest)\S+$", (folder / "Dockerfile").read_text(), re.MULTILINE):
        yield "Dockerfile: the default of BASE names no version"


def compose(folder: Path) -> Iterator[str]:
    """Yields what docker compose reports."""
    yield from _complaints([_tool("docker-compose"), "--file", folder / "compose.yaml", "config", "--quiet"])


def kubernetes(folder: Path) -> Iterator[str]:
    """Yields each difference from the newest schemas."""
    files = [*_manifest_files(folder), folder / "kubernetes" / "monitoring" / "autoscaler.yaml"]
    yield from _complaints([_tool("kubernetes-validate"), "--strict", "--quiet", *files])


def systemd(folder: Path) -> Iterator[str]:
    """Yields errors in the units, and the units that are not hardened."""
    analyze = _tool("systemd-analyze")
    with tempfile.TemporaryDirectory() as scratch:
        for unit in sorted((folder / "systemd").glob("*.service")):
            copy = Path(scratch, unit.name.replace("@.", "@7441."))
            copy.write_text(unit.read_text().replace(INSTALLED, sys.executable))
            said = _said(_run([analyze, "verify", "--man=no", copy])).splitlines()
            # systemd-analyze also reports on the other units of this machine.
            yield from (line for line in said if copy.name in line)
            rating = [analyze, "security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", copy]
            if _run(rating).returncode:
                yield f"{unit.name}: its exposure level is above {EXPOSURE} tenths; see systemd-analyze security"


def nginx(folder: Path) -> Iterator[str]:
    """Yields errors in the nginx configurations."""
    from seatwise_server.tls.made_certificates import issue_certificate

    tool = _tool("nginx", "/usr/sbin")
    for name, text in _nginx_files(folder):
        with tempfile.TemporaryDirectory() as scratch:
            issue_certificate(Path(scratch, "ca"), Path(scratch), ["seatwise.internal"])
            conf = Path(scratch, "nginx.conf")
            conf.write_text(CERTIFICATES.sub(scratch, ELSEWHERE.sub("127.0.0.1", text)))
            settings = f"pid {scratch}/pid; error_log stderr;"
            if re.search("^ *pid ", text, re.MULTILINE):
                settings = "error_log stderr;"
            yield from _complaints([tool, "-t", "-q", "-c", conf, "-g", settings, "-e", "stderr"], name)


def _nginx_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the name and text of nginx.conf and of the configuration inside the Kubernetes manifest."""
    import yaml  # comes with the tools of this page

    yield "nginx.conf", (folder / "nginx.conf").read_text()
    manifest = folder / "kubernetes" / "manifests" / "front-door.yaml"
    for resource in yaml.safe_load_all(manifest.read_text()):
        if resource["kind"] == "ConfigMap":
            yield manifest.name, resource["data"]["nginx.conf"]


def tls(folder: Path) -> Iterator[str]:
    """Yields the places where a token or a move would travel in clear."""
    for name, text in _nginx_files(folder):
        for line in text.splitlines():
            if re.match(
                r" *(listen (?!.* ssl)|grpc_pass (?!grpcs:)|proxy_pass (?!https:)|(grpc|proxy)_ssl_verify (?!on;))",
                line,
            ):
                yield f"{name}: {line.strip()}"
        if not {"grpc_ssl_verify on;", "proxy_ssl_verify on;"} <= set(map(str.strip, text.splitlines())):
            yield f"{name}: nginx does not check the certificates of the servers behind it"
    for name, line in command_lines(folder).items():
        if "--tls" not in line and not {"--tls-cert", "--tls-key"} <= {
            each.partition("=")[0] for each in line
        }:
            yield f"{name}: seatwise serve {' '.join(line)}"
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".yaml", ".service"):
            for url in re.findall(r"\bredis(?:\+\w+)?://", path.read_text()):
                yield f"{path.name}: {url}"


def limits(folder: Path) -> Iterator[str]:
    """Yields the places where a flood could take all memory, or where strangers reach more than the front door."""
    yield from _nginx_limits(folder)
    yield from _unit_limits(folder)
    yield from _compose_limits(folder)
    yield from _cluster_limits(folder)


def addresses(folder: Path) -> Iterator[str]:
    """Yields the places where a bot elsewhere would be told to look for the server on its own machine, and what is open to the world."""
    for name, line in command_lines(folder).items():
        for each in line:
            if re.match(r"(--address=|--ws-address=)?(\w+://)?(localhost|127\.|\[::1\])", each):
                yield f"{name}: {each} is the bot's own machine"
    settings = (folder / "kubernetes" / "settings.env").read_text()
    yield from (
        f"settings.env: {each} has a default" for each in re.findall(r"^[\w-]+=.+$", settings, re.MULTILINE)
    )
    for resource in _manifests(folder):
        if resource["kind"] == "Secret":
            yield f"{resource['metadata']['name']}: secrets are made by make-secrets.sh"
        for pod in [resource["spec"]["template"]["spec"]] if "template" in resource.get("spec", {}) else ():
            for container in pod["containers"]:
                if "livenessProbe" not in container:
                    yield f"{resource['metadata']['name']}: {container['name']} has no liveness probe"
    default = next(each for each in _manifests(folder) if each["metadata"]["name"] == "seatwise-default")
    if set(default["spec"]["policyTypes"]) != {"Ingress", "Egress"}:
        yield "network.yaml: pods may connect to anything"


def _nginx_limits(folder: Path) -> Iterator[str]:
    for name, text in _nginx_files(folder):
        for limit in ("limit_conn streams", "limit_req zone=calls", "http2_max_concurrent_streams"):
            if not re.search(rf"^ *{limit} .*;$", text, re.MULTILINE):
                yield f"{name}: there is no {limit}"


def _unit_limits(folder: Path) -> Iterator[str]:
    wanted = ("MemoryMax=.+", "TasksMax=.+", "Restart=on-failure", "StartLimitIntervalSec=0")
    for unit in sorted((folder / "systemd").glob("*.service")):
        for line in wanted:
            if not re.search(f"^{line}$", unit.read_text(), re.MULTILINE):
                yield f"{unit.name}: there is no line {line}"


def _compose_limits(folder: Path) -> Iterator[str]:
    import yaml

    for name, service in yaml.safe_load((folder / "compose.yaml").read_text())["services"].items():
        for key in ("mem_limit", "pids_limit"):
            if key not in service:
                yield f"compose {name}: it has no {key}"
        if "entrypoint" not in service and service.get("restart") != "unless-stopped":
            yield f"compose {name}: it is not started again"


def _cluster_limits(folder: Path) -> Iterator[str]:
    resources = _manifests(folder)
    policies = [each["spec"]["podSelector"] for each in resources if each["kind"] == "NetworkPolicy"]
    if {} not in policies:
        yield "kubernetes: no NetworkPolicy covers all pods"
    for resource in resources:
        name, spec = resource["metadata"]["name"], resource.get("spec", {})
        if resource["kind"] in ("Deployment", "StatefulSet"):
            pod = spec["template"]
            for container in pod["spec"]["containers"]:
                if "memory" not in container.get("resources", {}).get("limits", {}):
                    yield f"{name}: the container {container['name']} has no limit of memory"
            if not any(_selects(policy, pod["metadata"]["labels"]) for policy in policies if policy):
                yield f"{name}: no NetworkPolicy says who may connect to it"
        elif spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") != "Local":
            yield f"{name}: nginx does not see the addresses of callers, by which it limits them"


def _manifests(folder: Path) -> list[dict[str, Any]]:
    import yaml

    return [each for path in _manifest_files(folder) for each in yaml.safe_load_all(path.read_text())]


def _manifest_files(folder: Path) -> list[Path]:
    return sorted((folder / "kubernetes" / "manifests").glob("*.yaml"))


def _selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a selector with labels, and with expressions of the kind `In`, selects a pod with these labels."""
    matches = selector.get("matchLabels", {}).items() <= labels.items()
    return matches and all(
        labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", ())
    )


def command_lines(folder: Path) -> dict[str, list[str]]:
    """Returns the arguments of each `seatwise serve`, without those of the image, by the names of their places."""
    import yaml

    lines: dict[str, list[str]] = {}
    for resource in _manifests(folder):
        if resource["kind"] in ("Deployment", "StatefulSet"):
            for container in resource["spec"]["template"]["spec"]["containers"]:
                if container["name"] == "seatwise":
                    lines[resource["metadata"]["name"]] = [_with_settings(each) for each in container["args"]]
    for name, service in yaml.safe_load((folder / "compose.yaml").read_text())["services"].items():
        if service.get("image", "").endswith("seatwise") and "entrypoint" not in service:
            lines[f"compose {name}"] = [
                re.sub(r"\$\{\w+:\?[^}]*\}", "host", each) for each in service["command"]
            ]
    for unit in sorted((folder / "systemd").glob("*.service")):
        for start in re.findall("^ExecStart=(.*)$", unit.read_text(), re.MULTILINE):
            lines[unit.name] = shlex.split(start.replace("%i", "7441").replace("%H", "host"))[2:]
    return lines


def _with_settings(text: str) -> str:
    """The argument with examples of the settings that an operator is asked for."""
    return text.replace("$(POD_NETWORK)", "10.244.0.0/16").replace("$(PUBLIC_ADDRESS)", "host:7443")


CHECKS: dict[str, Callable[[Path], Iterator[str]]] = {
    "Dockerfile": dockerfile,
    "compose.yaml": compose,
    "kubernetes/": kubernetes,
    "systemd/": systemd,
    "nginx": nginx,
    "TLS": tls,
    "limits": limits,
    "addresses": addresses,
}


def _tool(name: str, *elsewhere: str) -> str:
    """Returns the path of a tool, from this virtual environment if it is there; raises `Missing`."""
    found = [shutil.which(name, path=str(place)) for place in (BIN, *elsewhere)]
    found.append(shutil.which(name))
    for path in found:
        if path:
            return path
    raise Missing(f"{name} is not installed")


def _run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    asked = os.environ | {"SEATWISE_HOST": "host"}  # compose.yaml wants it
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=asked)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stdout + done.stderr).strip()


def _complaints(command: Sequence[str | Path], name: str = "") -> Iterator[str]:
    """Yields the output of the command. A tool prints nothing if all is well, so a warning is a complaint too."""
    done = _run(command)
    said = _said(done) or (f"{command[0]} ended with {done.returncode}" if done.returncode else "")
    if said:
        yield f"{name}: {said}" if name else said


def main(folder: Path) -> int:
    """Runs all checks; returns 0 if none complains."""
    complaints = 0
    for what, check in CHECKS.items():
        try:
            for complaint in check(folder):
                complaints += 1
                print(f"deploy/{what}: {complaint}", file=sys.stderr)
        except (Missing, ImportError) as missing:
            print(f"not checked here: deploy/{what} ({missing})", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent))
