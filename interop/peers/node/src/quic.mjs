/**
 * QUIC over a UDP socket, by the native binding of Cloudflare's quiche in @matrixai/quic. A Port has a socket and its
 * connections; a Link is one connection and what VoiceStream needs of it: datagrams, the control stream, event streams.
 */
import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import dgram from 'node:dgram';
import { native as load } from './native.mjs';
import { ALPN } from './registry.mjs';

const quiche = await load();
const WINDOW = 1 << 20;
const QUEUED_DATAGRAMS = 64;

/** @param {{cert?: string, key?: string, ca?: string}} pem */
function configuration({ cert, key, ca }) {
  const pems = (text) => (text ? [Buffer.from(text)] : null);
  const config = quiche.Config.withBoringSslCtx(Boolean(ca), false, ca ? Buffer.from(ca) : null, pems(key), pems(cert), null);
  config.setApplicationProtos([ALPN]);
  config.setMaxIdleTimeout(30000);
  config.setMaxRecvUdpPayloadSize(1452);
  config.setMaxSendUdpPayloadSize(1252);
  config.setInitialMaxData(4 * WINDOW);
  config.setInitialMaxStreamDataBidiLocal(WINDOW);
  config.setInitialMaxStreamDataBidiRemote(WINDOW);
  config.setInitialMaxStreamDataUni(WINDOW + 4096); // the largest event and its header
  config.setInitialMaxStreamsBidi(4);
  config.setInitialMaxStreamsUni(64);
  config.setMaxAckDelay(25);
  config.enableDgram(true, 1024, QUEUED_DATAGRAMS);
  config.enablePacing(false);
  return config;
}

/** A UDP socket with its connections. Emits "link" for each new one that a client opens. */
export class Port extends EventEmitter {
  links = new Map();

  /** @param {{host?: string, port?: number, cert?: string, key?: string, ca?: string}} options */
  static async open({ host = '127.0.0.1', port = 0, ...pem }) {
    const self = new Port();
    self.server = Boolean(pem.cert && pem.key);
    self.config = configuration(pem);
    self.socket = dgram.createSocket(host.includes(':') ? 'udp6' : 'udp4');
    await new Promise((done, failed) => self.socket.once('error', failed).bind(port, host, done));
    const { address, port: bound } = self.socket.address();
    self.local = { host: address, port: bound };
    self.socket.on('message', (data, from) => self.receive(data, { host: from.address, port: from.port }));
    self.socket.on('error', () => {});
    return self;
  }

  /** @param {string} name for TLS @param {{host: string, port: number}} to */
  connect(name, to) {
    const scid = randomBytes(quiche.MAX_CONN_ID_LEN);
    if (process.env.SSLKEYLOGFILE) this.config.logKeys();
    const link = new Link(this, quiche.Connection.connect(name, scid, this.local, to, this.config));
    this.links.set(scid.toString('hex'), link);
    link.flush();
    return link;
  }

  receive(data, from) {
    let header;
    try {
      header = quiche.Header.fromSlice(data, quiche.MAX_CONN_ID_LEN);
    } catch {
      return;
    }
    const id = Buffer.from(header.dcid).toString('hex');
    const link = this.links.get(id) ?? (this.server && header.ty === quiche.Type.Initial ? this.accept(header, id, from) : null);
    link?.receive(data, from);
  }

  accept(header, id, from) {
    if (!quiche.versionIsSupported(header.version)) {
      const out = Buffer.alloc(1200);
      const size = quiche.negotiateVersion(header.scid, header.dcid, out);
      this.socket.send(out.subarray(0, size), from.port, from.host);
      return null;
    }
    const scid = randomBytes(quiche.MAX_CONN_ID_LEN);
    if (process.env.SSLKEYLOGFILE) this.config.logKeys();
    const link = new Link(this, quiche.Connection.accept(scid, null, this.local, from, this.config));
    this.links.set(scid.toString('hex'), link);
    this.links.set(id, link);
    this.emit('link', link);
    return link;
  }

  forget(link) {
    for (const [id, other] of this.links) if (other === link) this.links.delete(id);
  }

  /** Everything ends, without a word to anybody. */
  destroy() {
    if (this.gone) return;
    this.gone = true;
    for (const link of this.links.values()) link.stop();
    this.links.clear();
    this.socket.close();
  }
}

/**
 * One connection. Emits "open", "datagram" (data), "stream" (id, data, end), "reset" (id) and, once, "closed" with
 * {app, code, reason}.
 */
export class Link extends EventEmitter {
  waiting = new Map();
  established = false;
  closed = false;
  timer = null;
  heardAt = performance.now() / 1000;

