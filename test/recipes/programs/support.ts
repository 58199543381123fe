import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

export { sleep };

/** A connection to the Redis of this run. */
export function connect(): Redis {
  const { REDIS_URL: url } = process.env;
  if (!url) throw new Error("REDIS_URL is not set: npm run test:recipes sets it");
  return new Redis(url);
}

/** Throws unless the recipe did what its page says. */
export function prove(isTrue: boolean, claim: string): void {
  if (!isTrue) throw new Error(`not so: ${claim}`);
}

/** A measured figure that the page quotes. */
export const figure = (what: string, value: string): void =>
  void process.stdout.write(`    ${what}: ${value}\n`);

export const ms = (time: number): string => (time < 10 ? `${time.toFixed(1)} ms` : `${Math.round(time)} ms`);

export const seconds = (time: number): string => `${(time / 1_000).toFixed(1)} s`;

/** Waits for a condition, for 60 s at the most. */
export async function until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 60_000; !(await isTrue()); await sleep(5))
    if (performance.now() > end) throw new Error(`waited 60 s for this: ${what}`);
}

const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Runs this program once more as another process, which gets the words. It dies with this one. */
export function startProcess(program: string, ...words: string[]): ChildProcess {
  const child = fork(new URL(program), words);
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** The next word that a process says. */
export async function word(child: ChildProcess): Promise<string> {
  const [said] = (await once(child, "message")) as [string];
  return said;
}
