"""The command line: ``voicestream serve | call | demo | cert | dashboard | inspect | version``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; see `voicestream.cli.entry.main`."""
    try:
        # Imported here, so that a part (a chart, say) can be used without loading codecs and QUIC.
        from voicestream.cli.entry import main as run

        return run(argv)
    except KeyboardInterrupt:
        # All this takes a second, in which nobody who thinks better of it wants to see where it was.
        return INTERRUPTED
