import { once } from "node:events";
import { createLockClient } from "holdfast";
import { connect, figure, ms, prove, startProcess, until, word } from "./support.ts";

const redis = connect();
const locks = createLockClient(redis);
const [, , role, key = ""] = process.argv;

/** The expensive work. It takes until the test lets it end, here in Redis. */
async function load(id: string, signal: AbortSignal): Promise<{ rows: number; by: number }> {
  const rows = await redis.incr(`loads:${id}`);
  await until("the report is done", async () => signal.aborted || (await redis.exists(`done:${id}`)) === 1);
  signal.throwIfAborted();
  return { rows, by: process.pid };
}

// #region cached
/** The report, for all callers of all processes. One of them loads it, at most once a minute. */
async function cached(id: string): Promise<{ rows: number }> {
  const { value } = await locks.remember(`report:${id}`, { keep: 60_000 }, (run) => load(id, run.signal));
  return value;
}
// #endregion

const PROCESSES = 16;
const CALLERS = 1_000;

/** Of Redis: scripts that ran, messages of all kinds, and those that tell a process of a result. */
interface Counts {
  readonly scripts: number;
  readonly messages: number;
  readonly told: number;
}

/** What Redis has done so far. Counted without MONITOR, which would slow down what is measured. */
async function countTold(): Promise<{ counts: () => Promise<Counts>; quit: () => Promise<unknown> }> {
  let told = 0;
  const messages = connect();
  messages.on("pmessage", (_pattern, _channel, text: string) => {
    if (text.startsWith("ready ")) told++;
  });
  await messages.psubscribe("*");
  const counts = async (): Promise<Counts> => {
    const calls: Record<string, number> = {};
    const stats = await redis.info("commandstats");
    // An EVALSHA that fails does not know the script yet, and is an EVAL then.
    for (const [, name = "", all, failed] of stats.matchAll(
      /^cmdstat_(\w+):calls=(\d+),.*?failed_calls=(\d+)/gm,
    ))
      calls[name] = Number(all) - Number(failed);
    const { eval: full = 0, evalsha = 0, fcall = 0, publish = 0, spublish = 0 } = calls;
    await messages.ping(); // what was published before has arrived
    return { scripts: full + evalsha + fcall, messages: publish + spublish, told };
  };
  return { counts, quit: () => messages.quit() };
}

const minus = (one: Counts, other: Counts): Counts => ({
  scripts: one.scripts - other.scripts,
  messages: one.messages - other.messages,
  told: one.told - other.told,
});

/** A process that receives no messages yet asks again after 100, 200, 400 ms …: one script each. */
const tries = (time: number): number => (time < 100 ? 0 : 1 + Math.ceil(Math.log2(time / 100)));

/** A process may test its channel again after 5 s. */
const probes = (time: number): number => Math.floor(time / 5_000);

/** One in the queue re-checks every 1.5 s, give or take a quarter. */
const rechecks = (time: number): number => Math.floor(time / 1_125) + probes(time);

if (role !== undefined) {
  process.on("message", async ([round, callers]: [string, number]) => {
    const reports = await Promise.all(Array.from({ length: callers }, () => cached(`${key}-${round}`)));
    process.send?.(JSON.stringify(reports));
  });
  await redis.ping();
  process.send?.("ready");
  await once(process, "disconnect");
  await locks.close();
  await redis.quit();
} else {
  const name = `${process.pid}`;
  const fleet = Array.from({ length: PROCESSES }, () => startProcess(import.meta.url, "process", name));
  await Promise.all(fleet.map(word));
  const { counts, quit } = await countTold();

  /** All callers come at once, and the work ends when all processes but one wait. */
  const stampede = async (round: string): Promise<{ ran: Counts; queued: number; took: number }> => {
    const id = `${name}-${round}`;
    const before = await counts();
    const began = performance.now();
    const answers = fleet.map(word);
    fleet.forEach((child, i) => {
      child.send([round, Math.floor(CALLERS / PROCESSES) + (i < CALLERS % PROCESSES ? 1 : 0)]);
    });
    const queue = `holdfast:remember:{report:${id}}:queue`;
    await until("the others wait", async () => (await redis.zcard(queue)) === PROCESSES - 1);
    const queued = performance.now() - began;
    await redis.set(`done:${id}`, 1);
    const reports = (await Promise.all(answers)).flatMap((all) => JSON.parse(all) as object[]);
    const took = performance.now() - began;
    const ran = minus(await counts(), before);
    prove((await redis.get(`loads:${id}`)) === "1", "1 000 callers in 16 processes load once");
    prove(reports.length === CALLERS, "all of them are answered");
    prove(new Set(reports.map((report) => JSON.stringify(report))).size === 1, "with one report");
    figure(
      `1 000 callers in 16 processes, ${round} round`,
      `${ran.scripts} scripts, ${ran.messages} messages, of them ${ran.told} of the result; ` +
        `all answered ${ms(took - queued)} after the end`,
    );
    return { ran, queued, took };
  };

  // Each process tries, probes its channel, queues, and reads: all but one, which runs and stores.
  const first = await stampede("first");
  prove(
    first.ran.scripts <= 65 + 15 * (tries(first.queued) + rechecks(first.took)),
    `about 65 scripts: ${first.ran.scripts} in ${ms(first.took)}`,
  );
  // Callers beside the one that runs may queue, too, where Redis has not known the script that stores.
  prove(first.ran.told === 15 || first.ran.told === 16, `a message for each process: ${first.ran.told}`);

  // Their channels are known: each process queues and reads.
  const second = await stampede("second");
  prove(
    second.ran.scripts <= 35 + tries(second.queued) + 15 * rechecks(second.took),
    `about 32 scripts: ${second.ran.scripts} in ${ms(second.took)}`,
  );
  prove(second.ran.told === 15, `a message for each process that waits: ${second.ran.told}`);
  const others = [first, second].reduce((sum, { ran }) => sum + ran.messages - ran.told, 0);
  prove(others <= PROCESSES * (1 + probes(first.took + second.took)), `other messages are probes: ${others}`);

  // A hit.
  const before = await counts();
  prove((await cached(`${name}-second`)).rows === 1, "a later caller gets the report");
  const hit = minus(await counts(), before);
  prove(hit.scripts === 1 && hit.messages === 0, `by one command: ${JSON.stringify(hit)}`);

  for (const child of fleet) child.disconnect();
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  for (const round of ["first", "second"]) {
    await locks.forget(`report:${name}-${round}`);
    await redis.del(`loads:${name}-${round}`, `done:${name}-${round}`);
  }
  await quit();
  await locks.close();
  await redis.quit();
}
