"""Section 8: clear, progress, finish."""

from __future__ import annotations

import asyncio
import itertools

from interop.cases.tools import REACTION, alive, audio_comes, failed, passed, refusals, refused, takes
from interop.model import Outcome, Unsupported, case
from interop.peers.meeting import Met
from voicestream.codepoints import ErrorCode
from voicestream.wire import (
    AudioFrame,
    Clear,
    Cleared,
    ClearedFrame,
    ClearFrame,
    Finish,
    Finished,
    Progress,
    ProgressFrame,
)

E = ErrorCode


def answers(peer: Met, since: int = 0) -> list[Clear]:
    """CLEARs of the far end as the sender of its track."""
    said = [value for _, value in peer.seen(Clear, since)] + [frame.message for _, frame in peer.seen(ClearFrame, since)]
    return [clear for clear in said if not clear.from_receiver]


def confirmations(peer: Met) -> list[Cleared]:
    return [value for _, value in peer.seen(Cleared)] + [frame.message for _, frame in peer.seen(ClearedFrame)]


async def _ask(peer: Met, number: int) -> Clear | None:
    """Ask the far end to stop talking; its CLEAR."""
    heard = peer.audio()
    peer.send(Clear(number=number, from_receiver=True, from_pts=heard[0].pts, to_pts=heard[-1].pts + 8))
    return await peer.until(lambda: next((clear for clear in answers(peer) if clear.number >= number), None), REACTION)


@case("VS-8.1-1", title="a request to stop talking: a CLEAR with its number; audio from then on carries it")
async def clear_is_answered(peer: Met) -> Outcome:
    await audio_comes(peer, 10)
    answer = await _ask(peer, 1)
    if answer is None:
        return failed(str(peer.end) if peer.end else "no CLEAR in answer")
    since = len(peer.log)
    await peer.until(lambda: True if len(peer.audio(since)) >= 10 else None, 4.0)
    after = peer.audio(since)
    if not after:
        raise Unsupported("it does not speak on after a clear")
    wrong = [frame for frame in after if frame.clear_number != 1 or frame.pts < answer.to_pts & 0xFFFF]
    if wrong:
        return failed(f"audio of pts {wrong[0].pts} with clear number {wrong[0].clear_number} after a clear 1 up to {answer.to_pts}")
    return passed(f"clear 1 up to pts {answer.to_pts}, {len(after)} frames behind it")


@case("VS-6.5-2", title="the first frame after a clear: has S")
async def first_frame_after_clear(peer: Met) -> Outcome:
    await audio_comes(peer, 5)
    if await _ask(peer, 1) is None:
        return failed("no CLEAR in answer")
    await peer.until(lambda: True if [frame for frame in peer.audio() if frame.clear_number == 1] else None, 4.0)
    await asyncio.sleep(0.2)
    after = [frame for frame in peer.audio() if frame.clear_number == 1]
    if not after:
        raise Unsupported("it does not speak on after a clear")
    first = min(after, key=lambda frame: frame.pts)
    return passed() if first.talkspurt_start else failed(f"pts {first.pts} has none")


@case("VS-8.1-5", title="a request with a number that is passed: is ignored")
async def old_request(peer: Met) -> Outcome:
    await audio_comes(peer, 5)
    for number in (1, 2):
        if await _ask(peer, number) is None:
            return failed(f"no CLEAR in answer to request {number}")
    since = len(peer.log)
    peer.send(Clear(number=1, from_receiver=True, from_pts=0, to_pts=(peer.audio() or [AudioFrame(pts=0, payload=b"x")])[-1].pts))
    await asyncio.sleep(0.4)
    if any(clear.number > 2 for clear in answers(peer, since)):
        return failed("a further clear")
    return await alive(peer)


@case("VS-8.2-1", "VS-8.2-3", title="a CLEAR of the sender: CLEARED with its number, heard no further than To Pts")
async def clear_is_confirmed(peer: Met) -> Outcome:
    for _ in range(8):
        peer.speak()
        await asyncio.sleep(0.02)
    begun = asyncio.get_running_loop().time()
    peer.send(Clear(number=1, from_pts=0, to_pts=peer.pts))
    told = await peer.until(lambda: next(iter(confirmations(peer)), None), REACTION)
    took = (asyncio.get_running_loop().time() - begun) * 1000
    if told is None:
        return failed(str(peer.end) if peer.end else "no CLEARED")
    if told.number != 1 or told.heard_pts > peer.pts:
        return failed(f"CLEARED {told.number}, heard {told.heard_pts}; the clear was 1 up to {peer.pts}")
    return passed(f"heard up to pts {told.heard_pts}", confirmed_ms=round(took, 1))


@case("VS-8.4-1", title="CLEARED while no report says that it came: is repeated in datagrams", opened=False)
async def cleared_is_repeated(peer: Met) -> Outcome:
    if not await peer.open(reports=False):
        return failed("no ACCEPT")
    peer.speak()
    peer.send(Clear(number=1, from_pts=0, to_pts=8))
    await asyncio.sleep(1.2)
    repeats = peer.seen(ClearedFrame)
    return passed(f"{len(repeats)} in 1.2 s") if len(repeats) >= 2 else failed(f"{len(repeats)} CLEARED frames in 1.2 s")


