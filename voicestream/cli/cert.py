"""``voicestream cert``: a self-signed certificate for development and for pinning."""

from __future__ import annotations

import argparse
from pathlib import Path

from voicestream.cli.errors import CommandError, user_values
from voicestream.cli.options import Commands, bounded, make_folder
from voicestream.quic.certificates import make_certificate, write_certificate

__all__ = ["LOCAL_NAMES", "add_command", "run"]

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def add_command(commands: Commands) -> None:
    """Add ``cert`` to the command line."""
    parser = commands.add_parser(
        "cert",
        help="make a self-signed certificate",
        description="Make a self-signed certificate (ECDSA P-256) and print its SHA-256, which a client takes as --pin.",
    )
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="folder for cert.pem and key.pem (here)")
    names = " ".join(LOCAL_NAMES)
    parser.add_argument("--name", nargs="+", default=list(LOCAL_NAMES), metavar="NAME", help=f"host names and addresses ({names})")
    parser.add_argument("--days", type=bounded(1, 3650, "days"), default=10, help="how long it is valid (10)")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the files, print the fingerprint."""
    certificate, key = options.out / "cert.pem", options.out / "key.pem"
    for path in (certificate, key):
        if path.exists() and not options.force:
            raise CommandError(f"{path} exists; --force overwrites it")
    with user_values():
        cert_pem, key_pem, sha256 = make_certificate(options.name, days=options.days)
    make_folder(options.out)
    write_certificate(cert_pem, key_pem, certificate, key)
    print(sha256)
    return 0
