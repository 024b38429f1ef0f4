"""What is known of a call from its beginning on."""

from __future__ import annotations

from voicestream.call_options import CallInfo

__all__ = ["CallFacts"]


class CallFacts:
    """The part of `Call` that does not change."""

    __slots__ = ("_info",)

    def __init__(self, info: CallInfo) -> None:
        self._info = info

    @property
    def session_id(self) -> str:
        """Name of the session, 32 hexadecimal digits."""
        return self._info.session_id.hex()

    @property
    def authority(self) -> str:
        """Host and port that the client called."""
        return self._info.authority

    @property
    def path(self) -> str:
        """Path that the client called, with its query."""
        return self._info.path

    @property
    def metadata(self) -> bytes:
        """What the far end gave as ``metadata``."""
        return self._info.metadata

    @property
    def remote_address(self) -> tuple[str, int]:
        """Host and port of the far end."""
        return self._info.remote_address

    @property
    def continued(self) -> bool:
        """Whether this call has begun at another server, which is gone or has passed it on.

        `context` and `processed_through` are what the application has left there; ordered reading (`frames`) goes on after that.
        """
        return self._info.continued
