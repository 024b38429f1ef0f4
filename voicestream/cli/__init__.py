"""The command line: ``voicestream serve | call | demo | cert | dashboard | inspect | version``."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; see `voicestream.cli.entry.main`."""
    # Imported here, so that a part (a chart, say) can be used without loading codecs and QUIC.
    from voicestream.cli.entry import main as run

    return run(argv)
