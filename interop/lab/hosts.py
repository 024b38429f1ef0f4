"""Two hosts on one machine: network namespaces, each with a tun device that this process reads and writes. Linux, root."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from types import TracebackType
from typing import Final

__all__ = ["ADDRESSES", "Hosts", "why_not"]

ADDRESSES: Final = {"NETLAB_A": "10.77.0.1", "NETLAB_A2": "10.77.0.4", "NETLAB_B": "10.77.0.2", "NETLAB_B2": "10.77.0.3"}
"""Of the hosts, each with a second one to move to; the commands find them in their environment."""

TUNSETIFF: Final = 0x400454CA
TUN_PLAIN: Final = 0x1001
"""IFF_TUN without the packet information header."""


def why_not() -> str | None:
    """What keeps the laboratory from working here, in a sentence, or None."""
    if not sys.platform.startswith("linux"):
        return "the laboratory needs Linux"
    if os.geteuid() != 0:
        return "the laboratory needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "the laboratory needs the command ip (Debian's iproute2)"
    try:
        with Hosts():
            return None
    except (OSError, subprocess.CalledProcessError) as error:  # a container may be root without the right to do this
        return f"the laboratory may not make network namespaces and tun devices here ({error})"


class Hosts:
    """Host A and host B for the time of a `with` block.

    Attributes:
        tuns: File descriptors, A's and B's: what a host sends can be read there, and what is written there it receives.
    """

    def __init__(self) -> None:
        self.tuns: list[int] = []
        self._spaces: list[str] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Hosts:
        try:
            for host, second in (("A", "A2"), ("B", "B2")):
                self._make(f"vs{os.getpid() % 100000}{host.lower()}", ADDRESSES[f"NETLAB_{host}"], ADDRESSES[f"NETLAB_{second}"])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _make(self, space: str, address: str, second: str) -> None:
        tun = f"{space}t"
        _ip(f"netns add {space}")
        self._spaces.append(space)
        self.tuns.append(_open_tun(tun))
        _ip(f"link set {tun} netns {space}")
        for one in (address, second):
            _ip(f"-n {space} addr add {one}/24 dev {tun}")
        _ip(f"-n {space} link set {tun} mtu 1500 up")
        _ip(f"-n {space} link set lo up")
        _ip(f"-n {space} route add default dev {tun}")

    def run(self, host: int, command: str) -> subprocess.Popen[bytes]:
        """Start a shell command on host A (0) or B (1), in a process group of its own."""
        words = ["ip", "netns", "exec", self._spaces[host], "sh", "-c", command]
        process = subprocess.Popen(words, env={**os.environ, **ADDRESSES}, start_new_session=True)
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End what runs, give the devices and the namespaces back."""
        for process in self._processes:
            _end(process)
        for tun in self.tuns:
            os.close(tun)
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
        self._processes, self.tuns, self._spaces = [], [], []


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)


def _ip(words: str) -> None:
    subprocess.run(["ip", *shlex.split(words)], check=True, capture_output=True)


def _open_tun(name: str) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", name.encode(), TUN_PLAIN))
    return tun
