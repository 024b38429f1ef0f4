/** Reports (sections 4.4 and 9): what came on a connection, and what became of what was sent. */
import { ProtocolError, tickDelta, unwrap } from './bytes.mjs';

const MEMORY = 1024;
const MAX_STATUSES = 255;

/** The datagrams that came on a connection. */
export class Arrivals {
  /** Full number to the one-way delay in ticks, modulo 2^16. */
  delays = new Map();
  newest = -1;
  arrival = 0;
  first = null;
  described = [-1, -1];
  late = Infinity;

  /** @returns {boolean} false when it has come before, or can have */
  add(number, sent, arrived) {
    const full = unwrap(number, Math.max(this.newest, 0));
    if (this.delays.has(full) || full < this.newest - MEMORY) return false;
    this.first ??= full;
    this.delays.set(full, (arrived - sent + 65536) % 65536);
    this.delays.delete(full - MEMORY);
    if (full <= this.described[1]) this.late = Math.min(this.late, full);
    if (full > this.newest) {
      this.newest = full;
      this.arrival = arrived;
    }
    return true;
  }

  /** Everything that no report has said, and again what only the last one has. */
  report(playout) {
    const first = Math.max(0, this.first - 16);
    const low = Math.max(first, Math.min(this.late, this.described[0]));
    const statuses = [];
    let delay = this.delays.get(this.newest);
    for (let n = this.newest - 1; n >= low && statuses.length < MAX_STATUSES; n--) {
      const own = this.delays.get(n);
      statuses.push(own === undefined ? null : tickDelta(own, delay));
      delay = own ?? delay;
    }
    this.described = [this.described[1], this.newest];
    this.late = Infinity;
    return { frame: 'REPORT', newest: this.newest % 65536, arrival: this.arrival, statuses, playout };
  }
}

/** The datagrams that were sent on a connection. */
export class Departures {
  sent = new Map();
  next = 0;
  arrived = 0;
  lost = 0;
  reports = 0;
  roundTrip = Infinity;

  /** @param {string[]} said what it says that must arrive @returns {number} its number, in full */
  add(now, said) {
    this.sent.set(this.next, { at: now, said, state: 'under way' });
    this.sent.delete(this.next - 4 * MEMORY);
    return this.next++;
  }

  /** @param {(said: string) => void} arrived is told what has arrived */
  report(frame, tickOfDatagram, now, arrived) {
    if (!this.next) throw new ProtocolError('REPORT_ERROR', 'nothing was sent');
    this.reports++;
    const newest = unwrap(frame.newest, this.next - 1);
    if (newest >= this.next || newest - frame.statuses.length < 0) throw new ProtocolError('REPORT_ERROR', `number ${newest} of ${this.next}`);
    const first = this.sent.get(newest);
    const hold = ((tickOfDatagram - frame.arrival + 65536) % 65536) / 4000;
    if (first && hold <= 8 && now - first.at - hold >= 0) this.roundTrip = Math.min(this.roundTrip, now - first.at - hold);
    [0, ...frame.statuses].forEach((status, i) => this.settle(newest - i, status !== null, i, arrived));
  }

  settle(number, came, older, arrived) {
    const one = this.sent.get(number);
    if (!one || one.state === 'arrived' || (!came && (older < 3 || one.state === 'lost'))) return;
    if (one.state === 'lost') this.lost--;
    one.state = came ? 'arrived' : 'lost';
    came ? this.arrived++ : this.lost++;
    if (came) one.said.forEach(arrived);
  }
}
