"""The command ``voicestream``: reads the command line, runs one command, turns what goes wrong into one sentence."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from voicestream.cli import call, cert, dashboard, demo, inspect, serve
from voicestream.cli.errors import CommandError, sentence
from voicestream.cli.version import version
from voicestream.errors import VoiceStreamError

__all__ = ["build_parser", "main"]


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(prog="voicestream", description="Live speech both ways over QUIC.")
    parser.add_argument("--version", action="version", version=f"voicestream {version()}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for module in (serve, call, demo, cert, dashboard, inspect):
        module.add_command(commands)
    commands.add_parser("version", help="print the version").set_defaults(run=_print_version)
    return parser


def _print_version(_options: argparse.Namespace) -> int:
    print(f"voicestream {version()}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; those of the process by default.

    Returns:
        Exit status: 0, or 1 after a sentence on stderr. Usage errors leave with `SystemExit` 2, as argparse does.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a bar or a dash must not end the command.
            stream.reconfigure(errors="replace")
    options = build_parser().parse_args(argv)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read our output has left; without this the interpreter complains once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (CommandError, VoiceStreamError, OSError) as error:
        print(f"voicestream: {sentence(error)}", file=sys.stderr)
        return 1
