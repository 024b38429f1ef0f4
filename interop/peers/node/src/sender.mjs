/** The sender of a track: audio, repair, retransmissions, anchors, clears (sections 4, 6, 8 and 10). */
import { ProtocolError, unwrap } from './bytes.mjs';
import { flagsOf } from './frames.mjs';
import { frameUnits } from './opus.mjs';
import { repairSymbol, runsOf } from './repair.mjs';

const UNIT = 0.0025;
const RETAIN_UNITS = 12000;
const REPAIR_EVERY = 3;
const REPAIR_WINDOW = 6;
const CLEAR_AHEAD = 4000;

export class TrackSender {
  next = 0;
  sentEnd = 0;
  clearNumber = 0;
  clearTo = 0;
  confirmed = 0;
  finish = null;
  finished = false;
  /** pts to frames, the oldest first */
  sent = new Map();
  spurtStarts = true;
  key = 0;
  retransmitted = 0;
  heard = null;
  anchor = false;
  index = 0;
  silent = false;
  ending = false;

  /** @param {object} track @param {{spurts: Buffer[][]}} voice talkspurts of packets, a pause after each */
  constructor(track, voice) {
    this.track = track;
    this.packets = voice.spurts.flatMap((spurt) => [...spurt.map((payload, i) => ({ payload, end: i === spurt.length - 1 })), ...Array(voice.pauseFrames).fill(null)]);
  }

  /**
   * The audio that is due, of a microphone that has been on since `began`.
   * @returns {object[]} AUDIO frames with their full pts
   */
  due(now, began) {
    const out = [];
    const present = Math.floor((now - began) / UNIT);
    if (this.finish !== null) return out;
    if (this.next < present - 400) {
      this.next = present - (present % 8);
      this.spurtStarts = true;
    }
    while (this.next <= present && this.finish === null) {
      const item = this.silent ? null : this.packets[this.index++ % this.packets.length];
      if (!item) {
        this.next += 8;
        this.spurtStarts = true;
        continue;
      }
      out.push(this.take({ ...item, end: item.end || this.ending }, now));
      this.silent ||= this.ending;
      this.ending = false;
    }
    return out;
  }

  /** Silence after one more frame, which ends the talkspurt. */
  pause() {
    this.ending = true;
  }

  take({ payload, end }, now) {
    const units = frameUnits(this.track, payload);
    const frame = {
      frame: 'AUDIO', track: this.track.track, full: this.next, pts: this.next % 65536, units, payload, clear_number: this.clearNumber % 4,
      talkspurt_start: this.spurtStarts, talkspurt_end: end, at: now,
    };
    if (this.next - this.sentEnd >= RETAIN_UNITS) this.anchor = true;
    this.next += units;
    this.sentEnd = this.next;
    this.spurtStarts = end;
    this.sent.set(frame.full, frame);
    const [oldest] = this.sent.keys();
    if (oldest < this.next - RETAIN_UNITS) this.sent.delete(oldest);
    return frame;
  }

  /** Full pts of the next frame must go with audio until it has arrived (section 4.8). */
  anchorFrame(full) {
    return { frame: 'ANCHOR', track: this.track.track, pts: full };
  }

  /** A repair frame now and then. */
  repair() {
    const frames = [...this.sent.values()].slice(-REPAIR_WINDOW).reverse();
    if (this.sent.size % REPAIR_EVERY || frames.length < 2 || frames.some((f) => f.full < this.clearTo)) return null;
    this.key = (this.key + 1) % 256;
    const sources = frames.map((f) => ({ pts: f.full, flags: flagsOf(f), payload: f.payload }));
    const runs = runsOf(sources.map((s) => s.pts));
    return { frame: 'REPAIR', track: this.track.track, key: this.key, newest_pts: frames[0].pts, runs, symbol: repairSymbol(this.key, sources) };
  }

  /** Answers to MISSING. @param {[number, number][]} ranges */
  answers(ranges, now) {
    const out = [];
    for (const [first, units] of ranges) {
      const from = unwrap(first, this.sentEnd);
      out.push(...this.resend((f) => f.full + f.units > from && f.full < from + units && now - (f.again ?? 0) > 0.03, now));
    }
    return out.slice(0, 64);
  }

  resend(wanted, now) {
    const frames = [...this.sent.values()].filter((f) => f.full >= this.clearTo && wanted(f));
    for (const f of frames) f.again = now;
    this.retransmitted += frames.length;
    return frames.map((f) => ({ ...f, frame: 'RETRANSMISSION' }));
  }

  /** What a resumed peer does not hold. @param {{next_pts: number, ranges: [number, number][]} | undefined} held */
  owed(held, now) {
    const holds = (f) => f.full + f.units <= (held?.next_pts ?? 0) || (held?.ranges ?? []).some(([a, n]) => f.full >= a && f.full + f.units <= a + n);
    return this.resend((f) => !holds(f), now);
  }

  /** Clears what was sent; the CLEAR message. */
  clear() {
    return this.adopt(this.clearNumber + 1, 0);
  }

  adopt(number, to) {
    this.clearNumber = number;
    const from = this.clearTo;
    this.clearTo = Math.max(to, this.next);
    this.next = this.clearTo;
    this.spurtStarts = true;
    return { message: 'CLEAR', track: this.track.track, number, from_pts: Math.min(from, this.clearTo), to_pts: this.clearTo };
  }

  /** The receiver asks for silence. @returns {object | null} the CLEAR that answers */
  requested(m) {
    if (m.number > this.clearNumber + 1024 || m.to_pts > this.sentEnd + CLEAR_AHEAD) throw new ProtocolError('PARAMETER_ERROR', 'a clear beyond all reason');
    if (m.number > this.clearNumber || (m.number === this.clearNumber && m.to_pts > this.clearTo)) return this.adopt(m.number, m.to_pts);
    return null;
  }

  /** @param {object} m CLEARED */
  cleared(m) {
    this.confirmed = Math.max(this.confirmed, m.number);
    this.heard = m.heard_pts;
  }
}
