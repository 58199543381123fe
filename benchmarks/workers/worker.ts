// One worker process: a lock library, its callers, and a line to the coordinator.
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { countCommands } from "../../tools/redis/count-commands.ts";
import { contenders } from "../contenders/all.ts";
import type { Session } from "../contenders/contender.ts";
import { serverState } from "../redis/server-state.ts";
import { Callers } from "./callers.ts";
import type { Job, Load, Report, Start, Word } from "./protocol.ts";
import { countWrites } from "./socket-writes.ts";
import { standStill } from "./still.ts";

const PROGRESS_EVERY = 250;

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
  return async ({ load, until }) => {
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
  const before = { cpu: process.cpuUsage(), commands: commands(), writes: written() };
  const progress = setInterval(
    () => report({ is: "progress", acquired: callers.samples.count }),
    PROGRESS_EVERY,
  );
  await callers.run(until);
  clearInterval(progress);
  const { user, system } = process.cpuUsage(before.cpu);
  const after = commands();
  report({
    is: "done",
    samples: callers.samples.toBase64(),
    acquired: callers.samples.count,
    commands: after === null || before.commands === null ? null : after - before.commands,
    writes: written() - before.writes,
    cpu: user + system,
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
