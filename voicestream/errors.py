"""Every exception that VoiceStream raises. One root, so one ``except`` catches them all.

* `VoiceStreamError`

  * `LocalError`: the caller misused the interface (also a `RuntimeError`)

    * `StateError`: the call is valid, but not now

  * `ProtocolError`: the peer broke a rule; carries the registry code. Raised by the decoders of ``voicestream.wire``;
    above them it becomes a `voicestream.events.Closed` event
  * `ConnectError`: no call came about

    * `RejectedError`: the server answered and said no
    * `CertificateError`: the server's certificate is not the one asked for

  * `CallClosed`: the call is over

    * `CallClosedOK`, `CallClosedError`

  * `AudioError`: no usable codec, device or sound file

One warning: `InsecureWarning`, each time a server's certificate is deliberately not checked.

Arguments of a wrong type or value raise the built-in `TypeError` and `ValueError`.
"""

from __future__ import annotations

from voicestream.codepoints import ErrorCode, error_name

__all__ = [
    "AudioError",
    "CallClosed",
    "CallClosedError",
    "CallClosedOK",
    "CertificateError",
    "ConnectError",
    "InsecureWarning",
    "LocalError",
    "ProtocolError",
    "RejectedError",
    "StateError",
    "VoiceStreamError",
]


class VoiceStreamError(Exception):
    """Root of all exceptions of this package."""


class LocalError(VoiceStreamError, RuntimeError):
    """The caller misused the interface."""


class StateError(LocalError):
    """The operation is not possible in the present state, for example sending after `finish`."""


class ProtocolError(VoiceStreamError):
    """The peer sent something that the specification forbids.

    Attributes:
        code: Registry code with which the session is closed.
        reason: One sentence for logs and for the peer.
    """

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason


class ConnectError(VoiceStreamError):
    """No call came about: the host is unknown, does not answer, or does not speak the protocol."""


class RejectedError(ConnectError):
    """The server declined the call.

    Attributes:
        code: Registry code, or a number that this version does not know.
        reason: The server's words, possibly empty.
        uri: Where to call instead, if the server said so.
        route_token: First connection id for the next dial, if the server gave one.
        retry_after: Seconds to wait before another try, if the server said so.
    """

    def __init__(
        self,
        code: int,
        reason: str = "",
        *,
        uri: str | None = None,
        route_token: bytes | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{error_name(code)}: {reason}" if reason else error_name(code))
        self.code = code
        self.reason = reason
        self.uri = uri
        self.route_token = route_token
        self.retry_after = retry_after


class CertificateError(ConnectError):
    """The server's certificate could not be verified. No application byte was sent."""


class CallClosed(VoiceStreamError):
    """The call is over.

    Attributes:
        code: Registry code, or a number that this version does not know.
        reason: Words of the side that closed, possibly empty.
        remote: Whether the far end closed.
        may_resume: Whether the session can be taken up again on a new connection.
    """

    def __init__(self, code: int, reason: str = "", *, remote: bool = False, may_resume: bool = False) -> None:
        side = "the far end" if remote else "this end"
        super().__init__(f"closed by {side}: {error_name(code)}" + (f": {reason}" if reason else ""))
        self.code = code
        self.reason = reason
        self.remote = remote
        self.may_resume = may_resume


class CallClosedOK(CallClosed):
    """The call ended as intended (NO_ERROR or GOING_AWAY)."""


class CallClosedError(CallClosed):
    """The call ended with an error."""


class AudioError(VoiceStreamError):
    """No usable codec library, sound device or sound file."""


class InsecureWarning(UserWarning):
    """The server's certificate is not checked: whoever is on the path can listen and speak."""
