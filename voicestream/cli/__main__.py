"""``python -m voicestream.cli``."""

from __future__ import annotations

import sys

from voicestream.cli import main

sys.exit(main())
