"""`make release`: check version and changelog, build everything that is published into dist/release, and set the tag.

It uploads nothing. Ends with a sentence and exit code 1 where something is missing; then no tag is set.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import npm_package

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "dist" / "release"


def main() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    tag = f"v{version}"
    check_release(version, tag)
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    build_wheels()
    build_npm_package(version)
    run("make", "--no-print-directory", "sbom")
    shutil.copy(ROOT / "dist" / "seatwise.cdx.json", OUT)
    write_hashes()
    run("git", "tag", "--annotate", tag, "--message", f"Seatwise {version}")
    print(
        f"{tag} is set, and dist/release is complete. Push the tag, upload the files, and name the commit among the releases."
    )


def check_release(version: str, tag: str) -> None:
    """Ends the program unless this commit can be released as `version`."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if run("git", "status", "--porcelain"):
        sys.exit("There are changes that are not committed. Commit them first.")
    if "## [Unreleased]" in changelog:
        sys.exit(f"CHANGELOG.md has a section [Unreleased]. Give it the heading `## [{version}] - DATE`.")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section `## [{version}] - DATE`.")
    if run("git", "tag", "--list", tag):
        sys.exit(f"The tag {tag} exists. Change `version` in pyproject.toml.")


def build_wheels() -> None:
    """Builds the source distribution, the wheel, and the wheel with the compiled core, which has the platform in its name."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(OUT))
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(OUT), SEATWISE_COMPILE="1")


def build_npm_package(version: str) -> None:
    """Builds the npm package, and imports it from its tarball where npm is installed."""
    tarball = npm_package.write_package(OUT, version)
    if shutil.which("npm") is None:
        print("npm is not installed: the package for JavaScript is built, and was not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        run("npm", "install", "--prefix", folder, "--offline", "--no-audit", "--no-fund", str(tarball))
        [name] = json.loads((Path(folder) / "package.json").read_text(encoding="utf-8"))["dependencies"]
        (Path(folder) / "try.mjs").write_text(
            f'import {{ Bot }} from "{name}"; new Bot({{}});\n', encoding="utf-8"
        )
        run("node", "--experimental-websocket", f"{folder}/try.mjs")


def write_hashes() -> None:
    """Writes SHA256SUMS, which `sha256sum --check` reads."""
    files = sorted(path for path in OUT.iterdir() if path.is_file())
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (OUT / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def run(*command: str, **environment: str) -> str:
    """Runs a command in the repository and returns what it prints. Its failure ends the program."""
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"This command failed: {' '.join(command)}")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
