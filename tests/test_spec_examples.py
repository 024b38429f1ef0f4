"""The numbers in the specification and in its guide: recomputed from the words beside them, and read by the reference implementation."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import re
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from voicestream.codepoints import ErrorCode
from voicestream.core.resume import Generations, ResumeToken
from voicestream.errors import ProtocolError
from voicestream.wire import AudioFrame, MessageParser, ReportFrame, decode_datagram

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "spec" / "voicestream.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "spec" / "guide.md").read_text(encoding="utf-8")


def section(number: str) -> str:
    found = re.search(rf"^#+ {re.escape(number)}\. .*?(?=^#+ \d)", TEXT, re.MULTILINE | re.DOTALL)
    assert found
    return found.group()


def multiply(a: int, b: int) -> int:
    """As section 10.3 says it can be done without tables."""
    product = 0
    for bit in range(7, -1, -1):
        product = product << 1 ^ (0x11D if product & 0x80 else 0)
        product ^= a if b >> bit & 1 else 0
    return product


def power(base: int, exponent: int) -> int:
    return reduce(lambda product, _: multiply(product, base), range(exponent), 1)


def scaled(coefficient: int, symbol: bytes) -> bytes:
    return bytes(multiply(coefficient, byte) for byte in symbol)


def added(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def test_the_example_of_the_repair_code_is_right_in_every_number() -> None:
    """VS-10.2-1 "A sender MUST compute it so"."""
    text = section("10.4")

    def number(pattern: str) -> bytes:
        found = re.search(pattern, text)
        assert found, pattern
        return bytes.fromhex(found.group(1))

    sources = [number(r"source  8:  ([0-9a-f ]+)"), number(r"source 16:  ([0-9a-f ]+)")]
    assert sources == [bytes.fromhex("08000448a1b2c3"), bytes.fromhex("000002480f0000")]
    coefficients = {key: [power(2, key * pts % 255) for pts in (8, 16)] for key in (3, 5)}
    assert [number(rf"2\^{exponent} = 0x(\w\w)")[0] for exponent in (24, 48, 40, 80)] == coefficients[3] + coefficients[5]
    products = [scaled(coefficient, source) for coefficient, source in zip(coefficients[3], sources, strict=True)]
    assert products == [number(r"source  8  =  (\w+)"), number(r"source 16  =  (\w+)")]
    symbol = added(*products)
    assert number(r"repair symbol     =  (\w+)") == symbol
    assert number(r"frame             =  ([0-9a-f ]+)").endswith(symbol)
    left, inverse = number(r"leaves (\w+)"), number(r"which is 0x(\w\w)")[0]
    assert left == products[0]
    assert inverse == power(coefficients[3][0], 254)
    assert scaled(inverse, left) == sources[0] == number(r"which is 0xf5: ([0-9a-f ]+)")
    second = number(r"symbol (\w{14})\)")
    assert second == added(*[scaled(coefficient, source) for coefficient, source in zip(coefficients[5], sources, strict=True)])
    determinant = multiply(coefficients[3][0], coefficients[5][1]) ^ multiply(coefficients[3][1], coefficients[5][0])
    assert [determinant] == [*number(r"0x6a is 0x(\w\w)")]
    assert [power(determinant, 254)] == [*number(r"its inverse 0x(\w\w)")]
    solved = scaled(power(determinant, 254), added(scaled(coefficients[5][1], symbol), scaled(coefficients[3][1], second)))
    assert solved == sources[0]


def test_the_examples_of_frames_say_what_stands_beside_them() -> None:
    audio = re.search(r"^([0-9a-f ]+48)\.\.\.", section("4.2"), re.MULTILINE)
    assert audio
    datagram = decode_datagram(bytes.fromhex(audio.group(1)))
    assert (datagram.number, datagram.send_tick) == (258, 4000)
    assert datagram.frames == (AudioFrame(pts=8, payload=b"\x48", talkspurt_start=True),)
    report = re.search(r"^(01 0e [0-9a-f ]+)$", section("4.4"), re.MULTILINE)
    assert report
    (frame,) = decode_datagram(bytes(4) + bytes.fromhex(report.group(1))).frames
    assert isinstance(frame, ReportFrame)
    assert (frame.newest, frame.arrival, frame.statuses) == (261, 20000, (0, None, -2, 1))
    assert [(one.track, one.playhead, one.level_units, one.target_units) for one in frame.playout] == [(0, 128, 16, 16)]


def test_the_example_of_generations_is_how_they_go() -> None:
    """VS-11.3-5, followed step by step."""
    step = r"^ *(?:RESUME (\d)|CONFIRM (\d)|<--    (ACCEPT|RESUMED|REJECT)|\(lost\) (RESUMED))[^\n]*?(?:(\d) +(\d))?$"
    steps = re.findall(step, section("11.3"), re.MULTILINE)
    assert len(steps) == 12
    generations = Generations(bytes(16), b"me")
    token: ResumeToken | None = None
    for resume, confirm, answer, _, confirmed, issued in steps:
        if resume:
            token = ResumeToken(session_id=bytes(16), generation=int(resume), identity=b"me", expires_at=9)
        elif confirm:
            generations.confirm(int(confirm))
        elif token is not None and answer == "REJECT":
            with pytest.raises(ProtocolError) as caught:
                generations.admit(token, token.generation, b"me")
            assert caught.value.code is ErrorCode.TOKEN_USED
        elif token is not None:
            generations.admit(token, token.generation, b"me")
        if confirmed:
            assert (generations.confirmed, generations.issued) == (int(confirmed), int(issued))


def guide_bytes() -> list[tuple[bytes, str]]:
    lines = [line for block in re.findall(r"^```hex\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    return [(bytes.fromhex(encoded), words.strip()) for encoded, _, words in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize(("data", "words"), guide_bytes(), ids=lambda value: value[:20] if isinstance(value, str) else "")
def test_the_bytes_of_the_guide_can_be_read(data: bytes, words: str) -> None:
    if words.startswith("number"):
        datagram = decode_datagram(data)
        assert words.startswith(f"number {datagram.number}, tick {datagram.send_tick}")
        if isinstance(datagram.frames[0], ReportFrame):
            assert (datagram.frames[0].newest, datagram.frames[0].statuses) == (4, (None, 2, -1))
    else:
        (message,) = MessageParser().feed(data)
        assert type(message).__name__.upper() in words
        assert [int(number) for number in re.findall(r"(?:track|number|pts) (\d+)", words)] == [
            getattr(message, name) for name in ("track", "number", "from_pts", "to_pts", "heard_pts", "pts") if hasattr(message, name)
        ]


def run_the_guides_runner(answers: dict[str, Any]) -> str:
    class Error(Exception):
        code = ""

    def decode(kind: str, params: dict[str, Any], value: Any) -> Any:
        known, answer = answers[json.dumps([kind, params, value], sort_keys=True)]
        if known == "invalid":
            error = Error()
            error.code = answer
            raise error
        return answer

    (program,) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    out, before = io.StringIO(), Path.cwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out):
            exec(program, {"pathlib": pathlib, "json": json, "yours": SimpleNamespace(decode=decode, Error=Error)})
    finally:
        os.chdir(before)
    return out.getvalue()


def test_the_guides_runner_passes_right_answers_and_no_wrong_ones() -> None:
    answers: dict[str, Any] = {}
    for path in sorted((ROOT / "spec" / "vectors").glob("*.json")):
        vectors = json.loads(path.read_text(encoding="utf-8"))
        for group in vectors["groups"]:
            for test in group["tests"]:
                key = json.dumps([vectors["type"], group.get("params", {}), test["input"]], sort_keys=True)
                answers[key] = (test["result"], test.get("expect", test.get("error")))
    told = run_the_guides_runner(answers)
    assert "FAILED" not in told
    assert told.count(" ok\n") > 300
    wrong = run_the_guides_runner({key: (known, [answer]) for key, (known, answer) in answers.items()})
    assert " ok\n" not in wrong
