/** A session: its state, its tracks, its messages and events, over one connection after another (sections 5, 7, 8, 11, 13). */
import { EventEmitter } from 'node:events';
import { ProtocolError, Rate, clock } from './bytes.mjs';
import { MessageParser, encodeMessage } from './messages.mjs';
import { decodeDatagram } from './frames.mjs';
import { Flow } from './flow.mjs';
import { Inbox, Outbox } from './post.mjs';
import { TrackReceiver } from './receiver.mjs';
import { TrackSender } from './sender.mjs';
import { streamType } from './events.mjs';
import { ERRORS, errorName } from './registry.mjs';

const TICK_MS = 10;
const KEEPALIVE = 5;
const WHILE_OPEN = ['SETTINGS', 'CLEAR', 'CLEARED', 'PROGRESS', 'FINISH', 'FINISHED', 'GOING_AWAY', 'CLOSE'];

/**
 * Emits "open", "event" (event), "settings", "going-away" (parameters), "cleared" (message), "finished" (track),
 * "detached" (why) and, once, "closed" ({code, reason, by}).
 */
export class Session extends EventEmitter {
  state = 'IDLE';
  link = null;
  flow = null;
  senders = new Map();
  receivers = new Map();
  settings = null;
  limits = {};
  rates = { datagrams: new Rate('datagrams', 1000, 2), messages: new Rate('messages', 200, 10), events: new Rate('events', 200, 10) };
  /** The events that came last. */
  letters = [];
  talking = false;
  resumed = false;
  began = null;
  /** Frames that leave with the next datagrams: answers and repair. */
  again = [];
  /** Retransmissions that a resumed peer is owed, sent at twice the speed of the media (section 11.3). */
  owed = [];
  counts = { datagrams: 0, dropped: 0, unknownFrames: 0, unknownMessages: 0, ignoredStreams: 0, recovered: 0 };
  /** Whether an incoming datagram is dropped on purpose. */
  drop = () => false;

  /** @param {'client' | 'server'} role @param {{spurts: Buffer[][], pauseFrames: number}} voice */
  constructor(role, voice) {
    super();
    this.role = role;
    this.voice = voice;
    this.inbox = new Inbox();
    this.outbox = new Outbox();
    this.timer = setInterval(() => this.guard(() => this.tick(clock())), TICK_MS);
  }

  /** Takes a connection; what came on the one before is over. */
  attach(link) {
    this.link = link;
    this.flow = new Flow(link, () => [...this.receivers.values()].map((r) => r.entry()));
    this.control = { id: this.role === 'client' ? 0 : null, parser: new MessageParser(), ended: false };
    this.early = [];
    this.streams = new Map();
    const own = (act) => (...args) => (this.link === link ? this.guard(() => act(...args)) : undefined);
    link.on('datagram', own((data) => this.datagramCame(data)));
    link.on('stream', own((id, data, end) => this.streamCame(id, data, end)));
    link.on('reset', own((id) => this.resetCame(id)));
    link.on('closed', own((why) => this.linkClosed(why)));
  }

  /** What a peer did wrong ends the session with its code. */
  guard(act) {
    try {
      return act();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.close(error.code, error.reason);
    }
  }

  get open() {
    return this.state === 'OPEN' || (this.role === 'server' && this.state === 'CONFIRMING');
  }

  /** Tracks as this side sees them: it sends where it sends. @param {object[]} tracks */
  agree(tracks) {
    for (const t of tracks) {
      if (t.send) this.senders.set(t.track, new TrackSender(t, this.voice));
      if (t.receive) this.receivers.set(t.track, new TrackReceiver(t));
    }
  }

  /** @param {object} parameters of the peer */
  limit(parameters) {
    Object.assign(this.limits, parameters);
    if (this.limits.max_datagram_size) this.flow.limit = this.limits.max_datagram_size;
  }

  opened() {
    this.state = 'OPEN';
    this.began ??= clock();
    for (const early of this.early.splice(0)) this.guard(early);
    this.emit('open');
  }

  // --- what comes

