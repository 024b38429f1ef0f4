"""The suite itself: a few of its cases against our own ends, what it says of a peer that is wrong, and its outputs."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from interop import __main__ as suite
from interop import endpoint, endpoint_vectors, faults, runner, vectors
from interop.cases.section_03 import long_forms
from interop.cases.tools import message, number, parameter, refused
from interop.implementations import UNSUPPORTED, Files, load
from interop.model import CASES, Case, Outcome, Result, Verdict
from interop.observe import observe
from interop.page import page
from interop.pairs import PAIR_CASES, spoken_s
from interop.peers import meeting as meeting_module
from interop.peers.meeting import ClientMeeting, Met, ServerMeeting
from interop.proxy import Proxy
from interop.report import by_requirement, line, not_observed, summary, to_json, write_junit
from interop.rules import requirements
from interop.runner import chosen, make_files, run_case
from voicestream import ConnectError, ErrorCode, connect, serve
from voicestream.codepoints import MessageType, ParameterId
from voicestream.quic import configuration
from voicestream.wire import Close, Hello, PaddingFrame

QUICK_SERVER = (
    "hello-version-2", "datagram-of-3", "body-trailing", "frame-unknown", "message-4097", "second-hello", "parameters-unknown",
    "duplicate-path", "audio-before-accept", "opus-no-count", "json-not-json", "order-of-events", "clear-is-answered", "clear-is-confirmed",
    "finish-is-answered", "report-of-the-unsent", "repairs-are-right", "resume-is-taken", "token-used", "codes-agree",
)  # fmt: skip
QUICK_CLIENT = ("alpn-offered", "accept-version-3", "no-session-id", "silence-before-accept", "frame-too-long", "close-with-unknown-code")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    yield make_files(tmp_path)
    gc.collect()  # what was not closed is this test's fault, and no later one's


async def verdicts(meeting: object, names: tuple[str, ...]) -> dict[str, str]:
    results = [await run_case(meeting, CASES[name], "own") for name in names]
    return {result.case: f"{result.verdict} {result.outcome.words}" for result in results if result.verdict != Verdict.PASS}


async def test_our_server_passes_cases_of_each_section(files: Files) -> None:
    async with serve(endpoint.converse, "127.0.0.1", 0, certfile=files.certfile, keyfile=files.keyfile, complexity=0) as server:
        meeting = ServerMeeting("127.0.0.1", server.port)
        assert await verdicts(meeting, QUICK_SERVER) == {}
        await meeting.stop()
        await server.close(0)


class Caller:
    """A client of this process, to be stopped like one of another."""

    def __init__(self, uri: str, pin: str) -> None:
        self._task = asyncio.ensure_future(endpoint.again_and_again(uri, pin))

    @property
    def returncode(self) -> int | None:
        return 1 if self._task.done() else None

    def terminate(self) -> None:
        self._task.cancel()

    kill = terminate

    async def wait(self) -> None:
        await asyncio.wait([self._task])


def calling(files: Files) -> ClientMeeting:
    async def start(port: int) -> Caller:
        return Caller(f"voicestream://127.0.0.1:{port}/peer", files.pin)

    return ClientMeeting((files.certfile, files.keyfile), start)


async def test_our_client_passes_cases_in_which_the_suite_is_the_server(files: Files) -> None:
    meeting = calling(files)
    assert await verdicts(meeting, QUICK_CLIENT) == {}
    await meeting.stop()


async def test_a_client_that_gets_no_answer_closes_with_handshake_timeout(files: Files) -> None:
    """VS-11.1-1"""
    meeting = calling(files)
    await meeting.listen()
    came: list[Met] = []
    meeting._called = came.append  # type: ignore[assignment,method-assign]
    with pytest.raises(ConnectError, match="did not take the call"):
        await connect(f"voicestream://127.0.0.1:{meeting.port}/", pin=files.pin, open_timeout=1.0)
    assert came, "no HELLO"
    await came[0].until(lambda: came[0].gone, 3.0)
    assert came[0].gone is not None
    assert came[0].gone.code == ErrorCode.HANDSHAKE_TIMEOUT
    await meeting.stop()


def made_case(run: Callable[[Met], Awaitable[Outcome | None]], *, harmless: bool = False) -> Case:
    return Case(name="made", title="made for a test", requirements=("VS-4.1-2",), roles=("server",), run=run, harmless=harmless)


async def test_behaviour_and_close_code_are_judged_apart_and_a_failed_case_has_its_trace(files: Files) -> None:
    async def another_code(peer: Met) -> Outcome:
        peer.raw_datagram(b"\0")
        return await refused(peer, ErrorCode.LIMIT_EXCEEDED)

    async def nothing_wrong(peer: Met) -> Outcome:
        peer.say(PaddingFrame(size=1))
        return await refused(peer, ErrorCode.LIMIT_EXCEEDED, timeout=0.2)

    async with serve(endpoint.converse, "127.0.0.1", 0, certfile=files.certfile, keyfile=files.keyfile, complexity=0) as server:
        meeting = ServerMeeting("127.0.0.1", server.port)
        wrong_code = await run_case(meeting, made_case(another_code), "own")
        tolerated = await run_case(meeting, made_case(nothing_wrong), "own")
        loose = await run_case(meeting, made_case(nothing_wrong, harmless=True), "own")
        await meeting.stop()
        await server.close(0)
    assert (wrong_code.outcome.behaviour, wrong_code.outcome.close, wrong_code.verdict) == (Verdict.PASS, Verdict.FAIL, Verdict.FAIL)
    assert "FRAME_ENCODING_ERROR" in wrong_code.outcome.words
    assert any("HELLO" in told for told in wrong_code.trace)
    assert any("CLOSE" in told and "<" in told for told in wrong_code.trace)
    assert (tolerated.verdict, tolerated.outcome.close) == (Verdict.FAIL, None)
    assert loose.verdict == Verdict.NON_STRICT


async def test_the_observer_reads_a_call_that_passes_the_relay(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "_configuration", configuration._configuration)
    keys = tmp_path / "keys"
    opened = endpoint.log_keys(str(keys))
    async with serve(endpoint.converse, "127.0.0.1", 0, certfile=files.certfile, keyfile=files.keyfile, complexity=0) as server:
        proxy = Proxy(("127.0.0.1", server.port))
        await proxy.start()
        async with connect(f"voicestream://127.0.0.1:{proxy.port}/relayed", pin=files.pin) as call:
            await asyncio.sleep(0.5)
            await proxy.rebind()
            await asyncio.sleep(0.4)
            await call.close(ErrorCode.HANDLER_ERROR, "bye")
        await server.close(0)
        proxy.stop()
    opened.close()
    said = observe(proxy.packets, [keys])
    hello = [one.value for one in said if one.from_client and isinstance(one.value, Hello)]
    closes = [one.value for one in said if one.from_client and isinstance(one.value, Close)]
    assert hello[0].parameters.path == "/relayed"
    assert (closes[0].code, closes[0].reason) == (ErrorCode.HANDLER_ERROR, "bye")
    assert spoken_s(said, from_client=False) > 0.1
    assert not observe(proxy.packets, [tmp_path / "none"])


def test_cases_name_requirements_that_exist_and_cover_most_of_what_must_be() -> None:
    known = requirements()
    for case in CASES.values():
        assert set(case.requirements) <= set(known), case.name
    for pair in PAIR_CASES.values():
        assert set(pair.requirements) <= set(known), pair.name
    assert len(CASES) >= 150
    assert len(not_observed([])) < sum(one.is_must for one in known.values()) / 3


def test_cases_are_chosen_by_name_section_and_requirement() -> None:
    assert [case.name for case in chosen("server", ["datagram-of-3"])] == ["datagram-of-3"]
    assert {case.section.split(".")[0] for case in chosen("client", ["7"])} == {"7"}
    assert {"token-used"} <= {case.name for case in chosen("server", ["VS-11.3-4"])}
    assert not [case for case in chosen("server", quick=True) if case.slow]


def some_results() -> list[Result]:
    def result(name: str, verdict: Verdict, role: str = "server") -> Result:
        outcome = Outcome(behaviour=verdict, words="<b>\x01 & more", measured={"reaction_ms": 3.0})
        return Result(
            case=name, title=name, requirements=("VS-4.1-2",), subject="one", role=role, outcome=outcome, seconds=0.1, trace=["< datagram"]
        )

    return [
        result("good", Verdict.PASS), result("loose", Verdict.NON_STRICT), result("bad", Verdict.FAIL), result("none", Verdict.UNSUPPORTED),
        result("audio", Verdict.PASS, "pair"),
    ]  # fmt: skip


def test_results_come_out_as_table_json_junit_and_one_page(tmp_path: Path) -> None:
    results = some_results()
    assert by_requirement(results)["VS-4.1-2"] == {"one server": Verdict.FAIL, "one pair": Verdict.PASS}
    assert line(results[2]).startswith("FAIL")
    assert "VS-4.1-2" in summary(results)
    assert json.loads(to_json(results, {}))["results"][2]["verdict"] == "FAIL"
    write_junit(results, tmp_path / "junit.xml")
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert [(suite.get("tests"), suite.get("failures"), suite.get("skipped")) for suite in suites] == [("4", "1", "1"), ("1", "0", "0")]
    text = page(results, {"cases": 5})
    assert "&lt;b&gt;" in text
    assert "<b>\x01" not in text
    assert "&lt; datagram" in text
    assert requirements()["VS-4.1-2"].words.split(".")[0][:40] in text


def test_a_case_that_does_not_exist_is_127(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLE", "client")
    monkeypatch.setenv("TESTCASE", "no-such-case")
    assert endpoint.main() == UNSUPPORTED


def test_endpoints_are_named_in_a_file() -> None:
    assert load()["voicestream"].command[1:] == ("-m", "interop.endpoint")


@pytest.mark.parametrize("fault", faults.FAULTS.values(), ids=lambda fault: fault.name)
def test_seeded_faults_fit_the_package_and_some_case_names_their_requirement(fault: faults.Fault) -> None:
    text = (faults.ROOT / fault.path).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert any(fault.requirement in case.requirements for case in chosen("server", fault.cases, quick=True))


def test_our_endpoint_answers_every_vector_and_a_wrong_answer_is_named() -> None:
    all_of_them = list(vectors.read_vectors())
    answers = dict(vectors._answers("\n".join(endpoint_vectors.answers(vector.question() for vector in all_of_them))))
    found = {vector.test["id"]: vectors.judge(vector, answers.get(vector.test["id"])) for vector in all_of_them}
    assert {name: outcome.words for name, outcome in found.items() if outcome.verdict != Verdict.PASS} == {}
    assert len(found) > 400
    refused_one = next(vector for vector in all_of_them if vector.test["result"] == "invalid")
    other = vectors.judge(refused_one, {"result": "invalid", "error": "NO_ERROR"})
    assert (other.behaviour, other.close) == (Verdict.PASS, Verdict.FAIL)
    assert vectors.judge(refused_one, {"result": "valid", "expect": 1}).behaviour == Verdict.FAIL
    assert vectors.judge(refused_one, None).behaviour == Verdict.FAIL


async def test_a_live_server_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(meeting_module, "HANDSHAKE_SECONDS", 0.1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        options = suite._parser().parse_args(["--url", f"voicestream://127.0.0.1:{port}/x"])
        with pytest.raises(ValueError, match=f"127.0.0.1:{port} does not answer"):
            await suite._run(options)


async def test_a_live_server_is_tested_by_its_url(files: Files) -> None:
    async with serve(endpoint.converse, "127.0.0.1", 0, certfile=files.certfile, keyfile=files.keyfile, complexity=0) as server:
        words = ["--url", f"voicestream://127.0.0.1:{server.port}/live", "--cases", "short-integers,accept-other-frame-units,datagram-of-3"]
        results = await suite._run(suite._parser().parse_args(words))
        await server.close(0)
    assert {result.case: result.verdict for result in results} == {"short-integers": Verdict.PASS, "datagram-of-3": Verdict.PASS}


async def test_a_case_that_fails_while_the_machine_is_held_up_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []
    held_up = [0.0, 0.2, 0.3, 0.0]

    async def attempt(*_what: object) -> Result:
        tries.append(1.0)
        await asyncio.sleep(0)
        return Result(
            case="made", title="", requirements=("VS-4.1-2",), subject="own", role="server", seconds=0.0,
            outcome=Outcome(behaviour=Verdict.FAIL, words="goes on"),
        )  # fmt: skip

    async def watch(lags: list[float]) -> None:
        lags.append(held_up[len(tries)] if len(tries) < len(held_up) else 0.0)

    monkeypatch.setattr(runner, "_try", attempt)
    monkeypatch.setattr(runner, "_watch", watch)
    result = await run_case(None, made_case(attempt), "own")  # type: ignore[arg-type]
    assert len(tries) == 3
    assert result.outcome.words == "goes on"
    held_up[:] = [0.2] * 9
    tries.clear()
    result = await run_case(None, made_case(attempt), "own")  # type: ignore[arg-type]
    assert len(tries) == runner.TRIES
    assert result.outcome.words == "goes on (this machine was held up for 0.2 s)"


def test_integers_that_are_longer_than_they_need_be_are_named() -> None:
    short = message(MessageType.ACCEPT, number(1) + parameter(ParameterId.LOOKAHEAD_MS, number(60)))
    assert long_forms(short + b"what follows") == []
    body = number(1, 2) + parameter(ParameterId.LOOKAHEAD_MS, number(60, 4)) + parameter(ParameterId.PATH, b"@/")
    assert long_forms(message(MessageType.ACCEPT, body)) == ["Version 1 in 2 bytes", "value of parameter 0x08 60 in 4 bytes"]
