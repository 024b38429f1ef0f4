/**
 * What the peer does in each case, and what it must see. A case throws when it does not see it. The far end talks on
 * track 0 for as long as the call lasts (saying back what it hears is enough), and sends back the events that it gets.
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

const alive = (s) => assert.equal(s.state, 'OPEN', `the session is ${s.state}: ${JSON.stringify(s.end ?? '')}`);
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

function reported(s, share = 0.8) {
  const d = s.flow.departures;
  return until(() => d.arrived >= share * (d.next - 30), 5, `reports of arrival, of ${share} of the datagrams`);
}

async function audio(s, { seconds }) {
  await talk(s, seconds);
  await heardEnough(s, seconds);
  await reported(s);
}

async function reports(s, { seconds }) {
  await talk(s, seconds);
  const d = s.flow.departures;
  await until(() => d.reports >= 4 * seconds, 5, `${4 * seconds} reports`);
  assert(d.roundTrip < 1, `a round trip of ${d.roundTrip} s`);
  await reported(s, 0.9);
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

/** Whether as much of it was mended as can be: the last frames of a talkspurt may be missed by nobody. */
function mendedEnough(s, lost) {
  const { counts, frames } = receiver(s);
  const held = new Set([...frames.keys()].map((pts) => pts % 65536));
  const mended = lost.filter((f) => held.has(f.pts)).length;
  s.note = `${mended} of ${lost.length} dropped frames mended: ${counts.REPAIR} by repair, ${counts.RETRANSMISSION} by retransmission, ${counts.COPY} by copies`;
  assert(lost.length >= 3, `only ${lost.length} frames were dropped`);
  assert(mended >= lost.length - Math.max(1, 0.2 * lost.length), s.note);
}

async function loss(s, { seconds }) {
  const lost = lossy(s);
  await talk(s, seconds);
  s.drop = () => false;
  await sleep(600);
  mendedEnough(s, lost);
}

async function clear(s) {
  await talk(s, 1);
  await until(() => heard(s) > 10, 3, 'audio');
  s.clearTheirs();
  await until(() => !receiver(s).unanswered, 2, 'CLEAR that answers the request');
  await until(() => receiver(s).counts.afterClear > 5, 3, 'audio after the clear');
  s.clearOurs();
  await until(() => sender(s).confirmed === sender(s).clearNumber, 2, 'CLEARED');
  assert(sender(s).heard <= sender(s).clearTo, 'CLEARED with more than there was');
  await talk(s, 0.5);
}

const LETTERS = [
  { kind: 'TEXT', payload: 'grüße' }, { kind: 'JSON', payload: '{"n": [1, 2.5, null]}' }, { kind: 'BYTES', payload: '\x00\x01\x02' },
  { kind: 'TEXT', payload: 'aligned', track: 0, pts: 8 }, { kind: 'BYTES', payload: 'x'.repeat(20000) },
];

async function events(s) {
  const came = [];
  s.on('event', (e) => came.push(e.payload.toString()));
  await talk(s, 0.3);
  for (const { kind, payload, ...aligned } of LETTERS) s.sendEvent({ kind: KINDS[kind], payload: Buffer.from(payload), ...aligned });
  const back = ({ kind, payload }) => came.some((c) => (kind === 'JSON' ? c.replaceAll(' ', '') === payload.replaceAll(' ', '') : c === payload));
  await until(() => LETTERS.every(back), 5, `all events back (${came.length} came)`);
}

async function finish(s) {
  await talk(s, 1.2);
  s.finish();
  await until(() => sender(s).finished, 5, 'FINISHED');
  if (receiver(s).finish !== null) await until(() => receiver(s).finishedSaid, 3, 'the end of what the far end says');
}

async function resume(s) {
  await talk(s, 1.2);
  const before = { generation: s.generation, id: s.id, end: receiver(s).end };
  s.cut();
  await sleep(700);
  await s.resume();
  await until(() => s.state === 'OPEN', 5, 'RESUMED');
  assert.equal(s.generation, before.generation + 1);
  await talk(s, 1.5);
  assert(receiver(s).end > before.end + 100, 'no audio after the resumption');
  await reported(s, 0.7);
  s.note = `${receiver(s).counts.RETRANSMISSION} retransmissions came, ${sender(s).retransmitted} were sent`;
}

/** Values of no meaning wherever they are skipped (section 12.1). */
async function unknown(s, { seconds }) {
  s.talking = true;
  for (let i = 0; i < 10 * seconds; i++) {
    const type = [0x3d, 0x5c, 0x7b, 0x7f][i % 4];
    s.again.push({ frame: 'UNKNOWN', type, payload: Buffer.alloc((i * 7) % 50, i) }, { frame: 'PADDING', size: 1 + (i % 5) }, { frame: 'PROBE', cluster: i, size: 9 });
    if (i % 5 === 0) s.say({ message: 'UNKNOWN', type: grease(i), payload: Buffer.alloc(i, 1) });
    if (i % 5 === 1) s.link.openUni(Buffer.concat([u16(0x4000 + grease(i + 3)), Buffer.alloc(100)]));
    if (i % 10 === 2) s.sendEvent({ kind: grease(i), payload: Buffer.from('of no known kind') });
    await sleep(100);
  }
  alive(s);
  await heardEnough(s, seconds);
  await reported(s);
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

/** Cases of a client: parameters of HELLO beside the usual ones, and what it does before it closes. */
export const CLIENT = {
  handshake: { run: () => sleep(300) }, audio: { run: audio }, reports: { run: reports }, loss: { run: loss }, clear: { run: clear },
  events: { run: events }, finish: { run: finish }, resume: { run: resume }, close: { run: (s) => talk(s, 0.5) }, settings: { run: settings },
  'going-away': { run: goingAway },
  'unknown-frames': { run: unknown, extra: { unknown: [[grease(0), Buffer.from('?')], [grease(100), Buffer.alloc(40)]] } },
};

const listen = (s, seconds) => until(() => s.end, seconds + 30, 'CLOSE of the client');

/** Cases of a server: what it does while the client has its own plans. It has to last until the client closes. */
export const SERVER = {
  handshake: () => {}, close: () => {},
  audio: async (s, { seconds }) => until(() => heard(s) >= 15 * seconds, seconds + 10, 'audio'),
  reports: async (s, { seconds }) => until(() => s.flow.departures.reports >= 4 * seconds, seconds + 10, 'reports'),
  loss: async (s, { seconds }) => {
    const lost = lossy(s);
    await until(() => s.end || lost.length >= 3 * seconds, 20, 'audio to drop');
    s.drop = () => false;
    await sleep(400);
    mendedEnough(s, lost);
  },
  clear: (s) => until(() => sender(s).clearNumber > 0 || receiver(s).clearNumber > 0, 20, 'a clear'),
  events: (s) => until(() => s.echoed > 0, 20, 'an event'),
  finish: async (s) => {
    await until(() => receiver(s).finishedSaid, 20, 'FINISH of the client');
    if (s.state === 'OPEN') s.finish();
  },
  resume: (s) => until(() => s.resumed && s.confirmed === 1, 20, 'RESUME and CONFIRM'),
  settings: (s) => until(() => s.settings, 20, 'SETTINGS'),
  'unknown-frames': (s) => unknown(s, { seconds: 1 }),
  'going-away': async (s) => {
    await sleep(1000);
    s.say({ message: 'GOING_AWAY', parameters: { reason: 'a rehearsal', retry_after_ms: 100 } });
  },
};

export { listen };
