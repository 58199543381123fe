import { AsyncLocalStorage } from "node:async_hooks";
import type { LockClient, LockEvents, LockOptions, MultiLease } from "../../../src/index.ts";
import type { End, MemoryLink } from "../../../src/tools/testing/memory-link.ts";
import { leave, take } from "../callers.ts";
import { type KindName, kinds } from "../kinds.ts";
import type { SimulatedWire } from "../network.ts";
import type { Holding, Member, Request, Run } from "../run.ts";
import { Connections } from "./connections.ts";
import { type Command, Moments } from "./moments.ts";

/** The options of a call, and the last part of the name: "a" of "lock:a". Default: "a". */
export interface TakeOptions extends LockOptions {
  readonly name?: string;
  /** Permits. Default: 1. */
  readonly units?: number;
}

/** A caller inside. */
export interface SceneLease {
  /** The lease that the application has. */
  readonly lease: Holding["lease"];
  readonly held: boolean;
  /** 0 for permits. */
  readonly token: number;
  /** Gives it back, as its process can. */
  unlock(): Promise<void>;
}

/** A process of a scene: its callers, and what happens to it. */
export class SceneProcess {
  readonly member: Member;
  readonly client: LockClient;
  readonly name: string;
  readonly number: number;
  readonly moments: Moments;
  /** Its connection for commands. */
  readonly commands: Connections;
  /** Its connection for messages. */
  readonly messages: Connections;
  readonly #run: Run;
  readonly #taken: Set<string>;
  #replicasAfter = 0;

  /** `resume`: calls something in an event of the test. `taken`: gets the names of multi-locks. */
  constructor(run: Run, member: Member, resume: (go: () => void) => void, taken: Set<string>) {
    const { process, network, client } = member;
    this.#run = run;
    this.#taken = taken;
    this.member = member;
    this.client = client;
    this.name = process.name;
    this.number = process.number;
    this.moments = new Moments(process.name, resume);
    network.onStep = (...step) => this.moments.step(...step);
    network.onMessage = (message) => this.moments.message(message);
    const open = (isForCommands: boolean) => (): SimulatedWire[] =>
      [...network.wires].filter((wire) => wire.isOpen && carriesCommands(wire) === isForCommands);
    this.commands = new Connections(`${this.name}, commands`, open(true), (ms) => this.#restore(ms));
    // Its client connects it again by itself.
    this.messages = new Connections(`${this.name}, messages`, open(false), (ms) =>
      this.#awayFor(ms, "messages"),
    );
  }

  // ---- callers

  /** In this process, now; if it stands still, when it goes on. */
  async does<T>(work: () => T | PromiseLike<T>): Promise<T> {
    const { process } = this.member;
    const { time } = this.#run;
    if (time.actor === null) throw new Error("a caller acts in the moment of a fault: await that first");
    if (process.pausedUntil > time.now) await new Promise<void>((resolve) => process.soon(resolve));
    return work();
  }

  /** By its own timers: without an end after it has crashed, and longer while it stands still. */
  sleep(ms: number): Promise<void> {
    return this.member.process.sleep(ms);
  }

  /** Callers that the body starts re-enter what others of them have. */
  scope<T>(body: () => Promise<T>): Promise<T> {
    return this.does(() => scopes.run({}, () => this.client.scope(body)));
  }

  /** A caller waits for it until it has it. */
  async take(kindName: KindName, options: TakeOptions = {}): Promise<SceneLease> {
    const lease = await this.#take(kindName, options.wait ?? Number.POSITIVE_INFINITY, options);
    return lease ?? Promise.reject(new Error(`${kindName} was busy`));
  }

  /** Null: busy. */
  tryTake(kindName: KindName, options: TakeOptions = {}): Promise<SceneLease | null> {
    return this.#take(kindName, null, options);
  }

  /** A caller waits for several locks as one: names such as "lock:a". */
  async takeAll(names: readonly string[], options: LockOptions = {}): Promise<MultiLease> {
    for (const name of names) this.#taken.add(name);
    const lease = await this.does(() => this.client.multiLock(names).lock(options));
    this.#enter(names, lease);
    return lease;
  }

  /** The same at once. Null: one of them was busy. */
  async tryTakeAll(names: readonly string[], options: LockOptions = {}): Promise<MultiLease | null> {
    for (const name of names) this.#taken.add(name);
    const lease = await this.does(() => this.client.multiLock(names).tryLock(options));
    if (lease) this.#enter(names, lease);
    return lease;
  }

  /** The checks see that a caller is inside each, for as long as its lease is held. */
  #enter(names: readonly string[], lease: MultiLease): void {
    const { holdings, checks, time } = this.#run;
    for (const name of names) {
      const one = {
        token: lease.tokens.get(name) ?? 0,
        get held() {
          return lease.held;
        },
      };
      const holding: Holding = {
        member: this.member,
        kindName: "lock",
        kind: kinds.lock,
        name,
        units: 1,
        wait: Number.POSITIVE_INFINITY,
        isFixed: false,
        since: time.now,
        abortedAt: Number.POSITIVE_INFINITY,
        lease: one as unknown as Holding["lease"],
        isLeaving: false,
      };
      holdings.set(name, (holdings.get(name) ?? new Set()).add(holding));
      for (const check of checks) check.entered?.(holding, holding);
    }
  }

