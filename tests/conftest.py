"""Hypothesis profiles: `ci` is repeatable, `dev` explores anew, `nightly` explores long (HYPOTHESIS_PROFILE selects)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("ci", derandomize=True, max_examples=60, print_blob=True, database=None, **_COMMON)
settings.register_profile("dev", max_examples=100, print_blob=True, **_COMMON)
settings.register_profile("nightly", max_examples=5000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
