import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { print } from "../../demo/terminal.ts";
import { seeded } from "../../tools/numbers.ts";
import { median } from "../figures/statistics.ts";
import { inMs } from "../report/numbers.ts";
import { micros } from "../workers/clock.ts";
import type { Campaigned } from "./candidate.ts";
import type { Fleet } from "./fleet.ts";
import { Processes } from "./processes.ts";

const CANDIDATES = 3;
const LEASE = 2_000;
/** A leader renews its term every third of the lease: at whatever moment between two renewals it dies. */
const LEADS_UP_TO = LEASE / 3;
const START_WITHIN = 60_000;
const LEAD_WITHIN = 30_000;

/** A leader, as its process told it. `at`: µs of the clock of all processes. */
interface Reign {
  readonly process: ChildProcess;
  readonly token: number;
  readonly at: number;
}

/** Leaders that crash, one after the other; another candidate comes for each. */
export const election = (kills: number): Fleet => ({
  name: "election",
  about: `${CANDIDATES} candidates, lease ${LEASE}: the leader is killed, again and again: how long until the next one leads`,

  async measure(url, seed, signal) {
    const random = seeded(seed);
    const reigns: Reign[] = [];
    const waiting = new Set<ChildProcess>();
    const troubles: string[] = [];
    const candidates = new Processes<Campaigned>(
      "candidate.js",
      [url, String(LEASE)],
      signal,
      (said, process) => {
        if (said.is === "waits") waiting.add(process);
        else if (said.is === "failed") troubles.push(said.why);
        else {
          // Two at a time: the one before is alive, and nobody has killed it.
          if (reigns.at(-1)?.process.killed === false)
            troubles.push(`two lead at a time, token ${said.token}`);
          waiting.delete(process);
          reigns.push({ process, token: said.token, at: said.at });
        }
      },
    );
    const times: number[] = [];
    try {
      for (let i = 0; i < CANDIDATES; i++) candidates.start();
      await candidates.until("a first one leads", () => reigns.length > 0, START_WITHIN);
      while (times.length < kills) {
        const isFull = () => waiting.size === CANDIDATES - 1;
        await candidates.until("the others wait", isFull, START_WITHIN);
        await delay(random() * LEADS_UP_TO, undefined, { signal });
        const killed = micros();
        const before = reigns.length;
        reigns.at(-1)?.process.kill("SIGKILL");
        candidates.start();
        await candidates.until("another one leads", () => reigns.length > before, LEAD_WITHIN);
        times.push(((reigns[before]?.at ?? 0) - killed) / 1_000);
      }
    } finally {
      await candidates.end();
    }
    const back = reigns.filter(({ token }, i) => token <= (reigns[i - 1]?.token ?? 0));
    print(`election  ${this.about}`);
    print(`  leaders killed              ${kills}, seed ${seed}`);
    print(`  take-over, median, longest  ${inMs(median(times))}, ${inMs(Math.max(...times))}`);
    print(`  tokens that did not grow    ${back.length}`);
    for (const trouble of new Set(troubles)) print(`    ${trouble}`);
    print();
    return back.length === 0 && troubles.length === 0;
  },
});
