import { setTimeout as delay } from "node:timers/promises";
import type { Ask, Release, Session } from "../contenders/contender.ts";
import { heap } from "./heap.ts";
import type { Still, Stood } from "./protocol.ts";
import { Troubles } from "./troubles.ts";

/** So many acquisitions are asked for at a time: filling is not what is measured. */
const AT_A_TIME = 200;
/** ms until what parking itself allocated is garbage and first re-checks are over. */
const SETTLE = 2_000;
const FOR_LONG: Ask = { wait: 600_000, lease: null, isWriter: false };

/** What a process needs to measure one that stands still. */
interface Bench {
  /** Another client of the library. */
  open(): Promise<Session>;
  readonly commands: () => number | null;
  /** CPU time of the server, in µs. */
  readonly redisCpu: () => Promise<number>;
  readonly progress: (acquired: number) => void;
}

/** Ten thousand callers that hold, or that wait, and what they cost while nothing happens. */
export async function standStill(still: Still, session: Session, bench: Bench): Promise<Stood> {
  const troubles = new Troubles();
  const measure = still.is === "held" ? held : parked;
  const { lost, started, settled, bytes, redisCpu } = await measure(still, bench, session, troubles);
  return {
    is: "stood",
    watched: settled.at - started.at,
    commands:
      settled.commands === null || started.commands === null ? null : settled.commands - started.commands,
    cpu: settled.cpu - started.cpu,
    redisCpu,
    bytesEach: bytes / still.callers,
    timers: started.timers,
    lost,
    messages: troubles.messages,
  };
}

async function held(still: Still, bench: Bench, session: Session, troubles: Troubles) {
  const before = heap();
  const releases: Release[] = [];
  for (let next = 0; next < still.callers; next += AT_A_TIME) {
    const many = Array.from({ length: Math.min(AT_A_TIME, still.callers - next) }, async (_, i) => {
      const release = await session.acquire(`held:${next + i}`, FOR_LONG);
      if (release) releases.push(release);
    });
    for (const outcome of await Promise.allSettled(many))
      if (outcome.status === "rejected") troubles.add(outcome.reason);
    bench.progress(releases.length);
  }
  const watched = await watch(still, bench, before);
  let lost = still.callers - releases.length;
  for (let next = 0; next < releases.length; next += AT_A_TIME) {
    const outcomes = await Promise.allSettled(
      releases.slice(next, next + AT_A_TIME).map((release) => release()),
    );
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled") continue;
      lost++;
      troubles.add(outcome.reason);
    }
  }
  return { ...watched, lost };
}

async function parked(still: Still, bench: Bench, session: Session, troubles: Troubles) {
  const holder = await bench.open();
  await holder.acquire("parked", FOR_LONG);
  // The subscriber, the compiled code and one caller's worth of everything else are not the waiters' cost.
  void session.acquire("parked", FOR_LONG).catch((error) => troubles.add(error));
  await delay(SETTLE);
  const before = heap();
  let ended = 0;
  for (let i = 1; i < still.callers; i++) {
    session.acquire("parked", FOR_LONG).then(
      () => ended++,
      (error) => {
        ended++;
        troubles.add(error);
      },
    );
  }
  const watched = await watch(still, bench, before);
  return { ...watched, lost: ended };
}

/** Lets everything settle, and measures what standing still costs. `before`: the heap without the callers. */
async function watch(still: Still, bench: Bench, before: number) {
  await delay(SETTLE);
  const bytes = heap() - before;
  const redisBefore = await bench.redisCpu();
  const started = snapshot(bench);
  await delay(still.watch);
  const settled = snapshot(bench);
  const redisCpu = (await bench.redisCpu()) - redisBefore;
  return { started, settled, bytes, redisCpu };
}

function snapshot(bench: Bench) {
  const { user, system } = process.cpuUsage();
  const timers = process.getActiveResourcesInfo().filter((what) => what === "Timeout").length;
  return { at: performance.now(), cpu: user + system, timers, commands: bench.commands() };
}
