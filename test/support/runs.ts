import { setTimeout as delay } from "node:timers/promises";
import type { LockClient, OnceOptions } from "../../src/index.ts";

/** Three callers that call `runOnce` repeatedly for this many ms; when their bodies began. */
export async function callOnce(
  locks: LockClient,
  name: string,
  options: OnceOptions,
  pause: number,
  ms: number,
): Promise<number[]> {
  const begins: number[] = [];
  const until = performance.now() + ms;
  const call = async (): Promise<void> => {
    while (performance.now() < until) {
      await locks.runOnce(name, options, ({ begin }) => void begins.push(begin));
      await delay(pause);
    }
  };
  await Promise.all([call(), call(), call()]);
  return begins;
}
