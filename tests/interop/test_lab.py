"""The laboratory: its link between real namespaces, its NAT, its judge's alignment and its report."""

from __future__ import annotations

import csv
import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from interop.lab.align import RATE, realign, segment_lags
from interop.lab.calls import LAB, Call, kept, load_systems, run
from interop.lab.carry import COLUMNS
from interop.lab.carry import run as carry
from interop.lab.comparison import BEGIN, END, comparison, write_into
from interop.lab.hosts import why_not
from interop.lab.nat import Nat
from interop.lab.report import markdown, means, page
from voicestream.audio.speech import sample_speech
from voicestream.testing.profile import NetworkProfile


@pytest.fixture(scope="module")
def lab() -> None:
    """Real namespaces, or a skip with the reason."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


ECHO_SERVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("10.77.0.1", 5000))
while True:
    data, peer = s.recvfrom(2000); s.sendto(data, peer)
"""
ECHO_CLIENT = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
for i in range(3):
    s.sendto(bytes([i]) * 100, ("10.77.0.1", 5000))
    assert s.recvfrom(2000)[0] == bytes([i]) * 100
sys.exit(7)
"""


def udp(source: int, target: int) -> bytes:
    """An IPv4 packet with a UDP datagram and a right checksum (over a pseudo header of zeros, good enough for a difference)."""
    body = struct.pack("!HHHH", source, target, 12, 0) + b"abcd"
    total = sum(struct.unpack("!6H", body))
    total = (total & 0xFFFF) + (total >> 16)
    body = body[:6] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + body[8:]
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 32, 0, 0, 64, 17, 0, b"\x0a\x4d\x00\x02", b"\x0a\x4d\x00\x01") + body


def ports(packet: bytes) -> tuple[int, int]:
    return struct.unpack_from("!HH", packet, 20)  # type: ignore[return-value]


def checksum_holds(packet: bytes) -> bool:
    total = sum(struct.unpack("!6H", packet[20:32]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def test_before_its_first_time_the_nat_is_not_there() -> None:
    nat = Nat([5.0])
    assert nat.outward(1.0, udp(4433, 53)) == udp(4433, 53)
    assert nat.inward(1.0, udp(53, 4433)) == udp(53, 4433)


def test_each_time_gives_a_flow_another_port_and_answers_to_the_old_one_are_lost() -> None:
    nat = Nat([5.0, 10.0])
    first, second = nat.outward(6.0, udp(4433, 53)), None
    assert checksum_holds(first)
    assert ports(first)[0] != 4433
    assert nat.outward(7.0, udp(4433, 53)) == first
    answer = nat.inward(8.0, udp(53, ports(first)[0]))
    assert answer is not None
    assert ports(answer) == (53, 4433)
    assert checksum_holds(answer)
    second = nat.outward(11.0, udp(4433, 53))
    assert ports(second)[0] not in (4433, ports(first)[0])
    assert nat.inward(11.5, udp(53, ports(first)[0])) is None


def test_two_flows_never_share_a_port() -> None:
    nat = Nat([0.0])
    outside = [ports(nat.outward(1.0, udp(port, 53)))[0] for port in range(1024, 5024)]
    assert len(set(outside)) == len(outside)


@pytest.mark.usefixtures("lab")
def test_packets_cross_with_the_delay_of_the_profile_and_the_log_tells_them(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(ECHO_SERVER)
    (tmp_path / "client.py").write_text(ECHO_CLIENT)
    log = tmp_path / "link.csv"
    profile = NetworkProfile.from_json({"both": {"delay_ms": 30}})
    python = sys.executable
    status = carry(profile, f"{python} {tmp_path}/server.py", f"{python} {tmp_path}/client.py", head_start=1.0, timeout=30, log=str(log))
    assert status == 7
    with log.open() as file:
        rows = [row for row in csv.DictReader(file) if row["bytes"] == "128"]
    assert tuple(rows[0]) == COLUMNS
    assert [row["direction"] for row in rows].count("b2a") == 3
    assert {(row["verdict"], row["delay_ms"]) for row in rows} == {("ok", "30.00")}


@pytest.mark.usefixtures("lab")
def test_a_server_that_ends_early_ends_the_run() -> None:
    assert carry(NetworkProfile(), "exit 3", "sleep 30", head_start=5.0, timeout=30) == 125


@pytest.mark.usefixtures("lab")
def test_a_call_is_made_once_and_kept_until_it_is_wanted_again(tmp_path: Path) -> None:
    systems = tmp_path / "systems.json"
    systems.write_text(json.dumps({"one": {"server": "sleep 20; : {out}", "client": "echo said {wav} {seconds} >> {home}/calls; exit 4"}}))
    call = Call(
        system="one", profile=LAB / "profiles" / "clean-40.json", seed=1, clip=tmp_path / "a b.wav", reply=None, seconds=2, work=tmp_path
    )
    assert not kept(call)
    assert run(call, load_systems(systems)["one"]) == 4
    assert kept(call)
    assert Path(call.file("log")).read_text().endswith("laboratory: exit status 4\n")
    assert (tmp_path / "calls").read_text() == f"said {tmp_path}/a b.wav 2\n"


def test_a_recording_is_found_at_its_delay_and_laid_beside_what_was_said() -> None:
    ref = sample_speech(8.0, RATE).astype(np.float32) / 32768
    # The card began 1 s after the first word; a jump of the delay from 100 to 160 ms after 4 s.
    first, jump = np.zeros(RATE // 10, np.float32), np.zeros(RATE * 6 // 100, np.float32)
    heard = np.concatenate([first, ref[: 4 * RATE], jump, ref[4 * RATE :]])[RATE:]
    lags, total = segment_lags(ref, heard, RATE, skip=2.0, max_delay=1.0)
    assert len(lags) == total > 5
    assert {round(lag * 1e3 / RATE) for start, lag in lags if start < 3 * RATE} == {100}
    assert {round(lag * 1e3 / RATE) for start, lag in lags if start >= 4 * RATE} == {160}
    aligned = realign(ref, heard, RATE, lags, skip=2.0)
    last = slice(3 * RATE, 5 * RATE)
    assert np.allclose(aligned[last], ref[2 * RATE :][last], atol=1e-4)


def test_noise_is_not_found() -> None:
    ref = sample_speech(6.0, RATE).astype(np.float32) / 32768
    lags, total = segment_lags(ref, np.random.default_rng(1).normal(0, 0.1, 6 * RATE).astype(np.float32), 0, skip=1.0, max_delay=1.0)
    assert total > 3
    assert not lags


def test_the_report_means_over_seeds_and_marks_the_best() -> None:
    common = {"profile": "loss5-40", "direction": "up", "clip": "a<b"}
    rows = [
        {**common, "system": "ours", "seed": 1, "pesq": 4.0, "delay_ms_p50": 100.0},
        {**common, "system": "ours", "seed": 2, "pesq": 4.4, "delay_ms_p50": 120.0},
        {**common, "system": "theirs", "seed": 1, "pesq": 1.5, "delay_ms_p50": 90.0},
        {**common, "system": "theirs", "seed": 2, "failed": "nothing <was> played"},
    ]
    table = means(rows)
    assert [(entry["system"], entry["calls"], round(entry["pesq"], 2), entry["pesq_least"]) for entry in table] == [
        ("ours", 2, 4.2, 4.0),
        ("theirs", 1, 1.5, 1.5),
    ]
    assert "| ours " in markdown(table)
    html = page(table, rows)
    assert "<td class=best>4.20</td>" in html
    assert "<td class=best>90</td>" in html
    assert "nothing &lt;was&gt; played" in html


@pytest.mark.parametrize("path", sorted((LAB / "profiles").glob("*.json")), ids=lambda path: path.stem)
def test_every_link_can_be_read(path: Path) -> None:
    NetworkProfile.from_json(path)


def compared(system: str, profile: str, pesq: float | None, delay: float | None, unheard: float = 0.0) -> dict[str, object]:
    return {"system": system, "profile": profile, "pesq": pesq, "delay_ms_p50": delay, "unheard": unheard}


def test_the_comparison_tells_losses_as_plainly_as_wins(tmp_path: Path) -> None:
    table = [
        compared("voicestream", "clean", 4.5, 60), compared("aiortc", "clean", 4.55, 150), compared("moq", "clean", 4.3, 70),
        compared("voicestream", "bad", 3.0, 300, 0.02), compared("aiortc", "bad", None, None), compared("moq", "bad", 3.4, 200),
    ]  # fmt: skip
    text = comparison(table, "Once.")
    lines = text.splitlines()
    assert lines[0].startswith("Once. ")
    assert lines[-2] == "| clean | 4.50 @ 60 ms, 0.0 % | 4.55 @ 150 ms, 0.0 % | 4.30 @ 70 ms, 0.0 % | quality equal, delay won |"
    assert lines[-1] == "| bad | 3.00 @ 300 ms, 2.0 % | no call | 3.40 @ 200 ms, 0.0 % | quality lost, delay lost |"
    readme = tmp_path / "README.md"
    readme.write_text(f"before {BEGIN} old {END} after")
    write_into(readme, text)
    assert readme.read_text() == f"before {BEGIN}\n{text}\n{END} after"
    (tmp_path / "empty.md").write_text("")
    with pytest.raises(ValueError, match="no place"):
        write_into(tmp_path / "empty.md", text)