  datagramCame(data) {
    if (this.state === 'CLOSED' || this.drop(data)) return void this.counts.dropped++;
    if (this.role === 'client' && !this.open) return void (this.early.length < 64 && this.early.push(() => this.datagramCame(data)));
    if (!this.open) throw new ProtocolError('AUDIO_BEFORE_ACCEPT', 'a datagram before ACCEPT');
    const now = clock();
    this.rates.datagrams.one(now);
    const datagram = decodeDatagram(data);
    if (!this.flow.came(datagram, now)) return;
    this.counts.datagrams++;
    for (const frame of datagram.frames) this.act(frame, datagram, now);
  }

  act(f, datagram, now) {
    if (f.frame === 'REPORT') this.flow.reportCame(f, datagram, now);
    else if (f.frame === 'UNKNOWN') this.counts.unknownFrames++;
    else if (['CLEAR', 'CLEARED', 'PROGRESS'].includes(f.frame)) this.trackMessage({ ...f, message: f.frame });
    else if (f.frame === 'MISSING') this.again.push(...this.senderOf(f.track).answers(f.ranges, now));
    else if (f.frame === 'ANCHOR') this.receiverOf(f.track).anchor(f.pts);
    else if (f.frame === 'REPAIR') this.receiverOf(f.track).repair(f, now);
    else if (['AUDIO', 'RETRANSMISSION', 'COPY'].includes(f.frame)) this.receiverOf(f.track).media(f, now);
  }

  senderOf(track) {
    return this.senders.get(track) ?? wrongTrack(track);
  }

  receiverOf(track) {
    return this.receivers.get(track) ?? wrongTrack(track);
  }

  streamCame(id, data, end) {
    if (this.state === 'CLOSED') return;
    if (id & 2) return void this.eventCame(id, data, end);
    if (this.role === 'server') this.control.id ??= id;
    if (id !== this.control.id) throw new ProtocolError('CONTROL_STREAM_ERROR', 'a second bidirectional stream');
    for (const message of this.control.parser.feed(data)) {
      if (this.state === 'CLOSED') return;
      this.messageCame(message);
    }
    if (end && this.state !== 'CLOSED' && this.state !== 'DETACHED') throw new ProtocolError('CONTROL_STREAM_ERROR', 'the control stream ended without CLOSE');
  }

  resetCame(id) {
    this.streams.delete(id);
    if (id === this.control.id && this.state !== 'CLOSED') throw new ProtocolError('CONTROL_STREAM_ERROR', 'the control stream was reset');
  }

  eventCame(id, data, end) {
    if (!this.open && this.role === 'client') return void this.early.push(() => this.eventCame(id, data, end));
    const so = Buffer.concat([this.streams.get(id) ?? Buffer.alloc(0), data]);
    const type = streamType(so);
    if (type !== null && type !== 1) {
      if (!this.streams.has(id)) this.counts.ignoredStreams++;
      this.streams.set(id, Buffer.alloc(0));
      return void (end || this.link.stopReading(id, ERRORS.NO_ERROR));
    }
    this.streams.set(id, so);
    const event = this.inbox.stream(so, end);
    if (!end) return;
    this.rates.events.one(clock());
    this.streams.delete(id);
    for (const one of event) {
      this.letters = [...this.letters, one].slice(-100);
      this.emit('event', one);
    }
  }

  messageCame(m) {
    this.rates.messages.one(clock());
    if (m.message === 'UNKNOWN') return void this.counts.unknownMessages++;
    if (this.open && this.state === 'OPEN' && WHILE_OPEN.includes(m.message)) this.openMessage(m);
    else if (m.message === 'CLOSE' && !['WAITING', 'CONFIRMING'].includes(this.state)) this.closeCame(m);
    else this.handshake(m);
  }

  openMessage(m) {
    if (m.message === 'CLOSE') this.closeCame(m);
    else if (m.message === 'SETTINGS') {
      this.limit(m.parameters);
      this.settings = m.parameters;
      this.emit('settings', m.parameters);
    } else if (m.message === 'GOING_AWAY') this.emit('going-away', m.parameters);
    else this.trackMessage(m);
  }

