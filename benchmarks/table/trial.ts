// A process that tries one thing with one library: `node trial.js blocked|outage <library> <url>`.
// It says "ready", begins when it reads a line, and prints the ms that it has measured; nothing
// when that does not end.
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { subjects } from "./subjects.ts";

/** A lease that runs out while the event loop is blocked. In ms. */
const LEASE = 2_000;
const BLOCKED = 3_000;

const [trial = "", library = "", url = ""] = process.argv.slice(2);
const subject = await subjects[library]?.(url);
if (!subject) throw new Error(`There is no library '${library}'`);
const name = `table:${library}`;

const begin = async (): Promise<void> => {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
};
const end = (began: number): void => {
  process.stdout.write(`${performance.now() - began}\n`);
};

if (trial === "blocked") {
  let isOver = (): void => {};
  const lost = new Promise<void>((resolve) => {
    isOver = resolve;
  });
  await subject.hold(name, LEASE, isOver);
  await begin();
  await delay(10); // back in the event loop, as a body would be
  const until = performance.now() + BLOCKED;
  while (performance.now() < until);
  const began = performance.now();
  await lost;
  end(began);
} else {
  // Connected, and the scripts are known.
  await (await subject.lock(name))();
  await begin();
  const began = performance.now();
  await subject.lock(name).catch(() => end(began));
}
