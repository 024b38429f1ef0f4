"""The netlab plug-in over loopback, with a stand-in for netlab's sound card: both roles, both directions, all sidecars."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path

import numpy as np

from voicestream import read_wav
from voicestream.audio.files import write_wav
from voicestream.audio.speech import sample_speech

PLUGIN = Path(__file__).resolve().parents[2] / "interop" / "netlab"
PATIENCE_S = 60

SOUND_CARD = '''
import asyncio, json, threading, time
import numpy as np
from voicestream import read_wav, write_wav

def load_speech(path, rate, seconds=None):
    return read_wav(path, sample_rate_hz=rate)[: None if seconds is None else int(seconds * rate)]

def write_json(path, value):
    open(path, "w").write(json.dumps(value))

class Meter:
    def start(self): pass
    def report(self): return {"cpu_percent": 1.0}

class Microphone:
    start_wall = None
    def __init__(self, samples, rate): self.samples, self.rate = samples, rate
    async def __aiter__(self):
        self.start_wall, size = time.time(), self.rate // 50
        for at in range(0, len(self.samples) - size + 1, size):
            await asyncio.sleep(0.02)
            yield self.samples[at : at + size]
    def save(self, path, **more): write_json(path, {"capture_start": self.start_wall, **more})

class Speaker:
    def __init__(self, rate, source):
        self.rate, self.source, self.played, self.concealed, self.stopping = rate, source, [], 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
    def run(self):
        while not self.stopping:
            pcm, concealed = self.source(self.rate // 50)
            self.played.append(pcm)
            self.concealed += concealed
            time.sleep(0.02)
    def close(self, wav, **more):
        self.stopping = True
        self.thread.join()
        write_wav(wav, np.concatenate(self.played), self.rate)
        write_json(wav + ".json", {"ticks": len(self.played), "concealed": self.concealed, **more})
'''


async def run(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, str(PLUGIN / "call.py"), *words, stderr=asyncio.subprocess.PIPE)


async def test_a_duplex_call_leaves_recordings_and_sidecars(tmp_path: Path) -> None:
    (tmp_path / "soundcard.py").write_text(SOUND_CARD)
    files = {name: str(tmp_path / name) for name in ("said.wav", "reply.wav", "out.wav", "heard.wav", "sent.json", "reply.json")}
    write_wav(files["said.wav"], sample_speech(1.5, 16000), 16000)
    write_wav(files["reply.wav"], sample_speech(1.5, 16000, seed=1), 16000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        place = ("--lab", str(tmp_path), "--port", str(free.getsockname()[1]))
    answer = ("--reply", files["reply.wav"], "--sent", files["reply.json"])
    server = await run("server", *place, "--host", "127.0.0.1", "--out", files["out.wav"], "--life", "60", *answer)
    try:
        assert server.stderr is not None
        assert b"listening" in await asyncio.wait_for(server.stderr.readline(), PATIENCE_S)
        said = ("--wav", files["said.wav"], "--sent", files["sent.json"], "--seconds", "1.5", "--out", files["heard.wav"])
        client = await run("client", *place, "--to", "127.0.0.1", *said)
        _, log = await asyncio.wait_for(client.communicate(), PATIENCE_S)
        assert client.returncode == 0, log.decode()
        (tmp_path / "out.wav.stop").touch()
        _, log = await asyncio.wait_for(server.communicate(), PATIENCE_S)
        assert server.returncode == 0, log.decode()
    finally:
        if server.returncode is None:
            server.kill()
    for sidecar in ("sent.json", "reply.json"):
        assert json.loads(Path(files[sidecar]).read_text())["capture_start"] > 0
    for recording in ("out.wav", "heard.wav"):
        assert np.abs(read_wav(files[recording])).max() > 1000
        assert json.loads(Path(files[recording] + ".json").read_text())["cpu_percent"] == 1.0


def test_the_templates_name_files_that_exist_and_words_that_netlab_knows() -> None:
    words = dict.fromkeys(("python", "here", "out", "life", "wav", "sent", "seconds", "reply", "reply_sent", "heard"), "x")
    for system in json.loads((PLUGIN / "systems.json").read_text()).values():
        for role in ("server", "client"):
            command = f"{system[role]} {system['duplex'][role]}".format(home=str(PLUGIN), **words).split()
            assert Path(command[1]).is_file()
            assert command[2] == role