  async #take(kindName: KindName, wait: number | null, options: TakeOptions): Promise<SceneLease | null> {
    const { name = "a", units = 1, ...more } = options;
    const { time } = this.#run;
    const kind = kinds[kindName];
    const request: Request = {
      member: this.member,
      kindName,
      kind,
      name: `${kind.family}:${name}`,
      units,
      wait,
      isFixed: false,
      since: time.now,
      scope: scopes.getStore(),
      abortedAt: Number.POSITIVE_INFINITY,
    };
    this.member.leaseTime = Math.max(this.member.leaseTime, more.lease ?? 0);
    more.signal?.addEventListener("abort", () => {
      request.abortedAt = time.now;
    });
    const outcome = await this.does(() => take(this.#run, request, null, this.client, more));
    // It has crashed: its caller is gone.
    if (outcome === null) return new Promise<never>(() => {});
    if ("lease" in outcome) return this.#leaseOf(outcome);
    if (outcome.error !== null) throw outcome.error;
    return null;
  }

  #leaseOf(holding: Holding): SceneLease {
    const { lease } = holding;
    return {
      lease,
      get held() {
        return lease.held;
      },
      token: "token" in lease ? (lease.token as number) : 0,
      unlock: async () => {
        const error = await this.does(() => leave(this.#run, holding));
        if (error !== null) throw error;
      },
    };
  }

  /** What it is told from now on. */
  heard<K extends keyof LockEvents>(event: K): Parameters<LockEvents[K]>[0][] {
    const all: Parameters<LockEvents[K]>[0][] = [];
    this.client.on(event, ((told: Parameters<LockEvents[K]>[0]) => void all.push(told)) as LockEvents[K]);
    return all;
  }

  /** The process warnings that it has emitted, each with its first words. */
  get warnings(): string[] {
    const said = `${this.name.padEnd(10)} is warned: `;
    return this.#run.story.lines.flatMap((line) => line.split(said)[1] ?? []);
  }

  // ---- faults

  /** How many scripts it has sent. */
  get sent(): number {
    return this.moments.sent;
  }

  /** The moments of its next such command. Each must come, or the test fails. */
  on(command: Command): ReturnType<Moments["on"]> {
    return this.moments.on(command);
  }

  /** Its next message that begins with this word has been read. It must come. */
  onMessage(word: string, fault?: () => void): Promise<void> {
    return this.moments.onMessage(word, fault);
  }

  /** It stands still, as with SIGSTOP. */
  pause(ms: number): void {
    this.member.process.pause(ms);
  }

  /** The statement that runs now takes this long. */
  block(ms: number): void {
    this.member.process.block(ms);
  }

  crash(): void {
    this.#run.crash(this.member);
  }

  /** It calls `process.exit()`: its exit handlers run, and nothing after them. */
  exit(): void {
    this.#run.crash(this.member, 0, true);
  }

  /** Its host is lost: nothing tells the server for two hours. */
  vanish(): void {
    this.#run.crash(this.member, 2 * 3_600_000);
  }

  /** Sets its wall clock forward. */
  stepClock(ms: number): void {
    this.member.process.stepClock(ms);
  }

  /** Breaks all its connections for so long. */
  cutOff(ms: number): void {
    this.commands.cut({ back: ms });
    if (this.#hasMessages) this.messages.cut({ back: ms });
  }

  /** Nothing moves on any of its connections for so long, and none breaks. */
  freeze(ms: number): void {
    this.commands.freeze(ms);
    if (this.#hasMessages) this.messages.freeze(ms);
  }

  get #hasMessages(): boolean {
    return [...this.member.network.wires].some((wire) => wire.isOpen && !carriesCommands(wire));
  }

  /** Nothing moves for so long on connections for messages, present ones and those that it makes. */
  withoutMessages(ms: number): void {
    if (this.#hasMessages) this.messages.freeze(ms);
    this.#awayFor(ms, "messages");
  }

  /** From now on Redis refuses it every channel. */
  mayNotSubscribe(): void {
    const { link, process } = this.member;
    const { RedisError } = process.product;
    const listen = link.listen.bind(link);
    const subscribe = async (): Promise<never> => {
      await this.sleep(1);
      throw new RedisError("NOPERM No permissions to access a channel");
    };
    link.listen = (...given) => Object.assign(listen(...given), { subscribe });
  }

  /** With the option `replicas`: from now on these have everything after so many ms. */
  hasReplicas(ms = 0): void {
    const { link } = this.member;
    this.#replicasAfter = ms;
    const wait = async (): Promise<number> => {
      if (this.#replicasAfter > 0) await this.sleep(this.#replicasAfter);
      return 1;
    };
    link.openOnce = () => Object.assign(link.open(), { command: wait });
  }

  /** What its driver does from now on with what the connection has lost. At first it sends it again. */
  losesCommands(how: "fail" | "forgotten" | "sent again"): void {
    this.member.link.atLoss = how;
  }

  #awayFor(ms: number, what: "commands" | "messages"): void {
    this.member.network.unreachableUntil[what] = this.#run.time.now + ms;
  }

  #restore(ms: number): void {
    const { process, link, network } = this.member;
    const links = new Set([link, ...[...network.wires].map(({ end }) => end).filter(isLink)]);
    this.#awayFor(ms, "commands");
    this.#run.time.at(this.#run.time.now + ms, 1, process, () => {
      for (const one of links) one.restore();
    });
  }
}

const scopes = new AsyncLocalStorage<object>();

const isLink = (end: End): end is MemoryLink => !("subscribe" in end);
const carriesCommands = ({ end }: SimulatedWire): boolean => isLink(end);
