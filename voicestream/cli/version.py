"""Which version is installed."""

from __future__ import annotations

from importlib import metadata

__all__ = ["version"]


def version() -> str:
    """The installed version."""
    try:
        return metadata.version("voicestream")
    except metadata.PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"
