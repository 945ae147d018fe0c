"""Clients that generators make from the OpenAPI document compile, and do what a caller wants: register, create, read, watch."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import House, dealt

from seatwise_server.rest.openapi import openapi_json

# The generators are downloaded first; each of their commands has 900 s.
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow, pytest.mark.timeout(1000)]

PROGRAMS = Path(__file__).with_name("generated_clients")
JAVA_GENERATOR = "org.openapitools:openapi-generator-cli:7.14.0"
TSC = ("npx", "tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--types", "node")
TSC += ("--module", "nodenext", "--moduleResolution", "nodenext")


def run(folder: Path, *command: str | Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, (command, (done.stdout + done.stderr)[-3000:])


def install(folder: Path, *command: str | Path) -> None:
    """Skips the test if the program is missing, or its registry does not give what is wanted."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"{' '.join(map(str, command))} does not work here: {done.stderr[-300:]}")


def make_python(folder: Path) -> list[str]:
    python = folder / "venv" / "bin" / "python"
    install(folder, sys.executable, "-m", "venv", "venv")
    install(folder, python, "-m", "pip", "install", "-q", "openapi-python-client==0.29.1")
    run(
        folder,
        python.with_name("openapi-python-client"),
        "generate",
        "--path",
        "openapi.json",
        "--output-path",
        "made",
    )
    run(folder, python, "-m", "compileall", "-q", "made")
    shutil.copytree(folder / "made" / "seatwise_client", folder / "seatwise_client")
    shutil.copy(PROGRAMS / "with_openapi_python_client.txt", folder / "main.py")
    return [str(python), "main.py"]


def make_openapi_typescript(folder: Path) -> list[str]:
    packages = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@22")
    install(folder, "npm", "install", "--no-audit", "--no-fund", *packages)
    run(folder, "npx", "openapi-typescript", "openapi.json", "-o", "schema.ts")
    shutil.copy(PROGRAMS / "with_openapi_typescript.ts", folder / "main.ts")
    run(folder, *TSC, "main.ts")
    return ["node", "main.js"]


def make_hey_api(folder: Path) -> list[str]:
    packages = ("@hey-api/openapi-ts@0.95.0", "typescript@5.9.3", "@types/node@22")
    install(folder, "npm", "install", "--no-audit", "--no-fund", *packages)
    run(folder, "npx", "openapi-ts", "-i", "openapi.json", "-o", "generated")
    shutil.copy(PROGRAMS / "with_hey_api.ts", folder / "main.ts")
    run(folder, *TSC, "main.ts")
    return ["node", "main.js"]


def make_oapi_codegen(folder: Path) -> list[str]:
    tool = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
    (folder / "api").mkdir()
    install(folder, "go", "mod", "init", "seatwise.example/client")
    install(folder, "go", "run", tool, "-package", "api", "-o", "api/api.go", "openapi.json")
    shutil.copy(PROGRAMS / "with_oapi_codegen.go", folder / "main.go")
    install(folder, "go", "mod", "tidy")
    run(folder, "go", "build", "-o", "main", ".")
    return ["./main"]


def make_java(folder: Path) -> list[str]:
    install(folder, "javac", "-version")
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
    install(folder, "mvn", "-q", copy, f"-Dartifact={JAVA_GENERATOR}", "-DoutputDirectory=.")
    [generator] = folder.glob("openapi-generator-cli-*.jar")
    run(
        folder,
        "java",
        "-jar",
        generator,
        "generate",
        "-i",
        "openapi.json",
        "-g",
        "java",
        "-o",
        "made",
    )
    shutil.copy(
        PROGRAMS / "with_openapi_generator.java", folder / "made" / "src" / "main" / "java" / "Main.java"
    )
    jars = (
        "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
        "-DoutputDirectory=jars",
    )
    run(folder / "made", "mvn", "-q", "-DskipTests", "compile", *jars)
    return ["java", "-cp", "made/target/classes:made/jars/*", "Main"]


@pytest.mark.parametrize(
    ("make", "follows"),
    [
        (make_python, False),
        (make_openapi_typescript, True),
        (make_hey_api, True),
        (make_oapi_codegen, True),
        (make_java, True),
    ],
)
async def test_a_generated_client_registers_creates_reads_and_watches(
    http_house: House, tmp_path: Path, make: Callable[[Path], list[str]], follows: bool
) -> None:
    (tmp_path / "openapi.json").write_bytes(openapi_json())
    command = await asyncio.to_thread(make, tmp_path)
    assert http_house.server
    other = await http_house.bot()
    async with dealt(http_house) as (finished, _, _):
        await finished.play_out()
        await http_house.admin.over(finished.name)
    async with dealt(http_house) as (live, _, _):
        names = (finished.name.removeprefix("matches/"), live.name.removeprefix("matches/"))
        arguments = (http_house.server.http_address, http_house.admin.token, other.bot, *names)
        process = await asyncio.create_subprocess_exec(
            *command, *arguments, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        async with asyncio.timeout(100):
            created, read_finished = [await process.stdout.readline() for _ in range(2)]
            if follows:
                assert await process.stdout.readline() == b"live STATE_RUNNING\n"
            await live.play_out()
            rest = await process.stdout.read()
            assert await process.wait() == 0
    assert created.decode().split() == ["created", "STATE_WAITING", created.decode().split()[2], other.bot]
    assert read_finished == b"finished STATE_FINISHED\n"
    assert rest == (b"live STATE_FINISHED\n" if follows else b"")
