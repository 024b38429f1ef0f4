/**
 * What the peer does in each case, and what it must see. A case throws when it does not see it. The far end has the same
 * plan: it talks on track 0, and where a case says so finishes; events are sent back. The client closes.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { clock, u16 } from './bytes.mjs';
import { decodeDatagram } from './frames.mjs';
import { KINDS, grease } from './registry.mjs';

/** Waits for something. @param {() => unknown} seen @param {number} seconds @param {string} what */
export async function until(seen, seconds, what) {
  const end = clock() + seconds;
  while (!seen()) {
    assert(clock() < end, `not seen in ${seconds} s: ${what}`);
    await sleep(20);
  }
}

const alive = (s) => assert(!s.end || s.end.code === 'NO_ERROR', `the session is over: ${JSON.stringify(s.end)}`);
const receiver = (s) => s.receivers.get(0);
const sender = (s) => s.senders.get(0);
const heard = (s) => ['AUDIO', 'RETRANSMISSION', 'COPY', 'REPAIR'].reduce((sum, k) => sum + receiver(s).counts[k], 0);

async function talk(s, seconds) {
  s.talking = true;
  await sleep(seconds * 1000);
  alive(s);
}

/** A busy machine may take longer for it. */
const heardEnough = (s, seconds) => until(() => heard(s) >= 15 * seconds, 10, `${15 * seconds} frames of audio`);

/** Not a share of them: a far end on a busy machine drops what it is too late for. */
function reported(s, count) {
  const d = s.flow.departures;
  return until(() => d.arrived >= count, 10, `reports that ${count} datagrams have arrived`);
}

/** Ends what is said, and waits for as long as the far end still talks, if it means to end. */
async function sayLast(s, seconds = 4) {
  s.talking = false;
  await sleep(50);
  s.finish();
  await until(() => sender(s).finished || s.end, 15, 'FINISHED');
  await until(() => receiver(s).finishedSaid || s.end, seconds, '').catch(() => {});
}

async function audio(s, { seconds }) {
  await talk(s, seconds);
  await heardEnough(s, seconds);
  await reported(s, 15 * seconds);
  await sayLast(s, seconds + 2);
}

async function reports(s, { seconds }) {
  await talk(s, seconds);
  const d = s.flow.departures;
  await until(() => d.reports >= 4 * seconds, 5, `${4 * seconds} reports`);
  assert(d.roundTrip < 1, `a round trip of ${d.roundTrip} s`);
  await reported(s, 15 * seconds);
  await sayLast(s, seconds + 2);
}

/** Drops one of twelve incoming datagrams, and remembers the audio in them; one of seventeen that leave as well. */
function lossy(s) {
  const lost = [];
  let n = 0;
  s.drop = (data) => {
    if (++n % 12 !== 5 || data.length < 20) return false;
    lost.push(...decodeDatagram(data).frames.filter((f) => f.frame === 'AUDIO'));
    return true;
  };
  s.flow.lose = (number) => number % 17 === 9;
  return lost;
}

/** Whether half of it was mended, at least: on a busy machine much comes too late, and a last frame may be missed by nobody. */
function mendedEnough(s, lost) {
  const { counts, frames } = receiver(s);
  const held = new Set([...frames.keys()].map((pts) => pts % 65536));
  const mended = lost.filter((f) => held.has(f.pts)).length;
  s.note = `${mended} of ${lost.length} dropped frames mended: ${counts.REPAIR} by repair, ${counts.RETRANSMISSION} by retransmission, ${counts.COPY} by copies`;
  assert(lost.length >= 3, `only ${lost.length} frames were dropped`);
  assert(mended >= lost.length / 2, s.note);
}

async function loss(s, { seconds }) {
  const lost = lossy(s);
  await talk(s, seconds);
  await until(() => s.end || lost.length >= 3, 10, 'audio to drop');
  s.drop = () => false;
  await sleep(500);
  mendedEnough(s, lost);
  s.flow.lose = () => false;
  await sayLast(s, seconds + 2);
}

async function clear(s) {
  await talk(s, 1);
  await until(() => heard(s) > 10, 15, 'audio');
  s.clearTheirs();
  await until(() => !receiver(s).unanswered, 10, 'CLEAR that answers the request');
  await until(() => receiver(s).counts.afterClear > 5, 10, 'audio after the clear');
  s.clearOurs();
  await until(() => sender(s).confirmed === sender(s).clearNumber, 10, 'CLEARED');
  assert(sender(s).heard <= sender(s).clearTo, 'CLEARED with more than there was');
  await talk(s, 0.5);
}

const LETTERS = [
  { kind: 'TEXT', payload: 'grüße' }, { kind: 'JSON', payload: '{"n": [1, 2.5, null]}' }, { kind: 'BYTES', payload: '\x00\x01\x02' },
  { kind: 'TEXT', payload: 'aligned', track: 0, pts: 8 }, { kind: 'BYTES', payload: 'x'.repeat(20000) },
];

async function events(s) {
  await talk(s, 0.3);
  for (const { kind, payload, ...aligned } of LETTERS) s.sendEvent({ kind: KINDS[kind], payload: Buffer.from(payload), ...aligned });
  const back = ({ kind, payload }) => s.letters.map((e) => e.payload.toString()).some((c) => (kind === 'JSON' ? c.replaceAll(' ', '') === payload.replaceAll(' ', '') : c === payload));
  await until(() => LETTERS.every(back), 15, `all events back (${s.letters.length} came)`);
}

