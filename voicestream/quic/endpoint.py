"""QUIC and sessions behind one set of verbs, without sockets and without a clock."""

from __future__ import annotations

from voicestream.quic.client_endpoint import ClientEndpoint
from voicestream.quic.connection import Connection
from voicestream.quic.connection_values import ConnectionStats
from voicestream.quic.server_endpoint import EndpointStats, ServerEndpoint
from voicestream.quic.streams import SessionPort
from voicestream.quic.values import Address

__all__ = ["Address", "ClientEndpoint", "Connection", "ConnectionStats", "EndpointStats", "ServerEndpoint", "SessionPort"]
