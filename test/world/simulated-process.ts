import { AsyncResource } from "node:async_hooks";
import * as crypto from "node:crypto";
import type { Dice } from "./dice.ts";
import type { Load, Product } from "./product.ts";
import type { Story } from "./story.ts";
import { type Actor, type Event, NEXT_TURN, TIMER, type Time } from "./time.ts";

/** When the runs take place: ms since 1970. */
export const EPOCH = 1_790_000_000_000;
/** Node.js rings a timer up to this late, in ms. */
const TIMER_LATE = 0.9;

interface SimulatedTimer {
  event: Event | null;
  ref(): SimulatedTimer;
  unref(): SimulatedTimer;
  hasRef(): boolean;
  refresh(): SimulatedTimer;
}

/** Its clocks: how fast they run, and by how many ms the wall clock is wrong. */
export interface ClockErrors {
  readonly rate: number;
  readonly skew: number;
}

/** A process of Node.js, with its own modules of the package, clocks, timers and random bits. */
export class SimulatedProcess implements Actor {
  readonly number: number;
  readonly name: string;
  readonly product: Product;
  readonly timers: ReturnType<SimulatedProcess["timersOf"]>;
  busyUntil = 0;
  isDead = false;
  /** When its wall clock was set forward last. */
  forwardAt = Number.NEGATIVE_INFINITY;
  /** When it last stood still until. */
  pausedUntil = Number.NEGATIVE_INFINITY;
  readonly #time: Time;
  readonly #story: Story;
  readonly #dice: Dice;
  readonly #clocks: ClockErrors;
  readonly #born: number;
  #blockedUntil = Number.NEGATIVE_INFINITY;
  readonly #exitHandlers: (() => void)[] = [];
  /** By how many ms its wall clock was set forward. */
  #stepped = 0;

