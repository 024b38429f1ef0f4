/** The side that calls, and comes back (sections 5.5 and 11.3). */
import { setTimeout as sleep } from 'node:timers/promises';
import { ProtocolError, clock } from './bytes.mjs';
import { Port } from './quic.mjs';
import { CODECS, ERRORS, errorName } from './registry.mjs';
import { Session } from './session.mjs';

const TRACK = { track: 0, codec: CODECS.OPUS, clock_rate_hz: 48000, channels: 1, send: true, receive: true, frame_units: 0 };
const MINE = { max_datagram_size: 1160, max_event_size: 1048576, lookahead_ms: 150, retain_ms: 30000 };
const SILENCE = 2;
const HANDSHAKE_MS = 10000;
const FOR_LATER = ['BUSY', 'INTERNAL_ERROR', 'GOING_AWAY'];

export class Client extends Session {
  /**
   * @param {{uri: string, host?: string, port?: number, pin?: string, ca?: string, token?: string, extra?: object}} target
   * @param {object} voice
   */
  constructor(target, voice) {
    super('client', voice);
    if (!target.pin && !target.ca) throw new Error('neither PIN nor CERT says what the server is');
    this.target = target;
    const url = new URL(target.uri);
    this.authority = url.host.replace(/:4433$/, '');
    this.inbox.limit = target.extra?.max_event_size ?? MINE.max_event_size;
    this.path = (url.pathname || '/') + url.search;
    this.to = { host: target.host ?? url.hostname, port: target.port ?? (Number(url.port) || 4433) };
    this.name = url.hostname;
  }

  call() {
    return this.dial('CALLING', () => ({
      message: 'HELLO', version: 1,
      parameters: { authority: this.authority, path: this.path, tracks: [TRACK], ...MINE, ...(this.target.token ? { token: Buffer.from(this.target.token) } : {}), ...this.target.extra },
    }));
  }

  /** Goes on with the session on a new connection from a new socket. */
  resume() {
    return this.dial('RESUMING', () => ({
      message: 'RESUME', version: 1,
      parameters: {
        session_id: this.id, resume_token: this.token, generation: this.generation, held: [...this.receivers.values()].map((r) => r.held()),
        next_event: this.inbox.next, authority: this.authority, path: this.path, ...(this.target.token ? { token: Buffer.from(this.target.token) } : {}),
      },
    }));
  }

  async dial(state, first) {
    this.port = await Port.open({ host: this.to.host.includes(':') ? '::1' : '0.0.0.0', ca: this.target.ca });
    const link = this.port.connect(/^[\d.]+$|:/.test(this.name) ? null : this.name, this.to);
    this.state = state;
    setTimeout(() => this.link === link && this.state === state && this.close('HANDSHAKE_TIMEOUT', 'no answer'), HANDSHAKE_MS).unref();
    this.attach(link);
    link.on('open', () => this.guard(() => {
      if (this.target.pin && link.pin !== this.target.pin) throw new Error(`another certificate than the pinned one: ${link.pin}`);
      this.say(first());
    }));
  }

  /** Dials until the session goes on, or has been lost for too long. */
  async comeBack() {
    const deadline = clock() + Math.min(this.lifetime_ms, 60000) / 1000;
    for (let pause = 0.2; this.state !== 'OPEN' && this.state !== 'CLOSED'; pause = Math.min(2 * pause, 3)) {
      if (clock() > deadline) return this.over({ code: 'PATH_LOST', reason: 'nobody answers', by: 'us' });
      this.port.destroy();
      await this.resume();
      for (const end = clock() + 2; clock() < end && this.state === 'RESUMING'; ) await sleep(20);
      if (this.state === 'RESUMING') this.state = 'DETACHED';
      if (this.state === 'DETACHED') await sleep(1000 * pause);
    }
    return undefined;
  }

  tick(now) {
    if (this.state === 'OPEN' && now - this.link.heardAt > SILENCE) {
      this.cut();
      this.comeBack();
    }
    super.tick(now);
  }

  /** The connection is gone, as if somebody had cut the cable. */
  cut() {
    this.port.destroy();
    this.detach('cut on purpose');
  }

  handshake(m) {
    if (m.message === 'ACCEPT' && this.state === 'CALLING') this.accepted(m);
    else if (m.message === 'RESUMED' && this.state === 'RESUMING') this.takenUp(m.parameters);
    else if (m.message === 'REJECT' && ['CALLING', 'RESUMING'].includes(this.state)) this.rejected(m);
    else throw new ProtocolError('UNEXPECTED_MESSAGE', `${m.message} while ${this.state}`);
  }

  accepted(m) {
    if (m.version !== 1) throw new ProtocolError('VERSION_UNSUPPORTED', `version ${m.version}`);
    const { tracks, session_id, resume_token, generation, lifetime_ms } = m.parameters;
    for (const t of tracks) {
      const same = t.track === TRACK.track && t.codec === TRACK.codec && t.clock_rate_hz === TRACK.clock_rate_hz;
      if (!same) throw new ProtocolError('TRACK_ERROR', 'a track that was not offered');
    }
    Object.assign(this, { id: session_id, token: resume_token, generation, lifetime_ms });
    this.limit(m.parameters);
    this.agree(tracks.map((t) => ({ ...t, send: t.receive, receive: t.send })));
    this.opened();
  }

  takenUp(p) {
    this.token = p.resume_token;
    this.generation = p.generation;
    this.state = 'CONFIRMING';
    this.say({ message: 'CONFIRM', generation: p.generation });
    this.resumed = true;
    catchUp(this, p);
    this.opened();
  }

  rejected(m) {
    const code = errorName(m.code);
    if (this.state === 'RESUMING' && FOR_LATER.includes(code)) {
      this.link.close(ERRORS.NO_ERROR);
      return this.detach(`refused for now: ${code}`);
    }
    this.over({ code, reason: m.parameters.reason ?? '', by: 'peer', rejected: true });
    return this.link.close(ERRORS.NO_ERROR);
  }
}

/** What is said again after a resumption, by either side. @param {Session} s @param {object} p parameters of the peer */
export function catchUp(s, p) {
  const now = clock();
  if (s.limits.max_datagram_size) s.flow.limit = s.limits.max_datagram_size;
  for (const sender of s.senders.values()) {
    sender.anchor = true;
    if (sender.confirmed < sender.clearNumber) {
      s.sayClear({ message: 'CLEAR', track: sender.track.track, number: sender.clearNumber, from_pts: 0, to_pts: sender.clearTo });
    }
    if (sender.finish !== null) s.say({ message: 'FINISH', track: sender.track.track, pts: sender.finish });
    s.owed.push(...sender.owed(p.held?.find((h) => h.track === sender.track.track), now));
  }
  for (const r of s.receivers.values()) {
    if (r.unanswered) s.sayClear({ message: 'CLEAR', track: r.track.track, number: r.clearNumber, from_receiver: true, from_pts: 0, to_pts: r.clearTo });
    else if (r.clearNumber) s.say({ message: 'CLEARED', track: r.track.track, number: r.clearNumber, heard_pts: Math.min(r.heard, r.clearTo) });
    if (r.finishedSaid) s.say({ message: 'FINISHED', track: r.track.track, played_pts: r.finish });
  }
  for (const stream of s.outbox.since(p.next_event)) s.link.openUni(stream);
}
