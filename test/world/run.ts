import type { Leader, LockClient, LockClientOptions } from "../../src/index.ts";
import type { MemoryLink } from "../../src/tools/testing/memory-link.ts";
import { Dice } from "./dice.ts";
import { Effects } from "./effects.ts";
import { ForcedHolds } from "./forced.ts";
import { type Grant, Grants } from "./grants.ts";
import type { AnyLease, Kind, KindName } from "./kinds.ts";
import { type Delays, ProcessNetwork, type Ran, SimulatedServer } from "./network.ts";
import { channelOf, type Entry, type Owned } from "./ownership.ts";
import type { Load } from "./product.ts";
import { type ClockErrors, SimulatedProcess } from "./simulated-process.ts";
import { Story } from "./story.ts";
import { Time } from "./time.ts";

/** What one call takes all or none of, in the caller's order. */
export interface Together {
  readonly names: readonly string[];
}

/** A caller, from its call until it has what it wants, or an error. */
export interface Request {
  readonly member: Member;
  readonly kindName: KindName;
  readonly kind: Kind;
  readonly name: string;
  readonly units: number;
  /** null: it does not wait; Infinity: without limit. */
  readonly wait: number | null;
  /** Is its lease a fixed one, which the watchdog does not renew? */
  readonly isFixed: boolean;
  readonly since: number;
  /** Its scope, in which it may enter what the scope holds. Left out: none. */
  readonly scope?: object | undefined;
  /** The multi-lock of which it asks for one member. Left out: none. */
  readonly together?: Together | undefined;
  /** Of its signal. Left out: it has none, or another one. */
  readonly controller?: AbortController | undefined;
  abortedAt: number;
}

/** A caller that observes who leads. */
export interface Observing {
  readonly member: Member;
  readonly name: string;
  readonly since: number;
  /** What it was shown last. Undefined: nothing yet. */
  shown: Leader | null | undefined;
}

/** A caller inside. */
export interface Holding extends Request {
  readonly lease: AnyLease;
  /** It has begun to give it back. */
  isLeaving: boolean;
}

/** A call of `extend()`. */
export interface Extension {
  readonly holding: Holding;
  readonly ms: number;
  readonly since: number;
  /** Was the lease held when it was called? */
  readonly wasHeld: boolean;
}

/** Options of the client of a process. */
export interface MemberOptions {
  readonly leaseTime: number;
  readonly linger?: number;
  /** The others. */
  readonly more?: Omit<LockClientOptions, "leaseTime" | "linger">;
}

/** A client that closes while it has callers. */
export interface Closing {
  /** When `close()` was called, in ms of the run. */
  readonly since: number;
  /** In ms: how long holders may finish. */
  readonly grace: number;
  /** When it had resolved; Infinity: it has not. */
  until: number;
}

/** A simulated process with its client. */
export interface Member {
  readonly process: SimulatedProcess;
  readonly network: ProcessNetwork;
  readonly link: MemoryLink;
  readonly client: LockClient;
  /** The longest lease that it asks for, in ms. */
  leaseTime: number;
  readonly longestStay: number;
  /** Its client was told to close. Null: it was not, while callers are there. */
  closing: Closing | null;
  /** Until when a fault may explain what happens to it, in ms of the run. */
  troubleUntil: number;
}

/**
 * A promise that is checked while a run goes on. Each method reports a broken promise with
 * `run.story.fail`.
 */
export interface Check {
  /** The promise, as docs/guarantees.md gives it. */
  readonly promise: string;
  asked?(request: Request): void;
  entered?(holding: Holding, request: Request): void;
  /** `extend()` has ended, with this error or null. */
  extended?(extension: Extension, error: unknown): void;
  /** Before it is given back. */
  leaving?(holding: Holding): void;
  /** After it was given back, with the error of that. */
  left?(holding: Holding, error: unknown): void;
  /** The call ended with an error; null: with null, as busy. */
  refused?(request: Request, error: unknown): void;
  /** Redis has run a script of this process. */
  ran?(member: Member, ran: Ran): void;
  /** A script has given a hold. */
  granted?(grant: Grant): void;
  /** Every 100 ms. */
  inspect?(): void;
  /** All callers have ended. */
  ended?(): void;
  /** All clients are closed, and leases of crashed processes are over. */
  closed?(): void;
}

/** How often what happened. */
export const noCounts = () => ({
  acquired: 0,
  busy: 0,
  timeouts: 0,
  aborted: 0,
  lost: 0,
  unavailable: 0,
  closed: 0,
  faults: 0,
});

/** What a run has: its time, network, server, processes and callers. */
export class Run {
  readonly seed: number;
  readonly hasFaults: boolean;
  readonly dice: Dice;
  readonly time = new Time();
  readonly story: Story;
  readonly delays: Delays;
  readonly server: SimulatedServer;
  /** All that were started, by their numbers. */
  readonly started: Member[] = [];
  /** The processes that live. */
  readonly members = new Set<Member>();
  readonly requests = new Set<Request>();
  /** By name of what they hold. */
  readonly holdings = new Map<string, Set<Holding>>();
  /** Those that are given back, until that has ended. */
  readonly leaving = new Set<Holding>();
  readonly observers = new Set<Observing>();
  readonly checks: Check[] = [];
  readonly grants = new Grants(this);
  readonly forced = new ForcedHolds(this);
  readonly effects = new Effects();
  /** How many callers of each process have not ended. */
  readonly callers = new Map<Member, number>();
  /** How many calls that no caller awaits have not ended. */
  readonly #beside = new Map<Member, number>();
  crashes = 0;
  /** What Redis has, read once while all checks look at it; null: they do not. */
  inspected: { owners?: readonly Owned[]; entries?: readonly Entry[] } | null = null;
  /** A test says what happens: keys may be deleted, and callers may be unknown here. */
  isDirected = false;
  /** Of the check that looks now. */
  promise: string | null = null;
  /** Is this what a run is to show? */
  isExcused: (why: string) => boolean = () => false;
  /** Starts another process in the place of one that has crashed. */
  replace: (crashed: Member) => void = () => {};
  readonly counts = noCounts();
  readonly #load: Load;
  #numbers = 0;