  constructor(parts: {
    time: Time;
    story: Story;
    dice: Dice;
    load: Load;
    number: number;
    clocks: ClockErrors;
  }) {
    const { time, story, number } = parts;
    this.number = number;
    this.name = `process ${number}`;
    this.#time = time;
    this.#story = story;
    this.#dice = parts.dice;
    this.#clocks = parts.clocks;
    this.#born = time.now;
    this.timers = this.timersOf();
    this.product = parts.load({ modules: this.#modulesOf(), globals: this.#globalsOf() });
  }

  /** Its monotonic clock, in ms. */
  readonly mono = (): number => this.monoAt(this.now);
  readonly wall = (): number => EPOCH + this.#clocks.skew + this.#stepped + this.now * this.#clocks.rate;

  /** In ms of the run: in an event that blocks, time goes on. */
  get now(): number {
    return Math.max(this.#time.now, this.#blockedUntil);
  }

  /** Its monotonic clock at a time of the run, in ms. */
  monoAt(now: number): number {
    return 1_000 + (now - this.#born) * this.#clocks.rate;
  }

  readonly sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => void this.timers.setTimeout(() => resolve(), ms));

  /** Runs in an event of this process. */
  soon(run: () => void): void {
    this.#time.at(this.#time.now, TIMER, this, run);
  }

  /** Stands still, as with SIGSTOP or in a long garbage collection. */
  pause(ms: number): void {
    this.#story.tell(this.name, `stands still for ${ms.toFixed(0)} ms`);
    this.pausedUntil = Math.max(this.pausedUntil, this.#time.now + ms);
    this.busyUntil = Math.max(this.busyUntil, this.pausedUntil);
  }

  /** The event under way takes this long: the statement after this one runs so many ms later. */
  block(ms: number): void {
    this.#blockedUntil = this.now + ms;
    this.#story.tell(this.name, `blocks its event loop for ${ms.toFixed(0)} ms`);
    this.pausedUntil = Math.max(this.pausedUntil, this.#blockedUntil);
    this.busyUntil = Math.max(this.busyUntil, this.#blockedUntil);
  }

  /** Sets its wall clock forward; back if `ms` is negative. */
  stepClock(ms: number): void {
    this.#story.tell(
      this.name,
      `its wall clock is set ${ms < 0 ? "back" : "forward"} by ${Math.abs(ms).toFixed(0)} ms`,
    );
    this.#stepped += ms;
    if (ms > 0) this.forwardAt = this.#time.now;
  }

  /** Ends by `process.exit()`: its exit handlers run, and nothing after them. */
  exit(): void {
    this.#story.tell(this.name, "calls process.exit()");
    for (const handler of this.#exitHandlers) handler();
    this.isDead = true;
  }

  crash(): void {
    this.#story.tell(this.name, "crashes");
    this.isDead = true;
  }

  private timersOf() {
    const clear = (timer?: SimulatedTimer): void => {
      if (timer?.event) timer.event.isOff = true;
    };
    const set =
      (isAgain: boolean) =>
      (ring: (...values: unknown[]) => void, ms = 1, ...values: unknown[]) =>
        this.#timer(ring, ms, values, isAgain);
    return {
      setTimeout: set(false),
      setInterval: set(true),
      setImmediate: (run: (...values: unknown[]) => void, ...values: unknown[]) => {
        const timer = this.#handle(() => {});
        const ring = inThisContext(() => run(...values));
        timer.event = this.#time.at(this.now + 0.001, NEXT_TURN, this, ring);
        return timer;
      },
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    };
  }

  #handle(arm: (timer: SimulatedTimer) => void): SimulatedTimer {
    const timer: SimulatedTimer = {
      event: null,
      ref: () => timer,
      unref: () => timer,
      hasRef: () => false,
      refresh: () => {
        if (timer.event) timer.event.isOff = true;
        arm(timer);
        return timer;
      },
    };
    arm(timer);
    return timer;
  }

  #timer(ring: (...values: unknown[]) => void, ms: number, values: unknown[], isAgain: boolean) {
    const time = this.#time;
    // As in Node.js: whole ms, and 1 for what it cannot wait.
    const delay = ms >= 1 && ms <= 2 ** 31 - 1 ? Math.trunc(ms) : 1;
    const own = inThisContext(() => ring(...values));
    return this.#handle((timer) => {
      const arm = (): void => {
        const at = this.now + delay / this.#clocks.rate + this.#dice.between(0, TIMER_LATE);
        timer.event = time.at(at, TIMER, this, () => {
          if (isAgain) arm();
          own();
        });
      };
      arm();
    });
  }

  #modulesOf() {
    const dice = this.#dice;
    const randomBytes = (length: number): Buffer => {
      const bytes = Buffer.alloc(length);
      dice.fill(bytes);
      return bytes;
    };
    const randomFillSync = <T extends NodeJS.ArrayBufferView>(into: T, at = 0, length?: number): T => {
      const { BYTES_PER_ELEMENT: size = 1 } = into as { BYTES_PER_ELEMENT?: number };
      const all = (length ?? into.byteLength / size - at) * size;
      dice.fill(new Uint8Array(into.buffer, into.byteOffset + at * size, all));
      return into;
    };
    const randomUUID = (): string =>
      randomBytes(16)
        .toString("hex")
        .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    return {
      timers: this.timers,
      "timers/promises": { setTimeout: (ms: number) => this.sleep(ms) },
      perf_hooks: { performance: this.#performance },
      crypto: { ...crypto, randomBytes, randomFillSync, randomUUID },
      os: { hostname: () => `host${this.number}` },
    };
  }

  get #performance() {
    return { now: this.mono, timeOrigin: this.wall() - this.mono() };
  }

  #globalsOf(): Readonly<Record<string, unknown>> {
    const { wall } = this;
    class SimulatedDate extends Date {
      constructor(...given: [] | [number]) {
        super(...((given.length === 0 ? [wall()] : given) as [number]));
      }
      static override now(): number {
        return wall();
      }
    }
    const nothing = (): void => {};
    const emitWarning = (warning: unknown): void =>
      this.#story.tell(this.name, `is warned: ${String(warning).slice(0, 100)}`);
    const { nextTick, versions, version } = process;
    return {
      ...this.timers,
      Date: SimulatedDate,
      Math: Object.create(Math, { random: { value: this.#dice.next } }),
      performance: this.#performance,
      process: {
        nextTick,
        versions,
        version,
        emitWarning,
        on: (event: string, handler: () => void) => {
          if (event === "exit") this.#exitHandlers.push(handler);
        },
        once: nothing,
        off: nothing,
        pid: 1_000 + this.number,
        env: {},
        platform: "linux",
      },
      // A garbage collection comes at no certain time.
      FinalizationRegistry: class {
        register(): void {}
        unregister(): void {}
      },
    };
  }
}

/** Runs it later in the asynchronous context of now. AsyncResource.bind() takes several times as long. */
function inThisContext(run: () => void): () => void {
  const context = new AsyncResource("SimulatedTimer");
  return () => context.runInAsyncScope(run);
}
