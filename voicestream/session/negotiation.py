"""What HELLO offers and ACCEPT settles: tracks and limits (specification section 5.4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from voicestream.codepoints import CodecId, ErrorCode
from voicestream.config import MAX_DATAGRAM_SIZE, SessionConfig, Track
from voicestream.errors import ProtocolError
from voicestream.wire.parameters import Parameters

__all__ = ["Destination", "PeerLimits", "agree", "check_answer", "destination", "elsewhere", "limit_parameters", "peer_limits"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerLimits:
    """What the far end takes. The values here hold until it says otherwise.

    Attributes:
        max_datagram_size: Bytes of VoiceStream in one datagram.
        max_event_size: Bytes of one event's payload.
        lookahead_ms: Media that its playout holds, in milliseconds.
        retain_ms: How long it keeps sent media for a resume, in milliseconds.
        max_rate_bps: Bits per second on the wire that it wants to receive, headers included; None for no bound.
    """

    max_datagram_size: int = MAX_DATAGRAM_SIZE
    max_event_size: int = 1 << 20
    lookahead_ms: int = 150
    retain_ms: int = 0
    max_rate_bps: int | None = None


def limit_parameters(config: SessionConfig) -> Parameters:
    """The limits of this end, as HELLO and ACCEPT carry them."""
    return Parameters(
        max_datagram_size=MAX_DATAGRAM_SIZE,
        max_event_size=config.limits.max_event_size,
        lookahead_ms=config.playout.lookahead_ms,
        retain_ms=round(config.retain_s * 1000),
    )


def peer_limits(parameters: Parameters, before: PeerLimits) -> PeerLimits:
    """The far end's limits after HELLO, ACCEPT or SETTINGS. VS-5.4-3"""
    changed = {
        name: value
        for name in ("max_datagram_size", "max_event_size", "lookahead_ms", "retain_ms", "max_rate_bps")
        if (value := getattr(parameters, name)) is not None
    }
    if "max_datagram_size" in changed:
        changed["max_datagram_size"] = min(changed["max_datagram_size"], MAX_DATAGRAM_SIZE)  # VS-3.2-2
    return replace(before, **changed)


def agree(own: tuple[Track, ...], offered: tuple[Track, ...]) -> tuple[Track, ...]:
    """The tracks that both sides have, as this side (the server) describes them.

    Args:
        own: Tracks of this side.
        offered: Tracks as the client describes them.

    Raises:
        ProtocolError: TRACK_ERROR, when a track means different things on the two sides, or none is left.
    """
    # Of a track whose frames have any length here, the client says which.
    agreed = [
        track
        for mine in own
        for theirs in offered
        if (track := _common(replace(mine, frame_units=mine.frame_units or theirs.frame_units), theirs)) is not None
    ]
    if not agreed:
        raise ProtocolError(ErrorCode.TRACK_ERROR, "the two sides have no track in common")
    return tuple(agreed)


def check_answer(offered: tuple[Track, ...], answered: tuple[Track, ...]) -> tuple[Track, ...]:
    """The tracks that the server took, as this side (the client) describes them.

    Raises:
        ProtocolError: TRACK_ERROR, when the answer goes beyond the offer.
    """
    own = {track.track_id: track for track in offered}
    agreed = []
    for theirs in answered:
        mine = own.get(theirs.track_id)
        track = None if mine is None else _common(mine, theirs)
        if mine is None or track is None or track.send != theirs.receive or track.receive != theirs.send:
            raise ProtocolError(ErrorCode.TRACK_ERROR, f"track {theirs.track_id} of the answer was not offered like that")  # VS-5.2.2-2
        agreed.append(track)
    return tuple(agreed)


def _common(mine: Track, theirs: Track) -> Track | None:
    if mine.track_id != theirs.track_id:
        return None
    # VS-6.4-2: an Opus packet tells its channels by itself, and a decoder gives what its side wants.
    channels_differ = mine.channels != theirs.channels and mine.codec != CodecId.OPUS
    if (mine.codec, mine.clock_rate_hz) != (theirs.codec, theirs.clock_rate_hz) or channels_differ:
        raise ProtocolError(ErrorCode.TRACK_ERROR, f"track {mine.track_id} has another codec, clock rate or channel count")
    if mine.frame_units != theirs.frame_units:  # VS-5.2.2-2
        raise ProtocolError(ErrorCode.TRACK_ERROR, f"track {mine.track_id} has another frame length")
    send, receive = mine.send and theirs.receive, mine.receive and theirs.send
    if not (send or receive):
        return None
    return replace(mine, send=send, receive=receive)


def elsewhere(reason: str, uri: str | None, route_token: bytes | None, retry_after: float | None) -> Parameters:
    """The parameters of REJECT and GOING_AWAY; `retry_after` in seconds."""
    return Parameters(
        reason=reason or None,
        uri=uri,
        route_token=route_token,
        retry_after_ms=None if retry_after is None else round(retry_after * 1000),
    )


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a server wants a session to go on.

    Attributes:
        uri: Of the server; None for the address that was called, behind which there may be several.
        route_token: First connection id of the dial there, 8 to 20 bytes; None for any.
    """

    uri: str | None
    route_token: bytes | None = field(default=None, repr=False)


def destination(parameters: Parameters) -> Destination | None:
    """Where REJECT or GOING_AWAY sends a client (VS-11.2-1); None if that is nowhere."""
    if parameters.uri is None and parameters.route_token is None:
        return None
    return Destination(parameters.uri, parameters.route_token)
