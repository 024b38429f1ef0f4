"""QUIC for sessions: the only package that knows aioquic."""

from __future__ import annotations
