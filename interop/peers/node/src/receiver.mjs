/** The receiver of a track: what it holds, what it misses, what it plays, its clears (sections 6, 8, 10 and 16). */
import { ProtocolError, unwrap } from './bytes.mjs';
import { frameUnits } from './opus.mjs';
import { Repairer } from './repair.mjs';

const UNITS_A_SECOND = 400;
const DELAY = 0.1;
const KEEP = 4000;
const ASK_AGAIN = 0.04;
const ASK_TIMES = 5;

export class TrackReceiver {
  highest = 0;
  end = 0;
  clearNumber = 0;
  senderNumber = 0;
  clearTo = 0;
  asked = new Map();
  frames = new Map();
  repairer = new Repairer();
  playhead = 0;
  playedAt = null;
  finish = null;
  finishedSince = null;
  finishedSaid = false;
  started = false;
  unanswered = false;
  heard = 0;
  /** CLEARED for a clear that audio has shown before its CLEAR came. */
  shown = null;
  counts = { AUDIO: 0, RETRANSMISSION: 0, COPY: 0, REPAIR: 0, duplicate: 0, void: 0, late: 0, afterClear: 0 };

  constructor(track) {
    this.track = track;
  }

  anchor(pts) {
    if (pts >= 2 ** 60) throw new ProtocolError('TRACK_ERROR', 'an anchor beyond all pts');
    this.highest = Math.max(this.highest, Number(pts));
  }

  /** AUDIO, RETRANSMISSION or COPY. */
  media(f, now) {
    const full = unwrap(f.pts, this.highest);
    this.insert(f.frame, full, f, now);
    this.solve(now);
  }

  insert(kind, full, f, now) {
    const units = frameUnits(this.track, f.payload);
    this.highest = Math.max(this.highest, full);
    if (this.finish !== null && full + units > this.finish) throw new ProtocolError('TRACK_ERROR', 'audio behind the end');
    if (!this.current(f.clear_number, full)) return this.counts.void++;
    if (this.frames.has(full)) return this.counts.duplicate++;
    if (full + units <= this.playhead) this.counts.late++;
    this.counts[kind]++;
    if (this.clearNumber) this.counts.afterClear++;
    this.end = Math.max(this.end, full + units);
    this.frames.set(full, { pts: full, units, arrived: now, ...f });
    return null;
  }

  /** Whether audio of this clear number still counts (section 8.1); newer audio clears what is older. */
  current(bits, full) {
    let number = this.senderNumber - 1;
    while (((number % 4) + 4) % 4 !== bits) number++;
    if (number > this.senderNumber && (full < this.clearTo || full < this.end)) return false;
    if (number > this.senderNumber) this.senderNumber = number;
    if (number > this.clearNumber) {
      this.drop(number, this.end);
      this.shown = { message: 'CLEARED', track: this.track.track, number, heard_pts: Math.min(this.heard, this.clearTo) };
    }
    return number === this.clearNumber && full >= this.clearTo;
  }

  drop(number, to) {
    this.clearNumber = number;
    this.clearTo = Math.max(this.clearTo, to);
    for (const [pts, f] of this.frames) if (f.clear_number !== number % 4 || pts < this.clearTo) this.frames.delete(pts);
    this.repairer.kept = [];
    this.heard = Math.floor(this.playhead);
    this.playhead = Math.max(this.playhead, Math.min(this.clearTo, this.end));
  }

  repair(f, now) {
    this.repairer.keep(unwrap(f.newest_pts, this.highest), f);
    this.solve(now);
  }

  solve(now) {
    for (const f of this.repairer.solve((pts) => this.frames.get(pts))) {
      if (f.pts < this.clearTo || f.pts < this.playhead - 400) continue;
      try {
        this.insert('REPAIR', f.pts, f, now);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
      }
    }
  }

  get sorted() {
    return [...this.frames.values()].sort((a, b) => a.pts - b.pts);
  }

  /**
   * Ranges that are missing: what lies before a frame that does not start a talkspurt, and the frame behind one that
   * does not end its talkspurt, though another has started since (the one with E can be lost).
   */
  holes(from) {
    const out = [];
    let end = Math.max(from, this.clearTo);
    let ended = true;
    for (const f of this.sorted) {
      if (f.pts > end && !f.talkspurt_start) out.push([end, f.pts - end]);
      else if (f.pts > end && !ended) out.push([end, Math.min(f.pts - end, 48)]);
      if (f.pts + f.units > end) ended = f.talkspurt_end;
      end = Math.max(end, f.pts + f.units);
    }
    if (this.finish !== null && end < this.finish) out.push([end, this.finish - end]);
    return out;
  }

