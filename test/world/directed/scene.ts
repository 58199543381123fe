import { resolve } from "node:path";
import { checksOf } from "../checks/index.ts";
import { closeAll } from "../closing.ts";
import { entries, owners } from "../ownership.ts";
import { type Load, loadProduct } from "../product.ts";
import { type MemberOptions, Run } from "../run.ts";
import { type Actor, TIMER } from "../time.ts";
import { refusing } from "./refusing-redis.ts";
import { SceneProcess } from "./scene-process.ts";
import { SceneRedis } from "./scene-redis.ts";

/** Every packet takes this long, in ms. */
const DELAY = 0.2;
/** In ms of virtual time: the longest scene. */
const LONGEST = 2 * 3_600_000;
const INSPECT = 100;
const LEASE_TIME = 30_000;
/** In ms: a hold or a place of a crashed process ends by itself, at the latest after local hand-offs. */
const LEFT = 50_000;
/** How many of the story's lines a failed test shows. */
const SHOWN = 60;

/** Options of processes and their clients. `leaseTime`: default 30 000. */
type ClientOptions = Partial<Omit<MemberOptions, "more">> &
  MemberOptions["more"] & {
    /** How fast its clocks run. Default: 1. */
    readonly clockRate?: number;
  };

/** N of them. */
type List<T, N extends number, Some extends T[] = []> = Some["length"] extends N
  ? Some
  : List<T, N, [...Some, T]>;

/** What a test directs. Time passes only while it awaits something. */
export interface Scene {
  readonly redis: SceneRedis;
  processes<N extends number>(count: N, options?: ClientOptions): List<SceneProcess, N>;
  /** Waits so many ms. */
  pass(ms: number): Promise<void>;
  /** Waits until it is so. */
  until(isSo: () => boolean): Promise<void>;
  /** The ms that this takes. */
  timed<T>(work: PromiseLike<T>): Promise<{ result: T; took: number }>;
  /** ms since the scene began. */
  now(): number;
  /** From now on every packet takes this long, in ms. Default: 0.2. */
  delay(ms: number): void;
  /** This broken promise is what the scene shows: it must happen. */
  shows(broken: RegExp): void;
}

const root = resolve(import.meta.dirname, "../../..");
let loaded: Promise<Load> | null = null;

async function load(): Promise<Load> {
  loaded ??= loadProduct(root);
  const plain = await loaded;
  return (surroundings) => {
    const product = plain(surroundings);
    return { ...product, MemoryRedis: refusing(product) };
  };
}

/**
 * A test's body with simulated processes on a Redis in memory, in virtual time: the same events in
 * every run. All checks of the world run beside it. The test fails if a fault that it has set never
 * happens, a caller has not ended, or the closed clients leave something in Redis.
 *
 * @example
 * test("the holder crashes: the waiter has the lock when the lease is over", scene(async (world) => {
 *   const [holder, waiter] = world.processes(2);
 *   await holder.take("lock");
 *   const waiting = waiter.take("lock");
 *   await world.pass(100);
 *   holder.crash();
 *   await (await waiting).unlock();
 * }));
 */
export function scene(body: (scene: Scene) => Promise<void>): () => Promise<void> {
  return async () => {
    const delays = { least: DELAY, most: DELAY, slow: 0 };
    const run = new Run(1, await load(), { hasFaults: true, isTold: true, delays });
    const delay = (ms: number): void => {
      delays.least = ms;
      delays.most = ms;
    };
    try {
      await play(run, delay, body);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      error.message += `\n\n${run.story.lines.slice(-SHOWN).join("\n")}`;
      throw error;
    }
  };
}

async function play(run: Run, delay: Scene["delay"], body: (scene: Scene) => Promise<void>): Promise<void> {
  const { time } = run;
  const directed = new Directed(run, delay);
  const onRejection = (error: unknown): void => run.fail(`unhandled rejection: ${shown(error)}`);
  process.on("unhandledRejection", onRejection);
  try {
    run.isDirected = true;
    run.checks.push(...checksOf(run));
    directed.inspect();
    let ended: { readonly error: unknown } | null = null;
    const end = (error: unknown): void => {
      ended = { error };
    };
    directed.resume(() => void body(directed).then(() => end(null), end));
    await time.run(LONGEST, () => run.isOver || ended !== null);
    const { error } = (ended as { readonly error: unknown } | null) ?? {
      error: new Error(`the scene did not end in ${LONGEST / 3_600_000} h of virtual time`),
    };
    if (run.isOver) throw new Error(run.story.failure ?? "");
    if (error !== null) throw error;
    await directed.end();
    if (run.isOver) throw new Error(run.story.failure ?? "");
  } finally {
    process.off("unhandledRejection", onRejection);
  }
}

