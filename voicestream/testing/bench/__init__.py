"""Rate control measured in virtual time: whole calls over real QUIC, several at once, on shared and changing links, with competitors.

    python -m voicestream.testing.bench                 all cases, a table of figures with their bars
    python -m voicestream.testing.bench 5.1 jitter10    these
    python -m voicestream.testing.bench --list          what there is

The cases follow RFC 8867, scaled to the rates of speech, and what else is known to mislead congestion control.
"""

from __future__ import annotations

from voicestream.testing.bench.case import Bar, Case, Greedy, Media
from voicestream.testing.bench.run import Outcome, run_case

__all__ = ["Bar", "Case", "Greedy", "Media", "Outcome", "run_case"]