  /** @returns {object | null} a MISSING frame */
  missing(now) {
    const wanted = this.holes(Math.floor(this.playhead)).filter(([first, units]) => {
      const asked = this.asked.get(first + units) ?? { times: 0, at: -1 };
      if (asked.times >= ASK_TIMES || now - asked.at < ASK_AGAIN) return false;
      this.asked.set(first + units, { times: asked.times + 1, at: now });
      return true;
    });
    if (this.asked.size > 500) this.asked.clear();
    if (!wanted.length) return null;
    return { frame: 'MISSING', track: this.track.track, ranges: wanted.slice(0, 32).map(([first, units]) => [first % 65536, Math.min(units, 32767)]) };
  }

  /** Plays on. */
  play(now) {
    let left = this.playedAt === null ? 0 : (now - this.playedAt) * UNITS_A_SECOND;
    this.playedAt = now;
    for (const f of this.sorted) {
      if (f.pts + f.units <= this.playhead) {
        if (f.pts + f.units < this.playhead - KEEP) this.frames.delete(f.pts);
        continue;
      }
      if (!this.started || (f.pts > this.playhead && f.talkspurt_start)) {
        if (now - f.arrived < DELAY) return;
        this.started = true;
        this.playhead = Math.max(this.playhead, f.pts);
      }
      const rest = f.pts + f.units - this.playhead;
      this.playhead = left >= rest ? f.pts + f.units : this.playhead + left; // exactly the end: sums of fractions may miss it
      left -= rest;
      if (left <= 0) return;
    }
  }

  /** @returns {object | null} FINISHED, once */
  finished(now) {
    if (this.finish === null || this.finishedSaid) return null;
    if (this.playhead < this.finish && (this.playhead < this.end || now - this.finishedSince < 0.5)) return null;
    this.playhead = Math.max(this.playhead, this.finish);
    this.finishedSaid = true;
    return { message: 'FINISHED', track: this.track.track, played_pts: this.finish };
  }

  finishing(pts, now, again) {
    if (this.finish !== null && again && pts === this.finish) return;
    if (this.finish !== null) throw new ProtocolError('UNEXPECTED_MESSAGE', 'a second FINISH');
    if (pts < this.end) throw new ProtocolError('TRACK_ERROR', 'FINISH before audio that has come');
    this.finish = pts;
    this.finishedSince = now;
  }

  /** Begins a clear; the request. */
  request() {
    const from = Math.floor(this.playhead);
    this.unanswered = true;
    this.drop(Math.max(this.clearNumber, this.senderNumber) + 1, this.end);
    return { message: 'CLEAR', track: this.track.track, number: this.clearNumber, from_receiver: true, from_pts: Math.min(from, this.clearTo), to_pts: this.clearTo };
  }

  /** CLEAR of the sender. @returns {object | null} CLEARED */
  clear(m) {
    if (m.to_pts >= 2 ** 60) throw new ProtocolError('TRACK_ERROR', 'a clear beyond all pts');
    if (m.number > this.clearNumber + 1024) throw new ProtocolError('PARAMETER_ERROR', 'a clear number beyond all reason');
    const news = m.number > this.senderNumber || m.number > this.clearNumber || m.to_pts > this.clearTo;
    if (m.number < this.clearNumber || !(news || this.unanswered)) return null;
    this.unanswered = false;
    const heard = m.number > this.clearNumber ? null : this.heard;
    this.senderNumber = Math.max(this.senderNumber, m.number);
    if (m.number > this.clearNumber || m.to_pts > this.clearTo) this.drop(m.number, m.to_pts);
    if (heard !== null) this.heard = heard;
    return { message: 'CLEARED', track: this.track.track, number: m.number, heard_pts: Math.min(this.heard, m.to_pts) };
  }

  /** What a resumption says of this track. */
  held() {
    let next = Math.max(this.clearTo, Math.floor(this.playhead));
    const ranges = [];
    for (const f of this.sorted) {
      const end = f.pts + f.units;
      if (end <= next) continue;
      if (f.pts <= next || (!ranges.length && f.talkspurt_start)) next = end;
      else if (ranges.length && ranges.at(-1)[0] + ranges.at(-1)[1] === f.pts) ranges.at(-1)[1] += f.units;
      else ranges.push([f.pts, f.units]);
    }
    return { track: this.track.track, next_pts: next, ranges };
  }

  entry() {
    return { track: this.track.track, playhead: Math.floor(this.playhead) % 65536, level_units: Math.max(0, this.end - Math.floor(this.playhead)), target_units: DELAY * UNITS_A_SECOND };
  }
}
