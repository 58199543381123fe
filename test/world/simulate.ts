import { kindsOf, type Plan } from "./callers.ts";
import { checksOf } from "./checks/index.ts";
import { closeAll, closeOne } from "./closing.ts";
import type { Effects } from "./effects.ts";
import { trouble } from "./faults.ts";
import { listen } from "./listeners.ts";
import type { Load } from "./product.ts";
import { Run } from "./run.ts";
import { waysOf } from "./ways.ts";

export interface Options {
  /** Virtual ms; callers come for 70 % of them, faults for 50 %. Default 30 000. */
  readonly ms?: number;
  /** Default: seeds that are even have faults. */
  readonly hasFaults?: boolean;
  /** Keeps the story's lines. Default: false. */
  readonly isTold?: boolean;
  /** Gets the run's Redis, before anything happens. */
  readonly watch?: (redis: Run["server"]["redis"]) => void;
}

export interface Outcome {
  readonly seed: number;
  readonly hasFaults: boolean;
  /** The first broken promise; null: none. */
  readonly failure: string | null;
  /** Of all events: two runs with the same hash were the same. */
  readonly hash: string;
  readonly story: readonly string[];
  /** Of the run, in ms of virtual time. */
  readonly took: number;
  readonly events: number;
  readonly commands: number;
  readonly counts: Run["counts"];
  readonly effects: Effects;
}

/** In ms: for callers and clients to end after the last call. */
const PATIENCE = 60_000;
const INSPECT = 100;
/** Of a run: 30 s of virtual time have some thousands. */
const MOST_EVENTS = 200_000;

/** A run of random callers, with all that is random from the seed. */
export async function simulate(load: Load, seed: number, options: Options = {}): Promise<Outcome> {
  const { ms = 30_000, hasFaults = seed % 2 === 0, isTold = false } = options;
  const run = new Run(seed, load, { hasFaults, isTold });
  options.watch?.(run.server.redis);
  const onRejection = (error: unknown): void =>
    run.fail(`unhandled rejection: ${(error as Error | null)?.stack ?? String(error)}`);
  process.on("unhandledRejection", onRejection);
  try {
    await play(run, ms);
  } catch (error) {
    run.fail(`thrown: ${(error as Error).stack}`);
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  const { story, time, server, counts, effects } = run;
  effects["events of paused processes"] = time.heldUp;
  return {
    seed,
    hasFaults,
    failure: story.failure,
    hash: story.hash,
    story: story.lines,
    took: time.now,
    events: time.count,
    commands: server.count,
    counts,
    effects,
  };
}

async function play(run: Run, ms: number): Promise<void> {
  const { dice, time } = run;
  time.most = MOST_EVENTS;
  run.checks.push(...checksOf(run));
  const names = ["a", "b", "c"].slice(0, dice.whole(1, 3));
  const end = ms * 0.7;
  const plan: Plan = { names, kinds: kindsOf(run), ways: waysOf(run), end };
  let active = 0;
  const start = (): void => {
    const clocks = run.hasFaults
      ? { rate: dice.between(0.995, 1.005), skew: dice.between(-5_000, 5_000) }
      : { rate: 1, skew: 0 };
    const linger = dice.chance(0.3) ? 500 : 0;
    const member = run.start({ leaseTime: dice.whole(3, dice.chance(0.4) ? 5 : 30) * 1_000, linger }, clocks);
    if (dice.chance(0.3)) listen(run, member);
    for (let callers = dice.whole(1, 5); callers > 0; callers--) {
      active++;
      run.callers.set(member, (run.callers.get(member) ?? 0) + 1);
      member.process.soon(() => {
        const go = dice.one(plan.ways);
        go(run, member, plan).then(
          () => {
            // Those of a crashed process are not counted any more.
            if (member.process.isDead) return;
            active--;
            run.callers.set(member, (run.callers.get(member) ?? 0) - 1);
          },
          (error: Error) => run.fail(`a caller failed: ${error.stack}`),
        );
      });
    }
  };
  run.replace = (member) => {
    active -= run.callers.get(member) ?? 0;
    run.crashes++;
    start();
  };
  for (let processes = dice.whole(2, 4); processes > 0; processes--) start();
  if (dice.chance(0.3)) closeOne(run, end, start);
  const inspect = (): void => {
    run.inspected = {};
    for (const check of run.checks) check.inspect?.();
    run.inspected = null;
    time.after(INSPECT, inspect);
  };
  time.after(INSPECT, inspect);
  if (run.hasFaults) trouble(run, ms * 0.5);

  await time.run(ms + PATIENCE, () => run.isOver || (active === 0 && run.beside === 0 && time.now > end));
  if (run.isOver) return;
  if (active > 0 || run.beside > 0) {
    const waiting = [...run.requests].map(
      ({ member, name, since }) => `${member.process.name} for ${name} since ${since.toFixed(0)} ms`,
    );
    return run.fail(
      `${active} callers and ${run.beside} calls beside them never ended; waiting: ${waiting.join(", ") || "none"}`,
    );
  }
  await closeAll(run);
}
