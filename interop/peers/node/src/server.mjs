/** The side that is called, and keeps sessions for those who come back (sections 5.5 and 11.3). */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { ProtocolError } from './bytes.mjs';
import { catchUp } from './client.mjs';
import { Port } from './quic.mjs';
import { CODECS, ERRORS } from './registry.mjs';
import { Session } from './session.mjs';

const LIFETIME_MS = 60000;
const HANDSHAKE_MS = 10000;
const MINE = { max_datagram_size: 1160, max_event_size: 1048576, lookahead_ms: 150, retain_ms: 30000 };

/** Emits "session" (session) for each one that is taken. */
export class Server extends EventEmitter {
  sessions = new Map();
  key = randomBytes(32);

  /** @param {{host: string, port: number, cert: string, key: string}} options @param {object} voice */
  async listen(options, voice) {
    this.port = await Port.open(options);
    this.port.on('link', (link) => new ServerSession(this, voice).wait(link));
    return this.port.local.port;
  }

  /** A token of a session, its generation and the identity that opened it. */
  seal(content) {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.key, nonce);
    return Buffer.concat([nonce, cipher.update(JSON.stringify(content)), cipher.final(), cipher.getAuthTag()]);
  }

  /** @returns {{id: string, generation: number, identity: string} | null} */
  unseal(token) {
    try {
      const cipher = createDecipheriv('aes-256-gcm', this.key, token.subarray(0, 12));
      cipher.setAuthTag(token.subarray(-16));
      return JSON.parse(Buffer.concat([cipher.update(token.subarray(12, -16)), cipher.final()]).toString());
    } catch {
      return null;
    }
  }
}

export class ServerSession extends Session {
  given = 0;
  confirmed = 0;

  /** @param {Server} server @param {object} voice */
  constructor(server, voice) {
    super('server', voice);
    this.server = server;
  }

  wait(link) {
    this.state = 'WAITING';
    this.attach(link);
    setTimeout(() => this.state === 'WAITING' && this.close('HANDSHAKE_TIMEOUT', 'nobody said HELLO'), HANDSHAKE_MS).unref();
  }

  handshake(m) {
    if (this.state === 'WAITING' && m.message === 'HELLO') this.called(m);
    else if (this.state === 'WAITING' && m.message === 'RESUME') this.cameBack(m);
    else if (this.state === 'CONFIRMING' && m.message === 'CONFIRM') this.confirm(m);
    else throw new ProtocolError('UNEXPECTED_MESSAGE', `${m.message} while ${this.state}`);
  }

  called({ version, parameters: p }) {
    if (version !== 1) return this.reject('VERSION_UNSUPPORTED', `version ${version}`);
    const tracks = p.tracks.filter((t) => t.codec === CODECS.OPUS && t.clock_rate_hz === 48000).map((t) => ({ ...t, send: t.receive, receive: t.send }));
    if (!tracks.length) return this.reject('TRACK_ERROR', 'no track of Opus');
    this.id = randomBytes(16);
    this.identity = createHash('sha256').update(p.token ?? '').digest('hex');
    this.limit(p);
    this.agree(tracks);
    this.say({ message: 'ACCEPT', version: 1, parameters: { tracks, ...MINE, session_id: this.id, resume_token: this.token(0), generation: 0, lifetime_ms: LIFETIME_MS } });
    this.server.sessions.set(this.id.toString('hex'), this);
    this.opened();
    return this.server.emit('session', this);
  }

  token(generation) {
    return this.server.seal({ id: this.id.toString('hex'), generation, identity: this.identity });
  }

  cameBack({ version, parameters: p }) {
    if (version !== 1) return this.reject('VERSION_UNSUPPORTED', `version ${version}`);
    const seal = this.server.unseal(p.resume_token);
    const identity = createHash('sha256').update(p.token ?? '').digest('hex');
    if (!seal || seal.id !== p.session_id.toString('hex') || seal.generation !== p.generation || seal.identity !== identity) return this.reject('TOKEN_INVALID');
    const session = this.server.sessions.get(seal.id);
    if (!session || session.state === 'CLOSED') return this.reject('SESSION_UNKNOWN');
    if (p.generation < session.confirmed) return this.reject('TOKEN_USED');
    const { link, control } = this;
    this.state = 'CLOSED';
    this.link = null;
    clearInterval(this.timer);
    return session.takeOver(link, control, p);
  }

  /** The session goes on on another connection. */
  takeOver(link, control, p) {
    const before = this.link;
    if (before && !before.closed) {
      before.close(ERRORS.SUPERSEDED, 'the session goes on on another connection');
    }
    clearTimeout(this.expiry);
    this.attach(link);
    this.control = control;
    this.confirmed = p.generation;
    if (this.given === p.generation || !this.next) {
      this.given = p.generation + 1;
      this.next = this.token(this.given);
    }
    this.state = 'CONFIRMING';
    const held = [...this.receivers.values()].map((r) => r.held());
    this.say({ message: 'RESUMED', parameters: { resume_token: this.next, generation: this.given, held, next_event: this.inbox.next } });
    this.resumed = true;
    this.asked = p;
    catchUp(this, p);
    this.guard(() => this.streamCame(control.id, Buffer.alloc(0), false));
  }

  confirm(m) {
    if (m.generation !== this.given) throw new ProtocolError('TOKEN_INVALID', `generation ${m.generation}`);
    this.confirmed = this.given;
    this.opened();
  }

  reject(code, reason = '') {
    this.say({ message: 'REJECT', code: ERRORS[code], parameters: reason ? { reason } : {} }, true);
    const { link } = this;
    setTimeout(() => link.close(ERRORS[code], reason), 200);
    this.over({ code, reason, by: 'us', rejected: true });
  }

  detach(why) {
    if (this.state === 'WAITING') return this.over({ code: 'PATH_LOST', reason: why, by: 'us' });
    this.expiry = setTimeout(() => this.over({ code: 'PATH_LOST', reason: why, by: 'us' }), LIFETIME_MS);
    this.expiry.unref();
    return super.detach(why);
  }
}
