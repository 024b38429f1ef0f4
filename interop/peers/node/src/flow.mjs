/** What flows in datagrams on one connection: numbers, reports, repeats, and packing frames (sections 4.1, 8.4 and 9). */
import { clock, tick } from './bytes.mjs';
import { encodeDatagram, encodeFrame } from './frames.mjs';
import { Arrivals, Departures } from './reports.mjs';

const LARGEST = 1160;
const REPORT_EVERY = 0.05;
const REPORT_WITHIN = 0.07;
const REPEAT_FOR = 5;

export class Flow {
  arrivals = new Arrivals();
  departures = new Departures();
  reportDue = null;
  reported = -1;
  /** What must be repeated until it has arrived: key to {frame, until, at, times}. */
  repeats = new Map();
  sentAt = clock();
  /** Whether a datagram that leaves is lost on purpose. */
  lose = () => false;

  /** @param {import('./quic.mjs').Link} link @param {() => object[]} playout entries for reports */
  constructor(link, playout) {
    this.link = link;
    this.playout = playout;
    this.limit = LARGEST;
  }

  /** @returns {boolean} whether the datagram is to be acted on */
  came(datagram, now) {
    if (!this.arrivals.add(datagram.number, datagram.send_tick, tick(now))) return false;
    const asks = !datagram.frames.length || datagram.frames.some((f) => f.frame !== 'REPORT' && f.frame !== 'PADDING');
    if (asks) this.reportDue ??= now + REPORT_WITHIN;
    return true;
  }

  reportCame(frame, datagram, now) {
    this.departures.report(frame, datagram.send_tick, now, (key) => this.repeats.delete(key));
  }

  /** Says a message of clear or progress in datagrams until one has arrived; a newer one takes its place. */
  repeat(message) {
    const { message: frame, ...fields } = message;
    for (const key of this.repeats.keys()) if (key.startsWith(`${frame}.${fields.track}.`)) this.repeats.delete(key);
    const key = `${frame}.${fields.track}.${Object.values(fields).join('.')}`;
    this.repeats.set(key, { frame: { frame, ...fields }, until: clock() + REPEAT_FOR, at: -1, times: 0 });
  }

  /** An anchor goes beside audio until it has arrived (section 4.8). */
  anchor(frame) {
    this.repeats.set(`ANCHOR.${frame.track}.${frame.pts}`, { frame, until: Infinity, at: -1, times: 0, withAudio: true });
  }

  /** Repeats that leave now; when nothing else does, only the urgent ones. */
  repeatsNow(now, riding, audio) {
    const out = [];
    for (const [key, r] of this.repeats) {
      if (now > r.until) this.repeats.delete(key);
      const pause = r.withAudio ? (audio ? 0 : Infinity) : r.frame.frame === 'CLEAR' && r.times < 5 ? 0.015 : riding ? 0.04 : 0.1;
      if (now - r.at < pause) continue;
      Object.assign(r, { at: now, times: r.times + 1 });
      out.push({ ...r.frame, tag: key });
    }
    return out;
  }

  /**
   * Sends what there is: audio each in a datagram of its own, what rides in the first that has room.
   * @param {object[]} audio @param {object[]} extra
   */
  send(now, audio, extra) {
    const riding = audio.length > 0 || extra.length > 0;
    const rest = [...this.repeatsNow(now, riding, audio.length > 0), ...extra];
    const pending = this.reportDue !== null && this.arrivals.newest >= 0;
    if (pending && (now >= this.reportDue || ((riding || rest.length) && now - this.reported >= REPORT_EVERY))) rest.unshift(this.report(now));
    const groups = audio.map((f) => ({ frames: [f], size: 4 + encodeFrame(f, true).length }));
    for (const f of rest) {
      const size = encodeFrame(f, false).length;
      let group = groups.find((g) => g.size + size <= Math.min(this.limit, LARGEST) && g.frames.length < 60);
      if (!group) groups.push((group = { frames: [], size: 4 }));
      group.frames.unshift(f);
      group.size += size;
    }
    for (const { frames } of groups) this.datagram(now, frames);
  }

  report(now) {
    this.reportDue = null;
    this.reported = now;
    return this.arrivals.report(this.playout());
  }

  /** One datagram now, whatever is in it. */
  datagram(now, frames) {
    const number = this.departures.next % 65536;
    const data = encodeDatagram({ number, send_tick: tick(now), frames: frames.map(({ tag, ...f }) => f) });
    if (!this.lose(number) && !this.link.sendDatagram(data)) return;
    this.sentAt = now;
    this.departures.add(now, frames.map((f) => f.tag).filter(Boolean));
  }
}
