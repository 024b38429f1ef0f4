"""Plays one side of a conversation of the test vectors against a session, and holds its answers against the vector."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from voicestream.codepoints import ErrorCode
from voicestream.events import Closed, Rejected
from voicestream.testing.vectors.stage import START, Actor, Step, encode_step
from voicestream.testing.vectors.values import frame_json, message_json
from voicestream.wire import EventParser, MessageParser, Reject, decode_datagram

__all__ = ["Mismatch", "Replay"]

MAY = frozenset({"PROGRESS", "SETTINGS", "UNKNOWN"})
"""Messages that can come at any time."""


class Mismatch(AssertionError):
    """The session did not do as the conversation says."""


class Replay:
    """One conversation, of which `role` is the side under test.

    Args:
        role: "client" or "server".
        steps: The conversation.
        entropy: Randomness of the session under test.
    """

    def __init__(self, role: str, steps: list[Step], entropy: Callable[[int], bytes]) -> None:
        self.role = role
        self.steps = steps
        self.actor = Actor(role, entropy)
        self.messages: list[Step] = []
        self.frames: list[Step] = []
        self.said_events: list[Step] = []
        self.errors: list[str] = []
        self._parser = MessageParser()
        self._seen: dict[int, Step] = {}

    def run(self) -> None:
        """Go through all steps.

        Raises:
            Mismatch: A message or frame that must come did not, or with other fields.
        """
        for index, step in enumerate(self.steps):
            self._until(START + step["at_ms"] / 1000)
            now = START + step["at_ms"] / 1000
            if step["from"] == self.role:
                if "do" in step:
                    if step["do"] in ("lose", "wait", "call", "resume"):
                        self._parser = MessageParser()
                    self.actor.do(step, now)
                    self._take(lost=step["do"] == "lose")
                elif "must" in step:
                    self._expect(index, step)
            elif "channel" in step:
                self.actor.receive(step["channel"], self._bytes(step), now)
                self._take()

    def _until(self, until: float) -> None:
        for _ in range(10_000):
            timer = self.actor.next_timer()
            if timer is None or timer > until:
                return
            self.actor.run(timer)
            self._take()
        raise Mismatch("the timers never come to rest")

    def _bytes(self, step: Step) -> bytes:
        """What the other side sends, with the values that the side under test really chose."""
        if "uses" not in step:
            return bytes.fromhex(step["bytes"])
        step = copy.deepcopy(step)
        for name, index in step["uses"].items():
            if index in self._seen:
                step["value"]["parameters"][name] = self._seen[index]["parameters"][name]
        return encode_step(step)

    def _take(self, *, lost: bool = False) -> None:
        said, self.actor.unsaid = self.actor.unsaid, []
        for channel, data in () if lost else said:
            if channel == "control":
                for message in self._parser.feed(data):
                    self.messages.append(message_json(message))
                    if isinstance(message, Reject):
                        self.errors.append(ErrorCode(message.code).name)
            elif channel == "datagram":
                self.frames += [frame_json(frame) for frame in decode_datagram(data).frames]
            else:
                event = EventParser(1 << 20).feed(data, fin=True)
                if event is not None:
                    self.said_events.append({"order": event[0].order, "kind": event[0].kind, "payload": event[1].hex()})
        for happened in self.actor.events:
            if isinstance(happened, Closed | Rejected):
                self.errors.append(ErrorCode(happened.code).name)
        self.actor.events.clear()

    def _expect(self, index: int, step: Step) -> None:
        wanted = step["value"]
        where = f"step {index}, {self.role} at {step['at_ms']} ms"
        if step["channel"] == "control":
            while self.messages and self.messages[0]["message"] != wanted["message"] and self.messages[0]["message"] in MAY:
                self.messages.pop(0)
            if not self.messages:
                raise Mismatch(f"{where}: no {wanted['message']}")
            self._seen[index] = found = self.messages.pop(0)
            self._compare(where, wanted, found, step["any"])
        elif step["channel"] == "datagram":
            for frame in (frame for frame in wanted["frames"] if frame["frame"] in step["must"]):
                if frame not in self.frames:
                    raise Mismatch(f"{where}: no {frame} among {self.frames[-8:]}")
                self.frames = [other for other in self.frames if other != frame]
        else:
            member = {"order": wanted.get("order", 0), "kind": wanted["kind"], "payload": wanted["payload"]}
            if member not in self.said_events:
                raise Mismatch(f"{where}: no event {member}")

    @staticmethod
    def _compare(where: str, wanted: dict[str, Any], found: dict[str, Any], free: list[str]) -> None:
        def kept(value: dict[str, Any]) -> dict[str, Any]:
            plain = {name: content for name, content in value.items() if name not in free and name != "parameters"}
            return plain | {name: content for name, content in value.get("parameters", {}).items() if name not in free}

        if kept(wanted) != kept(found):
            raise Mismatch(f"{where}: {kept(found)} in place of {kept(wanted)}")
