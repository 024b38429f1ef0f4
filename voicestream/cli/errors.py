"""What goes wrong on the command line, as one sentence."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from voicestream.errors import RejectedError, VoiceStreamError

__all__ = ["CommandError", "sentence", "user_values"]


class CommandError(Exception):
    """The command cannot do what was asked. Its text is one sentence for the user; the exit status is 1."""


@contextlib.contextmanager
def user_values() -> Iterator[None]:
    """Around what only checks values that the user gave: a `ValueError` there is the user's, not a bug."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error)) from error


def sentence(error: BaseException) -> str:
    """One line that says what went wrong, without the name of an exception."""
    if isinstance(error, RejectedError):
        text = f"the server declined the call: {error}"
        if error.uri is not None:
            text += f"; it names another address, {error.uri}"
        if error.retry_after is not None:
            text += f"; try again in {error.retry_after:g} s"
    elif isinstance(error, OSError) and not isinstance(error, VoiceStreamError):
        text = _system(error)
    else:
        text = str(error)
    return " ".join(text.split()) or type(error).__name__


def _system(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower() if error.errno is not None else str(error)
    if error.errno == errno.EADDRINUSE:
        return "the port is already in use; choose another with --port"
    return f"{error.filename}: {reason}" if error.filename else reason
