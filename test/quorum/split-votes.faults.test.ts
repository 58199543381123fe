import { expect, it } from "vitest";
import { EXPIRY_JITTER, RETRY_DELAY } from "../../src/defaults.ts";
import { percentile, seeded } from "../../tools/numbers.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { onScript } from "../support/scripts-sent.ts";
import { until } from "../support/until.ts";

/** The longest pause between two tries after a split vote. */
const PAUSE = RETRY_DELAY + EXPIRY_JITTER;
const TRIALS = 100;
const LATE = 40;

const stage = new QuorumStage(3);

it("split votes of three clients are resolved within five retry delays, in 95 of 100 trials", {
  timeout: 120_000,
}, async () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const next = seeded(seed);
  const parties = await Promise.all([1, 2, 3].map(() => stage.join()));
  await stage.warm(...parties);
  const times: number[] = [];
  let splits = 0;
  for (let trial = 0; trial < TRIALS; trial++) {
    const name = `${stage.name}:${trial}`;
    // Which client asks which node in time: each of them another one.
    const order = [1, 2, 3].sort(() => next() - 0.5);
    for (const [i, { nodes }] of parties.entries())
      for (const [j, node] of nodes.entries())
        if (j + 1 !== order[i]) delayFirstVote(node, LATE + next() * 5);
    const start = performance.now();
    const calls = parties.map(async ({ locks }) => {
      const lease = await locks.lock(name).lock({ lease: 30_000 });
      times[trial] ??= performance.now() - start;
      return lease.unlock();
    });
    await until(
      async () =>
        (await stage.holders(name)).every((holder) => holder !== null) || times[trial] !== undefined,
    );
    if (new Set(await stage.holders(name)).size === 3) splits++;
    await Promise.all(calls);
  }
  const sorted = [...times].sort((a, b) => a - b);
  const inTime = times.filter((ms) => ms <= LATE + 5 * PAUSE).length;
  const shown = [0.5, 0.9, 0.95, 0.99, 1].map(
    (part) => `p${part * 100} ${Math.round(percentile(sorted, part))}`,
  );
  console.log(
    `split votes, ms to the first lease: ${shown.join(", ")}; ${splits} splits seen; HOLDFAST_SEED=${seed}`,
  );
  expect(splits).toBeGreaterThan(TRIALS / 2);
  expect(inTime, `of ${TRIALS} within ${LATE + 5 * PAUSE} ms; HOLDFAST_SEED=${seed}`).toBeGreaterThanOrEqual(
    95,
  );
});

it("of three clients that try once and split the votes, one gets the lock and the others receive that it is held", async () => {
  const parties = await Promise.all([1, 2, 3].map(() => stage.join()));
  await stage.warm(...parties);
  for (let trial = 0; trial < 10; trial++) {
    const name = `${stage.name}:${trial}`;
    for (const [i, { nodes }] of parties.entries())
      for (const [j, node] of nodes.entries()) if (i !== j) delayFirstVote(node, LATE);
    const calls = parties.map(({ locks }) => locks.lock(name).tryLock(0, 10_000));
    await until(async () => new Set(await stage.holders(name)).size === 3); // each has one vote
    const answers = await Promise.all(calls);
    expect(answers.filter((answer) => answer === null).length).toBe(2);
    for (const lease of answers) await lease?.unlock();
  }
});

/** The next vote that is asked for on this connection is sent so many ms later. */
function delayFirstVote(node: Parameters<typeof onScript>[0], ms: number): void {
  const restore = onScript(node, ({ name, args }, send) => {
    if (!runsQuorum("acquire")([name, `${args[0]}`])) return send();
    restore();
    setTimeout(send, ms);
  });
}
