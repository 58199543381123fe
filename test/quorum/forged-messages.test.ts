import { expect, it } from "vitest";
import { Forger } from "../support/forger.ts";
import { QuorumStage, runsQuorum } from "../support/quorum-stage.ts";
import { timed, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The release channels of quorum locks are public: what is said there by a user that may only
// publish leads to a try.

const stage = new QuorumStage(3);

it("forged wake-ups from every node cost at most one try in 50 ms, and a delay of 50 ms", async ({
  annotate,
}) => {
  const [near, far] = [await stage.join({}, "proxies"), await stage.join()];
  const forgers = await Promise.all([1, 2, 3].map((node) => Forger.start(stage.admin(node))));
  const held = await far.locks.lock(stage.name).lock({ lease: 60_000 });
  await until(() => stage.isEverywhere());
  const waiting = near.locks.lock(stage.name).lock();
  await until(() => stage.isHeard());
  const channel = `${stage.key()}:free`;
  stage.proxy(1).record();
  // All nodes tell of the same releases, which never were.
  const flood = (ms: number) => Promise.all(forgers.map((forger) => forger.flood(channel, ms)));
  const [, ms] = await timed(flood(1_500));
  const tries = stage.proxy(1).commands.filter(({ command }) => runsQuorum("acquire")(command)).length;
  await annotate(`${tries} tries in ${ms} ms`);
  expect(tries).toBeGreaterThan(0);
  expect(tries).toBeLessThan(ms / 50 + 3);
  const noise = flood(500);
  const [lease, waited] = await timedAwake(held.unlock().then(() => waiting));
  await annotate(`had after ${waited} ms`);
  expect(waited).toBeLessThan(1_000);
  await lease.unlock();
  await noise;
});
