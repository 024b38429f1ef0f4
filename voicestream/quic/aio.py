"""asyncio under the endpoints: sockets, one timer for each owner of sockets, and no policy."""

from __future__ import annotations

from voicestream.quic.client_transport import ClientTransport
from voicestream.quic.owner import OnActivity, SocketOwner, clock
from voicestream.quic.server_transport import Link, ServerTransport

__all__ = ["ClientTransport", "Link", "OnActivity", "ServerTransport", "SocketOwner", "clock"]
