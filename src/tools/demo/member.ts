import { setTimeout as delay } from "node:timers/promises";
import { LockError, type UnfencedLease } from "../../index.ts";
import { orAbort } from "../../util/abort.ts";
import type { TestClient } from "../testing/client.ts";
import { observe } from "../ui/observe.ts";
import type { ProcessKnob, ShownProcess } from "../ui/shown.ts";

/** The least and the most ms of something. */
export type Span = readonly [least: number, most: number];

/** What the work of a process uses. */
export interface Site {
  readonly locks: TestClient;
  /** Aborts when the process ends. */
  readonly signal: AbortSignal;
  /** Does nothing for a while. */
  rest(span: Span): Promise<void>;
  /**
   * Works under a lock for a while. `isMain`: under the lock at which a knob is turned.
   *
   * @throws the reason of the lease's signal.
   */
  work(lease: Pick<UnfencedLease, "signal">, span: Span, isMain?: boolean): Promise<void>;
}

/** Done again and again, at a time of its own. */
export type Job = (site: Site) => Promise<unknown>;

/** What a process of the fleet is. */
export interface Role {
  readonly name: string;
  readonly pid: number;
  readonly work: string;
  readonly jobs: readonly Job[];
}

/** ms for which a knob waits until the process holds its lock. */
const PATIENCE = 8_000;
/** ms before a job that has failed is done again. */
const AGAIN: Span = [300, 900];

type Turned = NonNullable<ShownProcess["next"]>;

/** One life of a process: its client, and what ends with it. */
interface Life {
  readonly client: TestClient;
  readonly ended: AbortController;
  readonly unobserve: () => void;
}

/** A process of the fleet: it works until it crashes, and may be started again. */
export class Member {
  readonly role: Role;
  readonly #create: (process: string) => TestClient;
  #pid: number;
  #life: Life | null = null;
  #latency = 0;
  #undo: Record<"pause" | "cut", (() => void) | null> = { pause: null, cut: null };
  #isHung = false;
  #next: Turned | null = null;
  /** Is it at work under its main lock? */
  #isInside = false;
  /** Called when something changes that its jobs or its knobs wait for. */
  readonly #wakes = new Set<() => void>();

  /** `create`: makes its client, which seems to run there. */
  constructor(role: Role, create: (process: string) => TestClient) {
    this.role = role;
    this.#create = create;
    this.#pid = role.pid;
    this.#start();
  }

