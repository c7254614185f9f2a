"""A container engine to test against, and an image made of this environment's own files: nothing is pulled."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import tarfile
import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.sandbox.environments import get_own_interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE, EMPTY = "localhost/evalsuite-tests", "localhost/evalsuite-nothing"
NOTHING_TO_RUN = 127
PACKAGES = ("numpy", "pandas", "python-dateutil", "six")
LEFT_OUT = {"tests", "test", "idlelib", "site-packages", "__pycache__", "ensurepip", ".."}
# What packages load by name, beside what the interpreter itself is linked with.
LIBRARIES = ("librt.so.1", "libdl.so.2", "libpthread.so.0", "libutil.so.1", "libgcc_s.so.1", "libstdc++.so.6")
USERS = b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
START_SECONDS = 60


@contextlib.contextmanager
def engine(folder: Path) -> Iterator[str]:
    """The command of an engine that has the image.

    Skips the test, and says why, where there is none. With EVALSUITE_START_DOCKERD=1 and as root a daemon of the test's
    own is started where none runs.
    """
    with contextlib.ExitStack() as stack:
        command, why = _running(folder)
        if command is None and os.environ.get("EVALSUITE_START_DOCKERD") and (daemon := shutil.which("dockerd")):
            stack.enter_context(_daemon(daemon, folder))
            command, why = _running(folder)
        if command is None:
            pytest.skip(f"no container engine works here: {why}")
        _write_image(folder / "image.tar")
        _said(command, "import", "--change", "ENV PATH=/usr/bin", str(folder / "image.tar"), IMAGE)
        stack.callback(_said, command, "rmi", "--force", IMAGE)
        yield command


def _running(folder: Path) -> tuple[str | None, str]:
    """An engine that starts containers, or what each one said."""
    words = []
    for command in filter(None, map(shutil.which, ("docker", "podman"))):
        asked = _said(command, "version")
        if asked.returncode == 0:
            asked = _trial(command, folder / "empty.tar")
        # In an empty container there is nothing to run; that it is said means that the engine came so far.
        if asked.returncode == NOTHING_TO_RUN:
            return command, ""
        words.append(f"{command}: {(asked.stderr.strip().splitlines() or ['-'])[-1]}")
    return None, "; ".join(words) or "neither docker nor podman is installed"


def _trial(command: str, archive: Path) -> subprocess.CompletedProcess[str]:
    with tarfile.open(archive, "w") as empty:
        empty.addfile(_folder("tmp"))
    _said(command, "import", str(archive), EMPTY)
    limits = ("--ulimit", "nofile=128", "--ulimit", "nproc=4096")
    asked = _said(command, "run", "--rm", "--network", "none", *limits, EMPTY, "/nothing")
    _said(command, "rmi", "--force", EMPTY)
    return asked


@contextlib.contextmanager
def _daemon(program: str, folder: Path) -> Iterator[None]:
    """Docker's daemon, without a network and with everything that it keeps below the folder."""
    address, log = f"unix://{folder}/docker.sock", folder / "dockerd.log"
    places = [f"--data-root={folder}/data", f"--exec-root={folder}/run", f"--pidfile={folder}/pid"]
    command = [program, "--iptables=false", "--ip6tables=false", "--bridge=none", "-H", address, *places]
    with (
        log.open("wb") as output,
        pytest.MonkeyPatch.context() as patch,
        subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True) as daemon,
    ):
        patch.setenv("DOCKER_HOST", address)
        until = time.monotonic() + START_SECONDS
        while _said("docker", "version").returncode and daemon.poll() is None and time.monotonic() < until:
            time.sleep(0.2)
        try:
            yield
        finally:
            daemon.terminate()


def _said(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)


def _write_image(path: Path) -> None:
    """Writes a root filesystem with this Python, NumPy, pandas and the system's libraries that they need."""
    python = Path(get_own_interpreter().executable)
    files = {str(python): python} | _python_files()
    links = [str(source) for source in files.values() if ".so" in source.name]
    files |= _system_libraries(subprocess.run(["ldd", *links, str(python)], capture_output=True, text=True))  # noqa: PLW1510
    with tarfile.open(path, "w") as archive:
        for name, source in sorted(files.items()):
            archive.add(source.resolve(), name, filter=_of_root)
        for name in ("etc/passwd", "etc/group"):
            information = tarfile.TarInfo(name)
            information.size = len(USERS)
            archive.addfile(information, BytesIO(USERS))
        link = tarfile.TarInfo("usr/bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(python)
        archive.addfile(_folder("tmp"))
        archive.addfile(link)


def _folder(name: str) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
    return folder


def _python_files() -> dict[str, Path]:
    """Files of the standard library and of the packages, by their place in the image."""
    library = Path(get_own_interpreter().libraries[0])
    files = {
        str(path): path
        for path in library.rglob("*")
        if path.is_file() and not LEFT_OUT & set(path.relative_to(library).parts)
    }
    for package in PACKAGES:
        for entry in importlib.metadata.files(package) or ():
            if not LEFT_OUT & set(entry.parts):
                files[str(library / "site-packages" / entry)] = Path(str(entry.locate()))
    return files


def _system_libraries(linked: subprocess.CompletedProcess[str]) -> dict[str, Path]:
    found = set(re.findall(r"(?:=> |^\s)(/\S+) \(", linked.stdout, re.MULTILINE))
    libraries = {os.path.normpath(path) for path in found if "site-packages" not in path}
    base = next(Path(path).parent for path in libraries if path.endswith("/libc.so.6"))
    libraries |= {str(base / name) for name in LIBRARIES if (base / name).exists()}
    return {path: Path(path) for path in libraries}


def _of_root(information: tarfile.TarInfo) -> tarfile.TarInfo:
    information.uid = information.gid = 0
    information.uname = information.gname = "root"
    return information
