"""Cases on links that were recorded, of a folder that the user names, and on links drawn at random in their manner."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from voicestream.testing.bench.bars import SPENT
from voicestream.testing.bench.case import Bar, Case
from voicestream.testing.profile import LinkProfile
from voicestream.testing.synthetic import DRIVES
from voicestream.testing.traces import Recording, find_recordings

__all__ = ["DRAWN", "recorded"]

QUEUE: Final = Bar("queue_p95_ms", "<=", 150)
DELAY: Final = Bar("delay_p50_ms", "<=", 350)

_ABOUT: Final = {
    "commute": "in the manner of a commute over HSDPA, drawn by the seed",
    "evdo": "in the manner of a drive in an EVDO network, drawn by the seed",
    "umts": "in the manner of a drive in a UMTS network, drawn by the seed",
    "lte": "in the manner of a drive in an LTE network, drawn by the seed",
    "satellite": "delays in the manner of a low satellite, drawn by the seed",
    "swell": "seconds of somebody else's queue come and go, drawn by the seed",
}


def _drawn(name: str) -> Case:
    cell = name in DRIVES
    return Case(
        name=f"drawn-{name}", about=_ABOUT[name], seconds=60, settle=5, synthetic=name, quick=name == "evdo",
        b2a=LinkProfile(delay_ms=40, queue_ms=1000) if cell else LinkProfile(delay_ms=20),
        a2b=LinkProfile(delay_ms=40 if cell else 20), bars=(QUEUE, DELAY) if cell else (SPENT,),
    )  # fmt: skip


DRAWN: Final = tuple(_drawn(name) for name in _ABOUT)
"""What stands for recordings where there are none; beside them too."""


def recorded(folder: Path | None, *, seconds: float = 90) -> tuple[Case, ...]:
    """A case for every recording of a folder."""
    return tuple(_recorded(one, seconds) for one in find_recordings(folder)) if folder is not None else ()


def _recorded(recording: Recording, seconds: float) -> Case:
    cell = recording.kind != "delays"
    return Case(
        name=recording.name, about=f"recorded {'capacity' if cell else 'delays'}, cut where the seed says", seconds=seconds, settle=5,
        group="Recorded links", recording=recording, a2b=LinkProfile(delay_ms=40 if cell else 20),
        b2a=LinkProfile(delay_ms=40, queue_ms=1000) if cell else LinkProfile(delay_ms=20), bars=(QUEUE, DELAY) if cell else (SPENT,),
    )  # fmt: skip
