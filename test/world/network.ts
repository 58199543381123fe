import type { Call } from "../../src/redis/driver.ts";
import type { Reply } from "../../src/tools/testing/keyspace.ts";
import type { End, MemoryLink, Network, Wire } from "../../src/tools/testing/memory-link.ts";
import type { MemoryRedis } from "../../src/tools/testing/memory-redis.ts";
import type { Dice } from "./dice.ts";
import type { Product } from "./product.ts";
import { EPOCH, type SimulatedProcess } from "./simulated-process.ts";
import type { Story } from "./story.ts";
import { INPUT, type Time } from "./time.ts";
import { short, shown, shownReply } from "./wording.ts";

/** In ms: how long Redis works for a command. */
const SERVICE = 0.015;
/** In ms: two packets of one direction are never at the same time. */
const GAP = 0.001;

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
  readonly #time: Time;
  readonly #story: Story;

  constructor(time: Time, story: Story, { MemoryRedis: Redis }: Pick<Product, "MemoryRedis">) {
    this.#time = time;
    this.#story = story;
    this.redis = new Redis(() => (EPOCH + time.now - this.back) * 1_000);
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
}

/** A TCP connection: in order in each direction, with faults. */
export class SimulatedWire implements Wire {
  readonly end: End;
  isOpen = true;
  /** The time until which nothing moves, and since when. */
  frozen = { since: Number.NEGATIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  /** Until when replies and messages do not arrive. */
  deafUntil = Number.NEGATIVE_INFINITY;
  /** What was sent arrives after this time, when the connection is gone. */
  #strandedUntil: number | null = null;
  #isServed = true;
  #lastUp = 0;
  #lastDown = 0;
  #lastStranded = 0;
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
  }

  #delay(): number {
    const { dice, delays } = this.#at;
    const { least, most, slow } = delays;
    return dice.chance(slow) ? dice.between(most, 20 * most) : dice.between(least, most);
  }

  toServer(work: () => void): void {
    if (this.process.isDead) return;
    const { time, server } = this.#at;
    this.#lastUp = Math.max(this.#lastUp + GAP, this.process.now + this.#delay(), this.frozen.until);
    const served = (): void => server.turn(() => this.#isServed && work());
    time.at(this.#lastUp, INPUT, null, () => {
      if (this.#strandedUntil === null || this.#strandedUntil <= time.now) {
        if (this.#isServed) served();
        return;
      }
      this.#lastStranded = Math.max(this.#lastStranded, this.#strandedUntil) + GAP;
      time.at(this.#lastStranded, INPUT, null, served);
    });
  }

  toClient(work: () => void): void {
    const { time } = this.#at;
    const least = Math.max(this.frozen.until, this.deafUntil);
    this.#lastDown = Math.max(this.#lastDown + GAP, time.now + this.#delay(), least);
    time.at(this.#lastDown, INPUT, this.process, () => this.isOpen && work());
  }

  freeze(ms: number): void {
    const { time, story } = this.#at;
    story.tell("network", `a connection of ${this.process.name} is frozen for ${ms.toFixed(0)} ms`);
    const { now } = time;
    const { since, until } = this.frozen;
    this.frozen = { since: until > now ? since : now, until: Math.max(until, now + ms) };
  }

  deafen(ms: number): void {
    const { time, story } = this.#at;
    story.tell("network", `replies to ${this.process.name} are frozen for ${ms.toFixed(0)} ms`);
    this.deafUntil = Math.max(this.deafUntil, time.now + ms);
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
    const { story } = this.#at;
    story.tell("network", `the server drops a connection of ${this.process.name}, which does not notice`);
    this.#isServed = false;
    this.deafUntil = Number.POSITIVE_INFINITY;
    this.#leave(0);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#leave(0);
  }

  #leave(ms: number): void {
    const { time } = this.#at;
    time.at(Math.max(this.#lastUp, time.now + this.#delay()) + ms, INPUT, null, this.#closed);
  }
}

/** A step of a command: sent by its process, run by Redis, or its reply arrived. */
export type Step = "sent" | "executed" | "answered";

/** The way of one process to the server. */
export class ProcessNetwork implements Network {
  readonly name = "127.0.0.1:6379";
  readonly redis: MemoryRedis;
  /** Open connections, the oldest first. */
  readonly wires = new Set<SimulatedWire>();
  /** Called once, after a script whose name matches was sent. */
  trap: { readonly names: RegExp; readonly spring: (wire: SimulatedWire) => void } | null = null;
  /** When the connection for commands broke last, in ms of the run. */
  lostAt = Number.POSITIVE_INFINITY;
  /** Ends whose connection broke, and that have no other one yet. */
  readonly #lost = new Set<End>();
  /** `isCopy`: its caller had the reply of another copy before the script ran. */
  onRan: (script: string, keys: readonly string[], age: number, isCopy: boolean) => void = () => {};
  /** Called at each step of each command; `reply`: of one that was executed. */
  onStep: (step: Step, call: Call, reply: Reply | Error | null) => void = () => {};
  /** Called after a message was read. */
  onMessage: (message: string) => void = () => {};
  /** Nothing reaches the server before this time on a connection that is made now. */
  unreachableUntil = Number.NEGATIVE_INFINITY;
  readonly #answered = new WeakSet<Call>();
  readonly #at: Surroundings;
  readonly #process: SimulatedProcess;

  constructor(at: Surroundings, process: SimulatedProcess) {
    this.#at = at;
    this.#process = process;
    this.redis = at.server.redis;
  }

  connect(end: End, closed: () => void): Wire {
    const wire = new SimulatedWire(this.#at, this.#process, end, closed);
    wire.frozen.until = this.unreachableUntil;
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

  /** The open connection of this end. */
  wireOf(end: End): SimulatedWire | undefined {
    return [...this.wires].find((wire) => wire.isOpen && wire.end === end);
  }

  sent(call: Call, link: MemoryLink): void {
    const { story } = this.#at;
    story.tell(this.#process.name, `sends ${call.script.name} ${shown(call)}`);
    this.onStep("sent", call, null);
    const { trap } = this;
    const wire = this.wireOf(link);
    if (!trap?.names.test(call.script.name) || !wire) return;
    this.trap = null;
    trap.spring(wire);
  }

  answered(call: Call): void {
    this.#answered.add(call);
    this.onStep("answered", call, null);
  }

  received(message: string): void {
    this.#at.story.tell(this.#process.name, `receives ${short(message)}`);
    this.onMessage(message);
  }

  ran(call: Call, reply: Reply | Error): void {
    this.#at.story.tell("Redis", `${this.#process.name}: ${call.script.name}: ${shownReply(reply)}`);
    const age = this.#process.monoAt(this.#at.time.now) - call.since;
    this.onRan(call.script.name, call.keys.full, age, this.#answered.has(call));
    this.onStep("executed", call, reply);
  }
}