  trackMessage(m) {
    const now = clock();
    if (m.message === 'CLEAR' && m.from_receiver) {
      const answer = this.senderOf(m.track).requested(m);
      if (answer) this.sayClear(answer);
    } else if (m.message === 'CLEAR') {
      const cleared = this.receiverOf(m.track).clear(m);
      if (cleared) this.sayClear(cleared);
    } else if (m.message === 'CLEARED') {
      this.senderOf(m.track).cleared(m);
      this.emit('cleared', m);
    } else if (m.message === 'FINISH') this.receiverOf(m.track).finishing(m.pts, now, this.resumed);
    else if (m.message === 'FINISHED') {
      const sender = this.senderOf(m.track);
      if (sender.finish === null) throw new ProtocolError('UNEXPECTED_MESSAGE', 'FINISHED without FINISH');
      sender.finished = true;
      this.emit('finished', m.track);
    } else this.senderOf(m.track).played = m.played_pts;
  }

  closeCame(m) {
    this.over({ code: errorName(m.code), reason: m.reason, by: 'peer', mayResume: m.may_resume });
    this.link.close(ERRORS.NO_ERROR);
  }

  linkClosed(why) {
    if (this.state === 'CLOSED') return;
    if (why.app) this.over({ code: errorName(why.code), reason: why.reason, by: 'peer' });
    else this.detach(why.reason || 'the path was lost');
  }

  detach(why) {
    this.state = 'DETACHED';
    this.emit('detached', why);
  }

  over(end) {
    this.state = 'CLOSED';
    clearInterval(this.timer);
    this.emit('closed', end);
  }

  // --- what is sent

  say(message, end = false) {
    if (this.link) this.link.sendStream(this.control.id ?? 0, encodeMessage(message), end);
  }

  sayClear(message) {
    this.say(message);
    this.flow.repeat(message);
  }

  clearTheirs(track = 0) {
    this.sayClear(this.receiverOf(track).request());
  }

  clearOurs(track = 0) {
    this.sayClear(this.senderOf(track).clear());
  }

  finish(track = 0) {
    const sender = this.senderOf(track);
    sender.finish = sender.next;
    this.say({ message: 'FINISH', track, pts: sender.sentEnd });
    sender.finish = sender.sentEnd;
  }

  sendEvent(event) {
    const data = this.outbox.add(event, this.limits.max_event_size ?? 1048576);
    if (this.open) this.link.openUni(data);
  }

  /** Sends CLOSE, ends the stream, and closes the connection when CLOSE has had the time to leave. */
  close(code = 'NO_ERROR', reason = '', link = this.link) {
    if (this.state === 'CLOSED') return;
    const fin = encodeMessage({ message: 'CLOSE', code: ERRORS[code], reason });
    if (link?.established) link.sendStream(this.control.id ?? 0, fin, true);
    setTimeout(() => link?.close(ERRORS[code], reason), 150);
    this.over({ code, reason, by: 'us' });
  }

  tick(now) {
    const audio = this.talking ? [...this.senders.values()].flatMap((s) => this.talk(s, now)) : [];
    const extra = this.again.splice(0);
    if (!this.open || !this.link || this.link.closed) return; // what was said meanwhile is kept for a resumption
    extra.push(...this.owed.splice(0, 1));
    for (const r of this.receivers.values()) {
      r.play(now);
      const missing = r.missing(now);
      if (missing) extra.push(missing);
      const finished = r.finished(now);
      if (finished) this.say(finished);
      if (r.shown) this.sayClear(r.shown);
      r.shown = null;
      if (r.started && now - (r.toldAt ?? 0) >= 0.25) this.progress(r, now);
    }
    this.flow.send(now, audio, extra);
    if (this.role === 'client' && now - this.flow.sentAt > KEEPALIVE) this.flow.datagram(now, []);
    this.link.flush();
  }

  talk(sender, now) {
    const audio = sender.due(now, this.began);
    if (audio.length && sender.anchor && this.open) {
      sender.anchor = false;
      this.flow.anchor(sender.anchorFrame(audio[0].full));
    }
    const repair = audio.length ? sender.repair() : null;
    if (repair) this.again.push(repair);
    return audio;
  }

  progress(r, now) {
    const message = { message: 'PROGRESS', track: r.track.track, played_pts: Math.floor(r.playhead) };
    r.toldAt = now;
    this.flow.repeat(message);
    r.told = (r.told ?? 0) + 1;
    if (r.told % 4 === 0) this.say(message);
  }
}

function wrongTrack(track) {
  throw new ProtocolError('TRACK_ERROR', `track ${track} was not agreed in this direction`);
}
