import type { Call } from "../../src/redis/call.ts";
import { codes } from "../../src/redis/codes.generated.ts";
import type { Reply } from "../../src/tools/testing/keyspace.ts";
import type { End, MemoryLink, Network, Wire } from "../../src/tools/testing/memory-link.ts";
import type { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import type { Dice } from "./dice.ts";
import type { Effects } from "./effects.ts";
import type { Product } from "./product.ts";
import { EPOCH, type SimulatedProcess } from "./simulated-process.ts";
import type { Story } from "./story.ts";
import { INPUT, type Time } from "./time.ts";
import { Way } from "./way.ts";
import { short, shown, shownReply } from "./wording.ts";

/** In ms: how long Redis works for a command. */
const SERVICE = 0.015;
/** In ms: two packets of one direction are never at the same time. */
const GAP = 0.001;

/** In a command: no end of the time in which it may run. */
const NEVER = String(Number.MAX_SAFE_INTEGER);

/** A script that Redis has run, and how many ms before that it was sent. */
export interface Ran {
  readonly script: string;
  readonly keys: readonly string[];
  readonly age: number;
  /** Its client knew no time of the server yet, so it may run whenever it arrives. */
  readonly isFirst: boolean;
  /** Its caller had the reply of another copy before the script ran. */
  readonly isCopy: boolean;
}

/** The delays of all connections, in ms. */
export interface Delays {
  readonly least: number;
  readonly most: number;
  /** The share of packets that take up to 20 times the most. */
  slow: number;
}

/** A Redis with a clock and a speed of its own. */
export class SimulatedServer {
  readonly redis: MemoryRedis;
  busyUntil = 0;
  /** When it last stood still: from, until. */
  paused = { from: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  /** By how many ms its clock was set back. */
  back = 0;
  /** How many commands it has run. */
  count = 0;
  /** Scripts that it knew before a SCRIPT FLUSH, by SHA. */
  readonly forgotten = new Set<string>();
  /** How many messages it has sent, to each receiver. */
  told = 0;
  readonly #time: Time;
  readonly #story: Story;

  constructor(time: Time, story: Story, { MemoryRedis: Redis }: Pick<Product, "MemoryRedis">) {
    this.#time = time;
    this.#story = story;
    this.redis = new Redis(() => (EPOCH + time.now - this.back) * 1_000);
    const { redis } = this;
    const publish = redis.publish.bind(redis);
    redis.publish = (channel, message) => {
      const receivers = publish(channel, message);
      this.told += receivers;
      return receivers;
    };
  }

  pause(ms: number): void {
    this.#story.tell("Redis", `stands still for ${ms.toFixed(0)} ms`);
    const { now } = this.#time;
    const { from, until } = this.paused;
    this.paused = { from: until > now ? from : now, until: Math.max(until, now + ms) };
    this.busyUntil = Math.max(this.busyUntil, now + ms);
  }

  setBack(ms: number): void {
    this.#story.tell("Redis", `its clock is set back by ${ms.toFixed(0)} ms`);
    this.back += ms;
  }

  forgetScripts(): void {
    this.#story.tell("Redis", "SCRIPT FLUSH");
    for (const sha of this.redis.known) this.forgotten.add(sha);
    this.redis.known.clear();
  }

  /** One command after the other. */
  turn(work: () => void): void {
    const time = this.#time;
    if (this.busyUntil > time.now) {
      time.at(this.busyUntil, INPUT, null, () => this.turn(work));
      return;
    }
    this.busyUntil = time.now + SERVICE;
    this.count++;
    work();
  }
}

/** What `SimulatedWire`s share. */
export interface Surroundings {
  readonly time: Time;
  readonly story: Story;
  readonly dice: Dice;
  readonly delays: Delays;
  readonly server: SimulatedServer;
  readonly effects: Effects;
}

/** A TCP connection: in order in each direction, with faults. */
export class SimulatedWire implements Wire {
  readonly end: End;
  isOpen = true;
  /** The time until which nothing moves, and since when. */
  frozen = { since: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  /** Until when replies and messages do not arrive. */
  deaf = { since: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  /** When something last came from the server, and how many things have come. */
  receivedAt = Number.NEGATIVE_INFINITY;
  arrived = 0;
  /** What was sent arrives after this time, when the connection is gone. */
  #strandedUntil: number | null = null;
  #isServed = true;
  #lastStranded = 0;
  readonly #up: Way;
  readonly #down: Way;
  readonly #at: Surroundings;
  readonly #closed: () => void;
  readonly process: SimulatedProcess;
  /** Called when it breaks. */
  onCut: () => void = () => {};

  constructor(at: Surroundings, process: SimulatedProcess, end: End, closed: () => void) {
    this.#at = at;
    this.process = process;
    this.end = end;
    this.#closed = closed;
    this.#up = new Way(at.time, null);
    this.#down = new Way(at.time, process);
  }

  #delay(): number {
    const { dice, delays } = this.#at;
    const { least, most, slow } = delays;
    return dice.chance(slow) ? dice.between(most, 20 * most) : dice.between(least, most);
  }

  toServer(work: () => void): void {
    if (this.process.isDead) return;
    const { time, server, effects } = this.#at;
    const served = (): void => {
      if (this.#isServed) server.turn(run);
      else effects["commands lost"]++;
    };
    const run = (): void => {
      if (this.#isServed) work();
      else effects["commands lost"]++;
    };
    this.#up.send(Math.max(this.process.now + this.#delay(), this.frozen.until), () => {
      if (!this.#isServed || this.#strandedUntil === null || this.#strandedUntil <= time.now) {
        served();
        return;
      }
      this.#lastStranded = Math.max(this.#lastStranded, this.#strandedUntil) + GAP;
      time.at(this.#lastStranded, INPUT, null, () => {
        effects["late copies run"]++;
        served();
      });
    });
  }

  toClient(work: () => void): void {
    const { time, effects } = this.#at;
    const least = Math.max(this.frozen.until, this.deaf.until);
    this.#down.send(Math.max(time.now + this.#delay(), least), () => {
      if (this.isOpen) {
        this.receivedAt = time.now;
        this.arrived++;
        work();
      } else effects["subscribe" in this.end ? "messages lost" : "replies lost"]++;
    });
  }

  freeze(ms: number): void {
    const { time, story } = this.#at;
    story.tell("network", `a connection of ${this.process.name} is frozen for ${ms.toFixed(0)} ms`);
    this.frozen = longer(this.frozen, time.now, ms);
    this.#up.hold(this.frozen.until);
    this.#down.hold(this.frozen.until);
  }

  deafen(ms: number): void {
    const { time, story } = this.#at;
    story.tell("network", `replies to ${this.process.name} are frozen for ${ms.toFixed(0)} ms`);
    this.deaf = longer(this.deaf, time.now, ms);
    this.#down.hold(this.deaf.until);
  }

  /**
   * Breaks. `copies`: what was sent and not served is lost, arrives at its time all the same, or so
   * many ms later: then after what a new connection carries. The server notices after `noticed` ms.
   */
  cut(copies: "lost" | number, noticed = 0): void {
    if (!this.isOpen) return;
    const { time, story } = this.#at;
    const fate = copies === "lost" ? "is lost" : `arrives ${copies.toFixed(0)} ms late`;
    story.tell("network", `a connection of ${this.process.name} breaks; what was sent ${fate}`);
    this.isOpen = false;
    if (copies === "lost") this.#isServed = false;
    else if (copies > 0) this.#strandedUntil = time.now + copies;
    this.#leave(noticed);
    this.onCut();
    this.process.soon(() => this.end.lose());
  }

  /** The server drops it, and the process does not notice: nothing arrives any more. */
  abandon(): void {
    const { story, time } = this.#at;
    story.tell("network", `the server drops a connection of ${this.process.name}, which does not notice`);
    this.#isServed = false;
    this.deaf = longer(this.deaf, time.now, Number.POSITIVE_INFINITY);
    this.#down.hold(this.deaf.until);
    this.#leave(0);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#leave(0);
  }

  #leave(ms: number): void {
    const { time } = this.#at;
    time.at(Math.max(this.#up.last, time.now + this.#delay()) + ms, INPUT, null, this.#closed);
  }
}

const longer = ({ since, until }: SimulatedWire["frozen"], now: number, ms: number) => ({
  since: until > now ? since : now,
  until: Math.max(until, now + ms),
});

/** A step of a command: sent by its process, run by Redis, or its reply arrived. */
export type Step = "sent" | "executed" | "answered";

/** The way of one process to the server. */
export class ProcessNetwork implements Network {
  readonly name = "127.0.0.1:6379";
  readonly redis: MemoryRedis;
  /** Open connections, the oldest first. */
  readonly wires = new Set<SimulatedWire>();
  /** Called once, after a script whose name matches was sent. */
  trap: { readonly names: RegExp; readonly spring: (wire: SimulatedWire, call: Call) => void } | null = null;
  /** When a connection broke last, in ms of the run. */
  lostAt = Number.NEGATIVE_INFINITY;
  /** Ends whose connection broke, and that have no other one yet. */
  readonly #lost = new Set<End>();
  /** How many messages it has received. */
  receivedCount = 0;
  onRan: (ran: Ran) => void = () => {};
  /** Called at each step of each command; `reply`: of one that was executed. */
  onStep: (step: Step, call: Call, reply: Reply | Error | null) => void = () => {};
  /** Called after a message was read. */
  onMessage: (message: string) => void = () => {};
  /** Nothing reaches the server before these times on connections that are made now. */
  readonly unreachableUntil = { commands: Number.NEGATIVE_INFINITY, messages: Number.NEGATIVE_INFINITY };
  readonly #answered = new WeakSet<Call>();
  readonly #at: Surroundings;
  readonly #process: SimulatedProcess;
  readonly #sent = new WeakSet<Call>();

  constructor(at: Surroundings, process: SimulatedProcess) {
    this.#at = at;
    this.#process = process;
    this.redis = at.server.redis;
  }

  connect(end: End, closed: () => void): Wire {
    const wire = new SimulatedWire(this.#at, this.#process, end, closed);
    wire.frozen.until = this.unreachableUntil["subscribe" in end ? "messages" : "commands"];
    for (const old of this.wires) if (!old.isOpen) this.wires.delete(old);
    this.wires.add(wire);
    this.#lost.delete(end);
    wire.onCut = () => {
      this.#lost.add(end);
      this.lostAt = this.#at.time.now;
    };
    return wire;
  }

  /** Is a connection missing that comes back? */
  get isReconnecting(): boolean {
    return [...this.#lost].some((end) => !end.isClosed);
  }

  /** Does a message on this channel reach it now, without a delay? */
  receives(channel: string): boolean {
    const { time, server } = this.#at;
    const isWell = [...this.wires].every(
      ({ isOpen, frozen, deaf, end, arrived }) =>
        !("subscribe" in end) ||
        // Not before its SUBSCRIBE is answered: a receiver may be a connection before it, of which the
        // server does not know yet that it is broken.
        (isOpen && arrived > 1 && frozen.until <= time.now && deaf.until <= time.now),
    );
    return isWell && server.redis.receivers(channel) > 0;
  }

  /** The open connection of this end. */
  wireOf(end: End): SimulatedWire | undefined {
    return [...this.wires].find((wire) => wire.isOpen && wire.end === end);
  }

  sent(call: Call, link: MemoryLink): void {
    const { story, effects } = this.#at;
    story.tell(this.#process.name, `sends ${call.script.name} ${shown(call)}`);
    // A script that Redis does not know is sent as text, by the same connection.
    if (this.#sent.has(call) && call.name === "evalsha") effects["commands sent again"]++;
    this.#sent.add(call);
    this.onStep("sent", call, null);
    const { trap } = this;
    const wire = this.wireOf(link);
    if (!trap?.names.test(call.script.name) || !wire) return;
    this.trap = null;
    trap.spring(wire, call);
  }

  answered(call: Call): void {
    this.#answered.add(call);
    this.onStep("answered", call, null);
  }

  received(message: string): void {
    this.receivedCount++;
    this.#at.story.tell(this.#process.name, `receives ${short(message)}`);
    this.onMessage(message);
  }

  ran(call: Call, reply: Reply | Error): void {
    const { effects } = this.#at;
    const isUnknown = reply instanceof Error && reply.message.startsWith("NOSCRIPT");
    if (isUnknown && this.#at.server.forgotten.has(call.script.sha)) effects["scripts forgotten"]++;
    if (reply instanceof Error && /no larger token/.test(reply.message)) effects["tokens used up"]++;
    if (Array.isArray(reply) && reply[0] === codes.STALE) effects["commands too late"]++;
    this.#at.story.tell("Redis", `${this.#process.name}: ${call.script.name}: ${shownReply(reply)}`);
    const { script, keys } = call;
    const isFirst = call.argv.some((word) => String(word) === NEVER);
    const age = this.#process.monoAt(this.#at.time.now) - call.since;
    this.onRan({ script: script.name, keys: keys.full, age, isFirst, isCopy: this.#answered.has(call) });
    this.onStep("executed", call, reply);
  }
}
