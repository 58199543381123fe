// A process that calls `once` every 10 ms: `node caller.js <url>`. It begins when it is told until
// when, and tells what ran.
import { setTimeout as delay } from "node:timers/promises";
import { createLockClient } from "../../src/index.ts";
import { connect } from "../contenders/connect.ts";
import { micros } from "../workers/clock.ts";
import { Troubles } from "../workers/troubles.ts";

/**
 * `ran`: when a run began, by the server's clock in ms, and when its body did, in µs of the clock
 * of all processes.
 */
export type Called =
  | { readonly is: "ready" }
  | { readonly is: "ran"; readonly begin: number; readonly at: number }
  | {
      readonly is: "done";
      readonly calls: number;
      readonly errors: number;
      readonly messages: readonly string[];
    };

export interface Calling {
  readonly every: number;
  readonly pause: number;
  /** µs of the clock of all processes. */
  readonly until: number;
}

const tell = (what: Called): void => void process.send?.(what);

const locks = createLockClient(await connect(process.argv[2] ?? ""));
process.once("disconnect", () => process.exit());
process.once("message", async ({ every, pause, until }: Calling) => {
  const troubles = new Troubles();
  let calls = 0;
  let next = micros();
  for (; micros() < until; calls++) {
    await locks
      .runOnce("bench", { every }, ({ begin }) => tell({ is: "ran", begin, at: micros() }))
      .catch((error) => troubles.add(error));
    // What was missed is not made up for.
    next = Math.max(next + pause * 1_000, micros());
    await delay((next - micros()) / 1_000);
  }
  tell({ is: "done", calls, errors: troubles.count, messages: troubles.messages });
});
tell({ is: "ready" });
