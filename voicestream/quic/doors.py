"""Who may begin a handshake while many are under way: bounds in all and for each address, and Retry under load (section 15.1; VS-15-1).

What a handshake costs a server before the far end has shown that it lives at its address is the business of whoever can forge
addresses. So from some number of handshakes on each newcomer proves its address first: that costs the server one small packet and no
memory, and an honest client one round trip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from aioquic.quic.packet import encode_quic_retry
from aioquic.quic.retry import QuicRetryTokenHandler

from voicestream.config import Limits
from voicestream.quic.packets import Preamble
from voicestream.quic.values import Address

__all__ = ["Doors", "Ticket"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """With what a connection begins.

    Attributes:
        original_id: Destination connection id of the client's very first packet.
        retry_source_id: Connection id that this server's Retry gave; None without one.
    """

    original_id: bytes
    retry_source_id: bytes | None


class Doors:
    """Counts handshakes: connections on which no session has been accepted yet.

    Args:
        limits: How many there may be, and from how many on an address has to be proved.
        always: Have each client prove its address.
    """

    __slots__ = ("_always", "_handler", "_hosts", "_limits", "total")

    def __init__(self, limits: Limits, *, always: bool = False) -> None:
        self._limits = limits
        self._always = always
        self._handler = QuicRetryTokenHandler()
        self._hosts: Counter[object] = Counter()
        self.total = 0

    def begun(self, host: object) -> None:
        """A handshake has begun."""
        self.total += 1
        self._hosts[host] += 1

    def ended(self, host: object) -> None:
        """It has led to a session, or to nothing."""
        self.total -= 1
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def is_full(self, host: object) -> bool:
        """Whether no further handshake may begin, from this address or at all."""
        return self.total >= self._limits.max_handshakes or self._hosts[host] >= self._limits.max_handshakes_per_address

    @property
    def wants_proof(self) -> bool:
        """Whether a newcomer has to prove its address first."""
        return self._always or self.total >= self._limits.retry_above

    def check(self, preamble: Preamble, token: bytes, address: Address, now: float) -> Ticket | None:
        """What to begin a connection with; None when the client has to prove its address first and has no token.

        Args:
            preamble: Of its Initial packet.
            token: In that packet.
            address: Where it came from.
            now: Monotonic seconds.

        Raises:
            ValueError: The token is not good, and one is needed.
        """
        if token:
            try:
                original = self._handler.validate_token(
                    address=_host_of(address), destination_cid=preamble.destination_id, token=token, now=now
                )
            except ValueError:
                if self.wants_proof:
                    raise
            else:
                # Also when no proof is needed any more: the client holds the handshake against the Retry that it got.
                return Ticket(original, preamble.destination_id)
        return None if self.wants_proof else Ticket(preamble.destination_id, None)

    def retry(self, preamble: Preamble, address: Address, now: float, new_id: Callable[[], bytes]) -> bytes:
        """A Retry packet for this Initial packet."""
        source_id = new_id()
        token = self._handler.create_token(
            address=_host_of(address),
            original_destination_connection_id=preamble.destination_id,
            retry_source_connection_id=source_id,
            now=now,
        )
        return encode_quic_retry(
            version=preamble.version or 0,
            source_cid=source_id,
            destination_cid=preamble.source_id,
            original_destination_cid=preamble.destination_id,
            retry_token=token,
        )


def _host_of(address: Address) -> Address:
    """An address as Retry tokens have it: without the port, for a NAT may give the second packet another one."""
    return (address[0], 0)
