"""Options that commands share, checked while the command line is read: a bad value is a usage error (exit status 2)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voicestream.cli.errors import CommandError
from voicestream.config import FRAME_MS_CHOICES, RateConfig
from voicestream.quic.certificates import parse_fingerprint

__all__ = ["Commands", "add_coding", "add_trace", "bitrates", "bounded", "fingerprint", "host_and_port", "make_folder"]

Commands = Any  # argparse's _SubParsersAction has no public name


def bounded(low: int, high: int, unit: str = "") -> Callable[[str], int]:
    """A type for argparse: a whole number from `low` to `high`."""
    reach = f"{low} to {high}" + (f" {unit}" if unit else "")

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, {reach}, not {text!r}") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be {reach}, not {value}")
        return value

    return parse


def fingerprint(text: str) -> bytes:
    """A type for argparse: the SHA-256 of a certificate."""
    try:
        return parse_fingerprint(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be 64 hexadecimal digits, not {text!r}") from None


def bitrates(options: argparse.Namespace) -> tuple[int, RateConfig]:
    """Where the codec begins and what it may use: a bitrate that the user names is the highest, not only the first."""
    if options.bitrate is None:
        return 40000, RateConfig()
    return options.bitrate, RateConfig(max_bitrate_bps=options.bitrate)


def add_coding(parser: argparse.ArgumentParser) -> None:
    """Options of the encoder."""
    bitrate = bounded(8000, 64000, "bit/s")
    parser.add_argument(
        "--bitrate",
        type=bitrate,
        metavar="BPS",
        help="highest codec bitrate, 8000 to 64000; the network's state may lower it (begins at 40000, goes up to 64000)",
    )
    parser.add_argument("--frame-ms", type=int, choices=FRAME_MS_CHOICES, default=20, help="length of a frame (20)")


def add_trace(parser: argparse.ArgumentParser) -> None:
    """Where a trace of each call goes."""
    parser.add_argument("--trace", type=_folder, metavar="DIR", help="write what each call did and why into a file in this folder (qlog)")


def _folder(text: str) -> Path:
    path = Path(text)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return path


def host_and_port(text: str) -> tuple[str, int]:
    """A type for argparse: PORT, on the loopback address, or HOST:PORT."""
    host, colon, port = text.rpartition(":")
    return (host.strip("[]") if colon else "127.0.0.1"), bounded(0, 65535)(port)


def make_folder(path: Path) -> None:
    """Make a folder, if it is not there, in one that is: a slip in a long path must not make folders all over the disk.

    Raises:
        CommandError: There is none to make it in, or something else has its name.
    """
    if not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent} to make {path.name} in")
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path} is not a folder")
    path.mkdir(exist_ok=True)
