"""``python -m voicestream.testing.vectors``."""

from __future__ import annotations

import sys

from voicestream.testing.vectors import main

if __name__ == "__main__":
    sys.exit(main())