/** A holder whose key Redis has lost does not know that yet. */
const BELIEVES = /believes that it holds it, and Redis has no hold of it/;

/** No caller takes a member of a multi-lock on its own. */
const UNWANTED = /in which no caller has it or wants it/;

const shown = (error: unknown): string => (error as Error | null)?.stack ?? String(error);

class Directed implements Scene {
  readonly redis: SceneRedis;
  readonly delay: Scene["delay"];
  readonly #run: Run;
  /** The test: what it waits for comes in events of its own. */
  readonly #director: Actor = { busyUntil: 0, isDead: false };
  readonly #all: SceneProcess[] = [];
  /** Members of multi-locks, which are held while others are waited for. */
  readonly #taken = new Set<string>();
  readonly #shown: { readonly broken: RegExp; isShown: boolean }[] = [];

  constructor(run: Run, delay: Scene["delay"]) {
    this.#run = run;
    this.delay = delay;
    const cutAll = (ms: number): void => {
      for (const one of this.#all) if (!one.member.process.isDead) one.cutOff(ms);
    };
    this.redis = new SceneRedis(run, cutAll);
    run.isExcused = (why) => {
      if (this.redis.dropped.some((name) => why.startsWith(`${name}: `) && BELIEVES.test(why))) return true;
      if (UNWANTED.test(why) && [...this.#taken].some((name) => why.includes(`{${name}}`))) return true;
      const found = this.#shown.find(({ broken }) => broken.test(why));
      if (!found) return false;
      found.isShown = true;
      run.story.tell("check", `as the scene shows: ${why}`);
      return true;
    };
  }

  readonly processes = <N extends number>(count: N, options: ClientOptions = {}): List<SceneProcess, N> => {
    const { leaseTime = LEASE_TIME, linger = 0, clockRate: rate = 1, ...more } = options;
    const made = Array.from({ length: count }, () => {
      const member = this.#run.start({ leaseTime, linger, more }, { rate, skew: 0 });
      return new SceneProcess(this.#run, member, this.resume, this.#taken);
    });
    this.#all.push(...made);
    return made as List<SceneProcess, N>;
  };

  /** In an event of the test, now. */
  readonly resume = (go: () => void): void => {
    const { time } = this.#run;
    time.at(time.now, TIMER, this.#director, go);
  };

  readonly pass = (ms: number): Promise<void> => {
    const { time } = this.#run;
    return new Promise((resolve) => void time.at(time.now + ms, TIMER, this.#director, resolve));
  };

  readonly now = (): number => this.#run.time.now;

  readonly until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await this.pass(1);
  };

  readonly timed = async <T>(work: PromiseLike<T>): Promise<{ result: T; took: number }> => {
    const { time } = this.#run;
    const since = time.now;
    return { result: await work, took: time.now - since };
  };

  shows(broken: RegExp): void {
    this.#shown.push({ broken, isShown: false });
  }

  inspect(): void {
    for (const check of this.#run.checks) check.inspect?.();
    const { time } = this.#run;
    time.at(time.now + INSPECT, TIMER, this.#director, () => this.inspect());
  }

  /** The test has ended: all callers have, and what is left in Redis ends with crashed processes. */
  async end(): Promise<void> {
    const run = this.#run;
    const missing = this.#all.flatMap(({ moments }) => moments.missing);
    if (missing.length > 0) throw new Error(`never happened: ${missing.join(", ")}`);
    for (const { broken, isShown } of this.#shown)
      if (!isShown) throw new Error(`the scene did not show ${broken}`);
    const waiting = [...run.requests].map(({ member, name }) => `${member.process.name} for ${name}`);
    if (waiting.length > 0) throw new Error(`callers still wait: ${waiting.join(", ")}`);
    const inside = [...run.holdings.keys()].flatMap((name) =>
      run
        .inside(name)
        .flatMap(({ member, lease }) => (lease.held ? `${member.process.name} in ${name}` : [])),
    );
    if (inside.length > 0) throw new Error(`callers are still inside: ${inside.join(", ")}`);
    const hasCrashed = this.#all.some(({ member }) => member.process.isDead);
    await closeAll(run, hasCrashed ? LEFT + run.server.back : undefined);
    if (run.isOver) return;
    const left = [
      ...owners(run).map(({ key, hold }) => `${key} (${hold})`),
      ...entries(run).map(({ name, entry }) => `the queue of ${name} (${entry})`),
    ];
    if (left.length > 0) throw new Error(`left in Redis after close(): ${left.join(", ")}`);
  }
}
