"""Settings of a call. Frozen and keyword-only; values are checked when made, so a bad one fails at the caller's line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from voicestream.codepoints import CodecId

__all__ = ["AudioConfig", "Limits", "PlayoutConfig", "RateConfig", "SessionConfig", "Track"]

PTS_UNIT_MS: Final = 2.5
"""Milliseconds in one unit of a pts (specification section 6)."""

UNITS_PER_SECOND: Final = 400

FRAME_MS_CHOICES: Final = (10, 20, 40, 60)

MAX_DATAGRAM_SIZE: Final = 1160
"""Bytes of VoiceStream in one QUIC datagram; fits stock aioquic, 17-byte connection ids and WebTransport."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True, kw_only=True, slots=True)
class Track:
    """One sequence of media in a call.

    Attributes:
        track_id: 0 to 3. Track 0 costs no bytes and is there by default.
        codec: A `CodecId`, or the number of a private codec, 0x40 to 0x7f.
        clock_rate_hz: Sampling rate of the coded signal, in Hz.
        channels: 1 to 8.
        send: The side that describes the track sends on it.
        receive: The side that describes the track receives on it.
        frame_units: Length of every frame in pts units; 0 when the payload tells it (Opus, PCM).
    """

    track_id: int = 0
    codec: int = CodecId.OPUS
    clock_rate_hz: int = 48000
    channels: int = 1
    send: bool = True
    receive: bool = True
    frame_units: int = 0

    def __post_init__(self) -> None:
        _require(0 <= self.track_id <= 3, f"track_id must be 0 to 3, not {self.track_id}")
        _require(self.codec >= 0, f"codec must not be negative, not {self.codec}")
        _require(1 <= self.clock_rate_hz <= 384000, f"clock_rate_hz must be 1 to 384000, not {self.clock_rate_hz}")
        _require(1 <= self.channels <= 8, f"channels must be 1 to 8, not {self.channels}")
        _require(self.send or self.receive, "a track must send or receive")
        _require(0 <= self.frame_units <= 48, f"frame_units must be 0 to 48, not {self.frame_units}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioConfig:
    """How speech is coded and in what form the application gives and takes it.

    Attributes:
        sample_rate_hz: Rate of the PCM that the application gives and takes, 8000 to 192000 Hz.
        channels: 1 or 2, of that PCM.
        bitrate_bps: Bits per second of the codec to begin with, 8000 to 64000.
        frame_ms: 10, 20, 40 or 60 milliseconds a frame to begin with.
        application: libopus' mode: "voip", "audio" or "lowdelay".
        dtx: Send (almost) nothing in silence.
        complexity: libopus' effort, 0 to 10; not more than 5 of it is used at 48 kbps a channel and above.
    """

    sample_rate_hz: int = 48000
    channels: int = 1
    bitrate_bps: int = 40000
    frame_ms: int = 20
    application: Literal["voip", "audio", "lowdelay"] = "voip"
    dtx: bool = False
    complexity: int = 9

    def __post_init__(self) -> None:
        _require(8000 <= self.sample_rate_hz <= 192000, f"sample_rate_hz must be 8000 to 192000, not {self.sample_rate_hz}")
        _require(self.channels in (1, 2), f"channels must be 1 or 2, not {self.channels}")
        _require(8000 <= self.bitrate_bps <= 64000, f"bitrate_bps must be 8000 to 64000, not {self.bitrate_bps}")
        _require(self.frame_ms in FRAME_MS_CHOICES, f"frame_ms must be 10, 20, 40 or 60, not {self.frame_ms}")
        _require(
            self.application in ("voip", "audio", "lowdelay"),
            f"application must be voip, audio or lowdelay, not {self.application!r}",
        )
        _require(0 <= self.complexity <= 10, f"complexity must be 0 to 10, not {self.complexity}")


@dataclass(frozen=True, kw_only=True, slots=True)
class RateConfig:
    """What the application allows the sender to use.

    Attributes:
        min_bitrate_bps: Codec floor, 8000 to 64000.
        max_bitrate_bps: Codec cap, 8000 to 64000.
        send_deadline_ms: A frame that has waited longer than this in the send queue is dropped and counted, 20 to 2000.
        queue_frames: Frames that the send queue holds at most, 2 to 500; the oldest is dropped and counted.
        redundancy_share: Part of the wire bytes that redundancy takes as a rule, 0 to 0.5; answers to losses may add the measured loss.
            All together take no more than 30 %, or what this or `redundancy_cap` says if that is more. With 0 nothing is repaired and
            nothing sent again.
        redundancy_cap: Part of the wire bytes that redundancy may take where the path has room and more than 0.1 % of the frames would
            be concealed otherwise, 0 to 0.5. One below `redundancy_share` changes nothing.
        pairs: Measure the path now and then with a datagram that leaves right behind another. Without, it takes longer to find out
            that there is room.
        headroom: The codec goes beyond the bitrate that it begins with only as far as the link carries so many times as much, where the
            link's rate is known, 1 to 10: what is sent until a drop of capacity is known of has to wait. 1: as far as it carries.
    """

    min_bitrate_bps: int = 8000
    max_bitrate_bps: int = 64000
    send_deadline_ms: int = 150
    queue_frames: int = 100
    redundancy_share: float = 0.10  # VS-9.4-3
    redundancy_cap: float = 0.30
    pairs: bool = True
    headroom: float = 3.0

    def __post_init__(self) -> None:
        _require(
            8000 <= self.min_bitrate_bps <= self.max_bitrate_bps <= 64000,
            "bitrates must hold 8000 <= min_bitrate_bps <= max_bitrate_bps <= 64000",
        )
        _require(20 <= self.send_deadline_ms <= 2000, f"send_deadline_ms must be 20 to 2000, not {self.send_deadline_ms}")
        _require(2 <= self.queue_frames <= 500, f"queue_frames must be 2 to 500, not {self.queue_frames}")
        _require(0 <= self.redundancy_share <= 0.5, f"redundancy_share must be 0 to 0.5, not {self.redundancy_share}")
        _require(0 <= self.redundancy_cap <= 0.5, f"redundancy_cap must be 0 to 0.5, not {self.redundancy_cap}")
        _require(1 <= self.headroom <= 10, f"headroom must be 1 to 10, not {self.headroom}")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayoutConfig:
    """The playout buffer.

    Attributes:
        lookahead_ms: Ceiling of the live delay target and depth that a prefetching sender fills, 20 to 500.
        start_ms: Delay target before anything is known of the path, 10 to lookahead_ms. By default a frame of 20 ms and 2 ms: what
            a quiet link needs; devices that take audio in blocks add up to one of those.
        max_frames: Frames held at most, 10 to 5000; the oldest is dropped and counted.
    """

    lookahead_ms: int = 150
    start_ms: int = 22
    max_frames: int = 500

    def __post_init__(self) -> None:
        _require(20 <= self.lookahead_ms <= 500, f"lookahead_ms must be 20 to 500, not {self.lookahead_ms}")
        _require(10 <= self.start_ms <= self.lookahead_ms, f"start_ms must be 10 to lookahead_ms, not {self.start_ms}")
        _require(10 <= self.max_frames <= 5000, f"max_frames must be 10 to 5000, not {self.max_frames}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a peer may cost. Each bound has a registry code with which its breach ends the session.

    Attributes:
        handshake_timeout: Seconds from the connection's first packet to ACCEPT, 0.1 to 60.
        authenticate_timeout: Seconds of these that `authenticate` may take, 0.1 to 60.
        idle_timeout: Seconds without any packet after which the connection is dead, 1 to 600.
        max_event_size: Bytes of one application event that this side takes, 1024 to 16777216.
        max_event_streams: Events of the peer that may be under way at once, 1 to 1000.
        events_per_second: Events a second that this side takes, in the mean over ten seconds, 1 to 10000.
        messages_per_second: Control messages a second that this side takes, likewise, 1 to 10000.
        datagrams_per_second: Datagrams a second that this side takes, in the mean over two seconds, 200 to 100000; a call sends about
            100. One with many frames counts for half as many datagrams.
        packets_per_second: Packets a second of one connection that a server looks at, likewise, 200 to 1000000; others are dropped.
        early_datagrams: Datagrams kept by a client until ACCEPT has come, 0 to 1000.
        undelivered_events: Events kept for an application that does not fetch them, 1 to 10000; the oldest is dropped and counted.
        max_sessions: Sessions of one server, 1 to 1000000.
        max_sessions_per_address: Sessions of one client address, 1 to 1000000.
        max_handshakes: Connections on which a server has not accepted a session yet, 1 to 1000000.
        max_handshakes_per_address: Those of one client address, 1 to 1000000.
        retry_above: While so many of them are under way, a further client has to prove its address first (QUIC's Retry), which costs
            it a round trip, 0 to 1000000; 0 for each client at any time.
    """

    handshake_timeout: float = 10.0
    authenticate_timeout: float = 5.0
    idle_timeout: float = 30.0
    max_event_size: int = 1 << 20
    max_event_streams: int = 64
    events_per_second: int = 200
    messages_per_second: int = 200
    datagrams_per_second: int = 1000
    packets_per_second: int = 1000
    early_datagrams: int = 64
    undelivered_events: int = 1000
    max_sessions: int = 1000
    max_sessions_per_address: int = 1000
    max_handshakes: int = 512
    max_handshakes_per_address: int = 128
    retry_above: int = 64

    def __post_init__(self) -> None:
        _require(0.1 <= self.handshake_timeout <= 60, f"handshake_timeout must be 0.1 to 60, not {self.handshake_timeout}")
        _require(0.1 <= self.authenticate_timeout <= 60, f"authenticate_timeout must be 0.1 to 60, not {self.authenticate_timeout}")
        _require(1 <= self.idle_timeout <= 600, f"idle_timeout must be 1 to 600, not {self.idle_timeout}")
        _require(1024 <= self.max_event_size <= 1 << 24, f"max_event_size must be 1024 to 16777216, not {self.max_event_size}")
        _require(1 <= self.max_event_streams <= 1000, f"max_event_streams must be 1 to 1000, not {self.max_event_streams}")
        _require(1 <= self.events_per_second <= 10000, f"events_per_second must be 1 to 10000, not {self.events_per_second}")
        _require(1 <= self.messages_per_second <= 10000, f"messages_per_second must be 1 to 10000, not {self.messages_per_second}")
        _require(0 <= self.early_datagrams <= 1000, f"early_datagrams must be 0 to 1000, not {self.early_datagrams}")
        _require(1 <= self.undelivered_events <= 10000, f"undelivered_events must be 1 to 10000, not {self.undelivered_events}")
        _require(200 <= self.datagrams_per_second <= 100000, f"datagrams_per_second must be 200 to 100000, not {self.datagrams_per_second}")
        _require(200 <= self.packets_per_second <= 1000000, f"packets_per_second must be 200 to 1000000, not {self.packets_per_second}")
        for name in ("max_sessions", "max_sessions_per_address", "max_handshakes", "max_handshakes_per_address", "retry_above"):
            value, least = getattr(self, name), int(name != "retry_above")
            _require(least <= value <= 1000000, f"{name} must be {least} to 1000000, not {value}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionConfig:
    """Everything that a session needs to know, one object for both roles.

    Attributes:
        tracks: Tracks of the call; both sides must agree on id, codec, clock rate and channels.
        rate: See `RateConfig`.
        playout: See `PlayoutConfig`.
        limits: See `Limits`.
        frame_ms: Frame length to begin with, 10, 20, 40 or 60.
        bitrate_bps: Codec bitrate to begin with, 8000 to 64000.
        retain_s: Seconds of a break of which nothing is lost in order, 2 to 300: sent media is kept for so long, and 5 s more in which
            the path's return is noticed and answered.
        session_lifetime_s: Seconds that a broken session can be resumed, 30 to 300.
        metadata: Application bytes of HELLO (client) or ACCEPT (server), at most 4096.
        grease: Send reserved values now and then, so that the far end's skipping stays alive.
    """

    tracks: tuple[Track, ...] = (Track(),)
    rate: RateConfig = field(default_factory=RateConfig)
    playout: PlayoutConfig = field(default_factory=PlayoutConfig)
    limits: Limits = field(default_factory=Limits)
    frame_ms: int = 20
    bitrate_bps: int = 40000
    retain_s: float = 30.0
    session_lifetime_s: float = 300.0
    metadata: bytes = field(default=b"", repr=False)
    grease: bool = True

    def __post_init__(self) -> None:
        ids = [track.track_id for track in self.tracks]
        _require(bool(ids), "tracks must not be empty")
        _require(len(set(ids)) == len(ids), f"track ids must be distinct, not {ids}")
        _require(self.frame_ms in FRAME_MS_CHOICES, f"frame_ms must be 10, 20, 40 or 60, not {self.frame_ms}")
        _require(8000 <= self.bitrate_bps <= 64000, f"bitrate_bps must be 8000 to 64000, not {self.bitrate_bps}")
        _require(2 <= self.retain_s <= 300, f"retain_s must be 2 to 300, not {self.retain_s}")
        _require(30 <= self.session_lifetime_s <= 300, f"session_lifetime_s must be 30 to 300, not {self.session_lifetime_s}")
        _require(len(self.metadata) <= 4096, f"metadata must have at most 4096 bytes, not {len(self.metadata)}")