  /** `delays`: default: at random. */
  constructor(
    seed: number,
    load: Load,
    options: { readonly hasFaults: boolean; readonly isTold: boolean; readonly delays?: Delays },
  ) {
    this.seed = seed;
    this.hasFaults = options.hasFaults;
    this.dice = new Dice(seed);
    this.story = new Story(this.time, options.isTold);
    const most = this.dice.between(0.2, 2);
    this.delays = options.delays ?? { least: 0.05, most, slow: this.dice.chance(0.5) ? 0.01 : 0 };
    this.server = new SimulatedServer(this.time, this.story, load({ modules: {}, globals: {} }));
    this.#load = load;
  }

  /** In ms: how long an uncontended round trip and a hand-off may take on this network. */
  get slack(): number {
    const { most, slow } = this.delays;
    return 60 + 40 * most + (slow > 0 ? 160 * most : 0);
  }

  start(options: MemberOptions, clocks: ClockErrors): Member {
    const { time, story, dice, delays, server, effects } = this;
    const process = new SimulatedProcess({
      time,
      story,
      dice: dice.split(),
      load: this.#load,
      number: this.#numbers++,
      clocks,
    });
    const { ServerClient, redisServer, checkClientOptions, MemoryLink } = process.product;
    const network = new ProcessNetwork({ time, story, dice, delays, server, effects }, process);
    const { more, ...common } = options;
    const settings = checkClientOptions({ ...common, ...more });
    const link = new MemoryLink(network);
    const client = new ServerClient(redisServer(link, settings), settings);
    const member: Member = {
      process,
      network,
      link,
      client,
      leaseTime: options.leaseTime,
      longestStay: options.linger ?? 0,
      closing: null,
      troubleUntil: Number.NEGATIVE_INFINITY,
    };
    network.onRan = (ran) => this.#ran(member, ran);
    story.tell(process.name, `starts: lease time ${options.leaseTime} ms, linger ${options.linger ?? 0} ms`);
    this.members.add(member);
    this.started.push(member);
    return member;
  }

  #ran(member: Member, ran: Ran): void {
    const { made, ended } = this.grants.ran(ran);
    for (const grant of made) {
      if (grant.isGhost) this.effects["holds brought back"]++;
      for (const check of this.checks) check.granted?.(grant);
    }
    if (/force-release/.test(ran.script) && !this.isDirected)
      for (const grant of ended) {
        const owner = this.memberOf(grant.process);
        if (!owner) continue;
        this.effects["holds force-released"]++;
        this.forced.add(grant, owner.network.receives(channelOf(grant.hold)));
      }
    for (const check of this.checks) check.ran?.(member, ran);
  }

  /** The living process with this number. */
  memberOf(process: number): Member | undefined {
    return [...this.members].find((member) => member.process.number === process);
  }

  /** `noticed`: ms until the server knows that its connections are gone. `isExit`: by `process.exit()`. */
  crash(member: Member, noticed = 0, isExit = false): void {
    if (isExit) member.process.exit();
    else member.process.crash();
    for (const wire of member.network.wires) wire.cut(0, noticed);
    this.members.delete(member);
    for (const request of this.requests) if (request.member === member) this.requests.delete(request);
  }

  /** The callers that hold this, in processes that live. */
  inside(name: string): Holding[] {
    return [...(this.holdings.get(name) ?? [])].filter(({ member }) => !member.process.isDead);
  }

  /** A call of this process that no caller awaits, such as of a listener. */
  goesOn(member: Member, call: Promise<unknown>): void {
    const count = (change: number): void =>
      void this.#beside.set(member, (this.#beside.get(member) ?? 0) + change);
    count(1);
    call.then(
      () => count(-1),
      (error: Error) => this.fail(`a call that nobody awaits failed: ${error.stack}`),
    );
  }

  /** How many of them have not ended, in living processes. */
  get beside(): number {
    return [...this.members].reduce((sum, member) => sum + (this.#beside.get(member) ?? 0), 0);
  }

  /** The callers that wait for this lock alone: their places are in its queue. */
  waiting(name: string): Request[] {
    return this.wanting(name).filter(({ together }) => !together);
  }

  /** The same, and callers of multi-locks: they may wait for another member, or have this one. */
  wanting(name: string): Request[] {
    return [...this.requests].filter((request) => request.name === name);
  }

  /** Has its client been told to close? */
  isClosing({ closing }: Member): boolean {
    return closing !== null;
  }

  /** Do its callers make further calls? */
  goesOnIn(member: Member): boolean {
    return !member.process.isDead && !this.isOver && !this.isClosing(member);
  }

  /** Is nothing in the way between it and Redis? */
  isWell({ process, network, link }: Member): boolean {
    const { now } = this.time;
    const { paused } = this.server;
    return (
      process.pausedUntil <= now &&
      paused.until <= now &&
      link.state === "ready" &&
      !network.isReconnecting &&
      [...network.wires].every((wire) => wire.frozen.until <= now && wire.deaf.until <= now)
    );
  }

  fail(why: string): void {
    const promise = this.promise === null ? "" : `\n  Promised: ${this.promise}`;
    if (!this.isExcused(why)) this.story.fail(`${why}${promise}`);
  }

  get isOver(): boolean {
    return this.story.failure !== null;
  }
}