@case("VS-8.4-1", title="CLEARED after a report that names it: is not repeated any more")
async def cleared_stops(peer: Met) -> Outcome:
    peer.speak()
    peer.send(Clear(number=1, from_pts=0, to_pts=8))
    await asyncio.sleep(1.0)
    since = len(peer.log)
    await asyncio.sleep(1.0)
    late = peer.seen(ClearedFrame, since)
    return failed(f"{len(late)} more a second later") if len(late) > 2 else passed()


@case("VS-8.1-7", title="audio with a newer clear number before its CLEAR: is acted on, no error")
async def clear_is_overtaken(peer: Met) -> Outcome:
    for _ in range(4):
        peer.speak()
    for n in range(4):
        peer.speak(clear_number=1, talkspurt_start=n == 0)
    at = peer.pts - 32
    await asyncio.sleep(0.1)
    peer.send(Clear(number=1, from_pts=0, to_pts=at))
    told = await peer.until(lambda: next(iter(confirmations(peer)), None), REACTION)
    if told is None:
        return failed(str(peer.end) if peer.end else "no CLEARED")
    return await alive(peer)


takes(
    ("cleared-beyond", "VS-8.2-4", "CLEARED of a clear that was never made, heard far beyond",
     lambda p: p.send(Cleared(number=1, heard_pts=1 << 40))),
    ("progress-back", "VS-8.3-3", "PROGRESS that goes back",
     lambda p: p.send(*(Progress(played_pts=pts) for pts in (800, 8, 1 << 40, 0)))),
)  # fmt: skip
refusals(
    ("clear-1025-on", "VS-8.1-10", "a CLEAR 1025 numbers on", lambda p: p.send(Clear(number=1025, from_pts=0, to_pts=0))),
    ("request-too-far", "VS-8.1-10", "a request 20000 units beyond the audio sent",
     lambda p: p.send(Clear(number=1, from_receiver=True, from_pts=0, to_pts=20000))),
    code=E.PARAMETER_ERROR,
)  # fmt: skip


@case("VS-8.3-1", "VS-8.3-2", title="PROGRESS while it plays: comes, and does not go back", talk=True)
async def progress_comes(peer: Met) -> Outcome:
    await asyncio.sleep(2.0)
    told = [(at, value.played_pts) for at, value in peer.seen(Progress)]
    told += [(at, frame.message.played_pts) for at, frame in peer.seen(ProgressFrame)]
    told.sort()
    if peer.end is not None:
        return failed(str(peer.end))
    if not told:
        raise Unsupported("no PROGRESS: it plays nothing (a SHOULD)")
    # The stream and datagrams can overtake each other, but not by a second.
    if any(later < earlier - 400 for (_, earlier), (_, later) in itertools.pairwise(told)):
        return failed(f"{[pts for _, pts in told]}")
    return passed(f"up to pts {told[-1][1]}", progress_per_s=round(len(told) / 2, 1))


@case("VS-8.6-2", title="FINISH of what is spoken: FINISHED once, at its end")
async def finish_is_answered(peer: Met) -> Outcome:
    for _ in range(20):
        peer.speak()
        await asyncio.sleep(0.02)
    peer.send(Finish(pts=peer.pts))
    told = await peer.first(Finished, 5.0)
    if told is None:
        return failed(str(peer.end) if peer.end else "no FINISHED within 5 s")
    await asyncio.sleep(0.3)
    count = len(peer.seen(Finished))
    if count > 1:
        return failed(f"{count} FINISHED")
    return passed(f"played up to {told.played_pts}") if told.played_pts <= peer.pts else failed(f"played up to {told.played_pts}")


@case("VS-8.6-3", title="audio behind FINISH: TRACK_ERROR")
async def audio_after_finish(peer: Met) -> Outcome:
    peer.speak()
    peer.send(Finish(pts=peer.pts))
    await asyncio.sleep(0.2)
    peer.speak()
    return await refused(peer, E.TRACK_ERROR)


@case("VS-8.6-3", title="FINISH before audio that has come: TRACK_ERROR")
async def finish_before_audio(peer: Met) -> Outcome:
    for _ in range(4):
        peer.speak()
    await asyncio.sleep(0.2)
    peer.send(Finish(pts=8))
    return await refused(peer, E.TRACK_ERROR)


@case("VS-8.6-4", title="a second FINISH: UNEXPECTED_MESSAGE")
async def second_finish(peer: Met) -> Outcome:
    peer.speak()
    peer.send(Finish(pts=peer.pts))
    await asyncio.sleep(0.1)
    peer.send(Finish(pts=peer.pts))
    return await refused(peer, E.UNEXPECTED_MESSAGE)


@case("VS-8.6-4", title="FINISHED for a track that is not finished: UNEXPECTED_MESSAGE")
async def finished_unasked(peer: Met) -> Outcome:
    peer.send(Finished(played_pts=0))
    return await refused(peer, E.UNEXPECTED_MESSAGE)


@case("VS-8.7-1", title="a client that hears and says nothing for 6 s: keeps its path open", roles=("client",), slow=True)
async def path_is_kept(peer: Met) -> Outcome:
    before = len(peer.datagrams())
    await asyncio.sleep(6.0)
    return passed() if len(peer.datagrams()) > before else failed("no datagram in 6 s")