async function finish(s, { seconds }) {
  await talk(s, seconds);
  await sayLast(s, seconds + 3);
  if (receiver(s).finish !== null) await until(() => receiver(s).finishedSaid || s.end, 3, 'the end of what the far end says');
}

/** Cuts its connection, comes back from a new socket, and comes back as well when the path goes dead by itself. */
async function resume(s, { seconds }) {
  await talk(s, 1.2);
  const before = { generation: s.generation, end: receiver(s).end };
  s.cut();
  await sleep(700);
  await s.comeBack();
  assert(s.generation > before.generation, `generation ${s.generation} after ${before.generation}`);
  await talk(s, Math.max(1.5, seconds));
  await until(() => s.state === 'OPEN' && receiver(s).end > before.end + 100, 15, 'audio after the resumption');
  await reported(s, 10);
  s.note = `generation ${s.generation}; ${receiver(s).counts.RETRANSMISSION} retransmissions came, ${sender(s).retransmitted} were sent`;
}

/** Values of no meaning wherever they are skipped (section 12.1). */
async function unknown(s, { seconds }) {
  s.talking = true;
  for (let i = 0; i < 10 * seconds && !s.end; i++) {
    const type = [0x3d, 0x5c, 0x7b, 0x7f][i % 4];
    s.again.push({ frame: 'UNKNOWN', type, payload: Buffer.alloc((i * 7) % 50, i) }, { frame: 'PADDING', size: 1 + (i % 5) }, { frame: 'PROBE', cluster: i, size: 9 });
    if (i % 5 === 0) s.say({ message: 'UNKNOWN', type: grease(i), payload: Buffer.alloc(i, 1) });
    if (i % 5 === 1) s.link.openUni(Buffer.concat([u16(0x4000 + grease(i + 3)), Buffer.alloc(100)]));
    if (i % 10 === 2) s.sendEvent({ kind: grease(i), payload: Buffer.from('of no known kind') });
    await sleep(100);
  }
  alive(s);
  await heardEnough(s, seconds);
  await reported(s, 15 * seconds);
  await sayLast(s, seconds + 2);
}

async function settings(s) {
  await talk(s, 0.3);
  s.say({ message: 'SETTINGS', parameters: { lookahead_ms: 200, max_rate_bps: 64000 } });
  await talk(s, 1);
}

async function goingAway(s) {
  let told = false;
  s.on('going-away', () => (told = true));
  s.talking = true;
  await until(() => told, 10, 'GOING_AWAY');
}

/** Two talkspurts with a second of silence between them. */
async function silence(s) {
  await talk(s, 0.6);
  sender(s).pause();
  await sleep(1000);
  sender(s).silent = false;
  await sleep(600);
  await sayLast(s);
}

async function limits(s) {
  await until(() => s.letters.length, 10, 'an event');
  assert.deepEqual(s.letters.map((e) => e.payload.toString()), ['small']);
}

const greased = { unknown: [[grease(0), Buffer.from('?')], [grease(100), Buffer.alloc(40)]] };

/** Cases of a client: what it does before it closes, and how its HELLO and its close differ from the usual ones. */
export const CLIENT = {
  handshake: { run: () => sleep(300) }, audio: { run: audio }, reports: { run: reports }, loss: { run: loss }, clear: { run: clear },
  events: { run: events }, finish: { run: finish }, resume: { run: resume }, rebind: { run: (s, o) => talk(s, o.seconds + 1).then(() => reported(s, 15 * o.seconds)) },
  close: { run: () => sleep(300), close: ['HANDLER_ERROR', 'bye'] }, settings: { run: settings }, 'going-away': { run: goingAway }, dtx: { run: silence },
  limits: { run: limits, extra: { max_event_size: 1024 } }, grease: { run: unknown, extra: greased }, 'unknown-frames': { run: unknown, extra: greased },
};

const closed = (s) => until(() => s.end, 60, 'CLOSE of the client');

/** Cases of a server: what it does while the client has its own plans, and with which code it expects the client to close. */
export const SERVER = {
  handshake: { run: closed }, audio: { run: audio }, reports: { run: reports }, loss: { run: loss }, grease: { run: unknown }, 'unknown-frames': { run: unknown },
  clear: { run: (s) => until(() => sender(s).clearNumber > 0 || receiver(s).clearNumber > 0, 20, 'a clear') },
  events: { run: (s) => until(() => s.echoed > 0, 20, 'an event') },
  finish: {
    run: async (s) => {
      await until(() => receiver(s).finishedSaid, 20, 'FINISH of the client');
      if (!s.end) await sayLast(s);
    },
  },
  resume: { run: (s) => until(() => s.resumed && s.confirmed >= 1, 40, 'RESUME and CONFIRM') },
  rebind: { run: closed },
  close: { run: closed, code: 'HANDLER_ERROR' },
  settings: { run: (s) => until(() => s.settings, 20, 'SETTINGS') },
  dtx: { run: async (s) => {
    await until(() => receiver(s).finishedSaid, 20, 'FINISH of the client');
    assert(heard(s) >= 45, `${heard(s)} frames were heard`);
    if (!s.end) await sayLast(s);
  } },
  limits: {
    run: (s) => {
      assert.throws(() => s.sendEvent({ kind: KINDS.TEXT, payload: Buffer.from('x'.repeat(3000)) }), RangeError);
      s.sendEvent({ kind: KINDS.TEXT, payload: Buffer.from('small') });
    },
  },
  'going-away': {
    run: async (s) => {
      await sleep(1000);
      s.say({ message: 'GOING_AWAY', parameters: { reason: 'a rehearsal', retry_after_ms: 100 } });
    },
  },
};

export { closed };
