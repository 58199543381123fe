// One worker process: a lock library, its callers, and a line to the coordinator.
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { Redis } from "ioredis";
import { countCommands } from "../../tools/redis/count-commands.ts";
import { contenders } from "../contenders/all.ts";
import type { Session } from "../contenders/contender.ts";
import { serverState } from "../redis/server-state.ts";
import { Callers, cpuMicros } from "./callers.ts";
import { micros } from "./clock.ts";
import type { Job, Load, Report, Start, Word } from "./protocol.ts";
import { countWrites } from "./socket-writes.ts";
import { standStill } from "./still.ts";

const PROGRESS_EVERY = 250;
/**
 * V8 compiles what has run often. A service has run for hours; here 32 processes run each for
 * seconds, and would be measured in the interpreter: a hand-off of Holdfast took 1 214 µs of CPU
 * time there, of the floor's token 507 µs; with an earlier compiler 735 and 301.
 */
const COMPILE_EARLY = "--interrupt-budget=10000";

const sent = countCommands();
const written = countWrites();

function report(what: Report): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}

async function prepare(job: Job): Promise<(start: Start) => Promise<void>> {
  const contender = contenders[job.contender];
  if (!contender) throw new Error(`There is no contender '${job.contender}'`);
  const session = await contender.open(job.url, job);
  const commands = (): number | null => session.commands?.() ?? sent();
  return async ({ load, from, until, compileEarly }) => {
    if (compileEarly) setFlagsFromString(COMPILE_EARLY);
    // RACE: a timer may ring before its time by a part of a millisecond, and what a caller gets
    // before the start does not count.
    for (let left = from - micros(); left > 0; left = from - micros()) await delay(Math.ceil(left / 1_000));
    if (load.is === "load") await runLoad({ session, job, load, until, commands });
    else {
      const redis = new Redis(job.url);
      const redisCpu = async () => (await serverState(redis)).cpu;
      const progress = (acquired: number) => report({ is: "progress", acquired });
      const again = () => contender.open(job.url, job);
      report(await standStill(load, session, { open: again, commands, redisCpu, progress }));
    }
  };
}

interface Run {
  readonly session: Session;
  readonly job: Job;
  readonly load: Load;
  readonly until: number;
  readonly commands: () => number | null;
}

async function runLoad({ session, job, load, until, commands }: Run): Promise<void> {
  const callers = new Callers(session, job, load);
  const before = { cpu: cpuMicros(), commands: commands(), writes: written() };
  const progress = setInterval(
    () => report({ is: "progress", acquired: callers.samples.count }),
    PROGRESS_EVERY,
  );
  await callers.run(until);
  clearInterval(progress);
  const cpu = cpuMicros() - before.cpu;
  const after = commands();
  report({
    is: "done",
    samples: callers.samples.toBase64(),
    acquired: callers.samples.count,
    commands: after === null || before.commands === null ? null : after - before.commands,
    writes: written() - before.writes,
    cpu,
    cpuAt: callers.cpuAt.map((at) => at - before.cpu),
    timeouts: callers.timeouts,
    errors: callers.troubles.count,
    messages: callers.troubles.messages,
  });
}

function fail(error: unknown): void {
  report({ is: "failed", why: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
  process.exitCode = 1;
  setImmediate(() => process.exit());
}

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);

let start: ((word: Start) => Promise<void>) | undefined;
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const said = JSON.parse(line) as Job | Word;
  if (!("do" in said)) {
    prepare(said).then((ready) => {
      start = ready;
      report({ is: "ready" });
    }, fail);
  } else if (said.do === "start") start?.(said).catch(fail);
  // The coordinator has its figures; whatever a library leaves open must not keep it waiting.
  else process.exit();
});
lines.on("close", () => process.exit());
