import { print } from "../../demo/terminal.ts";
import { inMs, NONE, short } from "../report/numbers.ts";
import { micros } from "../workers/clock.ts";
import type { Called, Calling } from "./caller.ts";
import type { Fleet } from "./fleet.ts";
import { Processes } from "./processes.ts";

const PROCESSES = 32;
const EVERY = 1_000;
const PAUSE = 10;
const START_WITHIN = 120_000;
const FINISH_WITHIN = 30_000;

/** Every process of a fleet calls far more often than the interval is long. */
export const once = (seconds: number): Fleet => ({
  name: "once",
  about: `${PROCESSES} processes call locks.once every ${PAUSE} ms, with every: ${EVERY}: how often it runs, and how far apart`,

  async measure(url, _seed, signal) {
    const begins: number[] = [];
    const bodies: number[] = [];
    const done: Extract<Called, { is: "done" }>[] = [];
    let ready = 0;
    const callers = new Processes<Called>("caller.js", [url], signal, (said) => {
      if (said.is === "ready") ready++;
      else if (said.is === "done") done.push(said);
      else {
        begins.push(said.begin);
        bodies.push(said.at / 1_000);
      }
    });
    try {
      for (let i = 0; i < PROCESSES; i++) callers.start();
      await callers.until("all processes are connected", () => ready === PROCESSES, START_WITHIN);
      const calling: Calling = { every: EVERY, pause: PAUSE, until: micros() + seconds * 1_000_000 };
      callers.tellAll(calling);
      const within = seconds * 1_000 + FINISH_WITHIN;
      await callers.until("all processes have called", () => done.length === PROCESSES, within);
    } finally {
      await callers.end();
    }
    const least = leastDistance(begins);
    const calls = done.reduce((sum, one) => sum + one.calls, 0);
    const errors = done.reduce((sum, one) => sum + one.errors, 0);
    print(`once  ${this.about}; ${seconds} s`);
    print(`  runs                                  ${begins.length}`);
    print(`  least distance by the server's clock  ${textOf(least)}`);
    print(`  the same as the bodies saw it         ${textOf(leastDistance(bodies))}`);
    print(`  calls/s, and those that failed        ${short(calls / seconds)}, ${errors}`);
    for (const message of new Set(done.flatMap(({ messages }) => messages))) print(`    ${message}`);
    print();
    return errors === 0 && begins.length > 0 && (least === null || least >= EVERY);
  },
});

const textOf = (ms: number | null): string => (ms === null ? NONE : inMs(ms));

/** Null: there are fewer than two. */
function leastDistance(moments: readonly number[]): number | null {
  const ascending = Float64Array.from(moments).sort();
  const distances = ascending.subarray(1).map((moment, i) => moment - (ascending[i] ?? 0));
  return distances.length === 0 ? null : Math.min(...distances);
}