  constructor(port, conn) {
    super();
    this.port = port;
    this.conn = conn;
    this.nextUni = port.server ? 3 : 2;
    if (process.env.SSLKEYLOGFILE) conn.setKeylog(process.env.SSLKEYLOGFILE);
  }

  receive(data, from) {
    if (this.closed) return;
    this.heardAt = performance.now() / 1000;
    try {
      this.conn.recv(data, { from, to: this.port.local });
    } catch {
      // quiche keeps what was wrong for localError, which flush looks at
    }
    this.pump();
  }

  pump() {
    if (!this.established && this.conn.isEstablished()) {
      this.established = true;
      this.emit('open');
    }
    for (const id of this.established ? [...this.conn.readable()] : []) this.read(id);
    for (let data; !this.closed && (data = this.datagram()); ) this.emit('datagram', data);
    for (const [id, parts] of this.waiting) this.write(id, parts);
    this.flush();
  }

  datagram() {
    try {
      const data = this.conn.dgramRecvVec();
      return data ? Buffer.from(data) : null;
    } catch {
      return null;
    }
  }

  read(id) {
    const chunk = Buffer.alloc(16384);
    for (;;) {
      let got;
      try {
        got = this.conn.streamRecv(id, chunk);
      } catch {
        this.emit('reset', id);
        return;
      }
      if (!got) return;
      this.emit('stream', id, Buffer.from(chunk.subarray(0, got[0])), got[1]);
      if (got[1]) return;
    }
  }

  /** Certificate of the server, as the SHA-256 of its DER form. */
  get pin() {
    const [first] = this.conn.peerCertChain() ?? [];
    return first ? createHash('sha256').update(first).digest('hex') : null;
  }

  /** The largest VoiceStream datagram that can leave now. */
  get room() {
    return this.conn.dgramMaxWritableLen() ?? 0;
  }

  /** @returns {boolean} whether it left: what a full queue would hold up is dropped here (section 3.2) */
  sendDatagram(data) {
    if (this.closed || !this.established || this.conn.dgramSendQueueLen() >= QUEUED_DATAGRAMS / 2) return false;
    try {
      this.conn.dgramSend(data);
    } catch {
      return false;
    }
    return true;
  }

  sendStream(id, data, end = false) {
    if (this.closed) return;
    const parts = this.waiting.get(id) ?? [];
    parts.push({ data, end });
    this.waiting.set(id, parts);
    this.write(id, parts);
    this.flush();
  }

  openUni(data) {
    const id = this.nextUni;
    this.nextUni += 4;
    this.sendStream(id, data, true);
    return id;
  }

  write(id, parts) {
    while (parts.length) {
      const { data, end } = parts[0];
      let sent;
      try {
        sent = this.conn.streamSend(id, data, end);
      } catch (error) {
        if (!/Limit|Blocked/.test(String(error.message))) parts.length = 0;
        return;
      }
      if (sent === null) return;
      if (sent < data.length) {
        parts[0] = { data: data.subarray(sent), end };
        return;
      }
      parts.shift();
    }
    this.waiting.delete(id);
  }

  stopReading(id, code) {
    try {
      this.conn.streamShutdown(id, quiche.Shutdown.Read, code);
    } catch {
      // it has ended already
    }
  }

  /** Closes with an application error. */
  close(code, reason = '') {
    if (this.closed) return;
    try {
      this.conn.close(true, code, Buffer.from(reason));
    } catch {
      // closing already
    }
    this.flush();
  }

  flush() {
    if (this.closed) return;
    const out = Buffer.alloc(1500);
    for (;;) {
      let sent;
      try {
        sent = this.conn.send(out);
      } catch {
        break;
      }
      if (!sent) break;
      const [size, { to }] = sent;
      this.port.socket.send(Buffer.from(out.subarray(0, size)), to.port, to.host);
    }
    if (this.conn.isClosed()) this.end();
    else this.arm();
  }

  arm() {
    clearTimeout(this.timer);
    const wait = this.conn.timeout();
    if (wait === null) return;
    this.timer = setTimeout(() => {
      this.conn.onTimeout();
      this.pump();
    }, Math.max(1, wait));
  }

  /** No more packets, and no word of it. */
  stop() {
    this.closed = true;
    clearTimeout(this.timer);
  }

  end() {
    if (this.closed) return;
    this.stop();
    this.port.forget(this);
    const error = this.conn.peerError() ?? this.conn.localError();
    const why = error ? { app: error.isApp, code: error.errorCode, reason: Buffer.from(error.reason).toString() } : {};
    this.emit('closed', { app: false, code: null, reason: this.conn.isTimedOut() ? 'idle' : '', ...why });
  }
}
