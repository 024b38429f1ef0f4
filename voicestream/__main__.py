"""``python -m voicestream``."""

from __future__ import annotations

import sys

from voicestream.cli import main

if __name__ == "__main__":
    sys.exit(main())