  get shown(): ShownProcess {
    const { name, work } = this.role;
    return {
      ...{ name, work, where: this.#where, isDead: this.#life === null, isHung: this.#isHung },
      ...{ isPaused: this.#undo.pause !== null, isCut: this.#undo.cut !== null, next: this.#next },
    };
  }

  get #where(): string {
    return `${this.role.name}:${this.#pid}`;
  }

  /** Null: it is dead, stands still, or has no Redis. */
  get locks(): TestClient | null {
    return this.#undo.pause || this.#undo.cut ? null : (this.#life?.client ?? null);
  }

  set latency(ms: number) {
    this.#latency = ms;
    this.#life?.client.test.latency(ms);
  }

  async close(): Promise<void> {
    const client = this.#end();
    await client?.close({ grace: 0 });
  }

  // ---- knobs

  /** Turns a knob. Returns what will be seen; null: it cannot be turned now. */
  turn(knob: ProcessKnob): string | null {
    const { name } = this.role;
    if (knob === "start") {
      if (this.#life) return null;
      this.#pid += 7;
      this.#start();
      return `${name} works again, as process ${this.#pid}.`;
    }
    if (!this.#life) return null;
    switch (knob) {
      case "crash":
        return this.#soon(knob) && `${name} dies when it holds its lock next.`;
      case "pause":
        return this.#undo.pause
          ? null
          : this.#soon(knob) && `${name} stands still when it holds its lock next.`;
      case "cut":
        return this.#undo.cut ? null : this.#soon(knob) && `${name} loses Redis when it holds its lock next.`;
      case "hang":
        this.#isHung = true;
        return `${name} does not end its work: its lease is renewed, and others wait.`;
      case "let go":
        this.#isHung = false;
        this.#wake();
        return `${name} ends its work.`;
      case "resume":
        return this.#turnBack("pause") && `${name} goes on, and learns what it has lost.`;
      case "mend":
        return this.#turnBack("cut") && `${name} has a connection to Redis again.`;
    }
  }

  #turnBack(what: "pause" | "cut"): true | null {
    const undo = this.#undo[what];
    this.#undo[what] = null;
    undo?.();
    this.#wake();
    return undo && true;
  }

  /** At its next turn with its main lock, so that there is something to see; or after `PATIENCE`. */
  #soon(knob: Turned): true {
    const isFirst = this.#next === null;
    this.#next = knob;
    if (isFirst) void this.#atTurn();
    return true;
  }

  async #atTurn(): Promise<void> {
    const life = this.#life;
    const signal = AbortSignal.timeout(PATIENCE);
    await this.#until(() => this.#isInside || this.#life !== life || this.#undo.pause !== null, signal).catch(
      () => {},
    );
    const knob = this.#next;
    this.#next = null;
    if (!life || this.#life !== life) return;
    const { test } = life.client;
    if (knob === "crash") void this.#crash();
    else if (knob) {
      const undoable = test[knob]();
      this.#undo[knob] = () => void undoable.then((one) => one.undo());
    }
  }

  async #crash(): Promise<void> {
    await this.#end()?.test.crash();
  }

  // ---- its life

  #start(): void {
    const client = this.#create(this.#where);
    const ended = new AbortController();
    // Without a listener each error would be a warning of the program.
    client.on("error", () => {});
    // Of a Redis in memory a link is the connection; its type is no library's.
    const unobserve = observe(client, client.connect() as never);
    client.test.latency(this.#latency);
    this.#life = { client, ended, unobserve };
    for (const job of this.role.jobs) void this.#repeat(job, this.#site(client, ended.signal));
  }

  /** Ends this life, and returns its client. Null: it has ended before. */
  #end(): TestClient | null {
    const life = this.#life;
    if (!life) return null;
    this.#life = this.#next = null;
    this.#undo = { pause: null, cut: null };
    this.#isHung = this.#isInside = false;
    life.unobserve();
    life.ended.abort();
    this.#wake();
    return life.client;
  }

  async #repeat(job: Job, site: Site): Promise<void> {
    while (!site.signal.aborted)
      try {
        await job(site);
      } catch (error) {
        if (site.signal.aborted) return;
        if (!(error instanceof LockError)) throw error;
        await site.rest(AGAIN).catch(() => {});
      }
  }

  #site(locks: TestClient, signal: AbortSignal): Site {
    return {
      locks,
      signal,
      rest: (span) => this.#sleep(span, signal),
      work: async (lease, span, isMain = false) => {
        const { signal } = lease;
        if (isMain) {
          this.#isInside = true;
          this.#wake();
        }
        try {
          await this.#sleep(span, signal);
          await this.#until(() => !this.#isHung, signal);
        } finally {
          if (isMain) this.#isInside = false;
        }
      },
    };
  }

  /** No timer of a process that stands still rings. */
  async #sleep([least, most]: Span, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const ms = least + Math.random() * (most - least);
    await orAbort(signal, delay(ms, undefined, { ref: false }));
    await this.#until(() => this.#undo.pause === null, signal);
  }

  async #until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
    let wake = (): void => {};
    while (!isSo()) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
        this.#wakes.add(wake);
      });
      await orAbort(signal, woken).finally(() => this.#wakes.delete(wake));
    }
  }

  #wake(): void {
    for (const wake of [...this.#wakes]) wake();
  }
}
