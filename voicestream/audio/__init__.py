"""Codecs, files, devices and the two pipelines: PCM to coded frames, and playout decisions to PCM."""

from __future__ import annotations
