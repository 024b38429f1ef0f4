"""The command line that all systems of the laboratory have in common."""

from __future__ import annotations

import argparse

__all__ = ["parser"]


def parser(description: str | None, port: int) -> argparse.ArgumentParser:
    """Role, place, speech and files; see `interop.lab.calls.load_systems` for who gives them."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("role", choices=["server", "client"])
    made.add_argument("--host", default="0.0.0.0", help="address to listen on, or to call")
    made.add_argument("--port", type=int, default=port)
    made.add_argument("--seconds", type=float, default=18, help="client: length of the speech")
    made.add_argument("--life", type=float, default=80, help="server: seconds after which it ends")
    made.add_argument("--wav", help="client: what to say")
    made.add_argument("--reply", help="server: what to say back")
    made.add_argument("--sent", help="JSON file of the microphone")
    made.add_argument("--out", help="WAV of what is heard")
    return made
