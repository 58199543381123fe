// Twenty pods have the same timer: the report of each hour is sent once.
//
// Runs without Redis, and its hours take no time. In a service, createLockClient(redis) takes the
// place of createTestLocks(), and setInterval(tick, MINUTE) that of the loop below.
import assert from "node:assert/strict";
import type { LockClient } from "holdfast";
import { createTestLocks } from "holdfast/testing";

const [MINUTE, HOUR] = [60_000, 3_600_000];
const sent: string[] = [];

/** What runs in each pod, every minute. */
class Pod {
  /** The mail server cannot be reached from here. */
  isBroken = false;
  readonly #name: string;
  readonly #locks: LockClient;

  constructor(name: string, locks: LockClient) {
    this.#name = name;
    this.#locks = locks;
  }

  async tick(): Promise<void> {
    // `aligned`: one turn in each hour of the clock, and not one an hour after the last.
    const result = await this.#locks.runOnce("report", { every: HOUR, aligned: true }, async (turn) => {
      const hour = turn.begin - (turn.begin % HOUR); // the hour that the report is for
      await this.#send(new Date(hour).toISOString(), turn.signal);
    });
    if (result.ran) console.log(`${this.#name}: sent`);
  }

  async #send(hour: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.isBroken) throw new Error(`${this.#name}: no mail server`);
    sent.push(hour);
  }
}

const locks = createTestLocks();
const clients = [locks, ...Array.from({ length: 19 }, () => locks.test.another())];
const pods = clients.map((client, i) => new Pod(`pod ${i + 1}`, client));

/** An hour, in whose first two minutes all pods tick. Returns what failed. */
async function hour(): Promise<string[]> {
  const failures: string[] = [];
  for (const fleet of [pods, pods.toReversed()]) {
    const ticks = fleet.map((pod) => pod.tick().catch((error: Error) => failures.push(error.message)));
    await Promise.all(ticks);
    await locks.test.advance(MINUTE);
  }
  await locks.test.advance(HOUR - 2 * MINUTE);
  return failures;
}

assert.deepEqual(await hour(), []);
assert.deepEqual(await hour(), []);
assert.equal(sent.length, 2, "two hours, two reports, from twenty pods");
assert.equal(new Set(sent).size, 2, "each for its own hour");

// A pod fails. Its error reaches its caller, and a pod that ticks later takes the turn.
for (const pod of pods.slice(0, 1)) pod.isBroken = true;
assert.deepEqual(await hour(), ["pod 1: no mail server"]);
console.log("pod 1: could not send the third, so another pod did");
assert.equal(sent.length, 3);

for (const client of clients) await client.close();
