// On a real Redis; in virtual time: test/world/directed/election.test.ts,
// test/world/directed/election-observers.test.ts.

import { expect, it } from "vitest";
import type { Election, Term } from "../../src/index.ts";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { until } from "../support/until.ts";

// The server's clock is set back. A term ends by it, tokens follow it, and observers are told by it
// how long a term lasts.

const LEASE = 4_500;
const { stage, clock } = stageWithClock();

/** `near` leads, and a candidate of `far` waits. */
async function scene(): Promise<{ theirs: Election; term: Term; next: Promise<Term> }> {
  const [mine, theirs] = [stage.near, stage.far].map(({ locks }) =>
    locks.election(stage.lock.name, { lease: LEASE }),
  ) as [Election, Election];
  const term = await mine.campaign({ value: "first" });
  const next = theirs.campaign({ value: "second" });
  return { theirs, term, next };
}

it("a leader whose server's clock goes back by an hour stays and resigns, and the next one leads at once with a larger token", async () => {
  const { theirs, term, next } = await scene();
  clock.jump(-HOUR);
  await new Promise<void>((resolve) => void stage.near.locks.once("renew", () => resolve()));
  expect([term.held, (await theirs.leader())?.token]).toEqual([true, term.token]);
  const since = performance.now();
  await term.resign();
  const second = await next;
  expect(performance.now() - since).toBeLessThan(LEASE); // by its message
  expect(second.token).toBeGreaterThan(term.token);
  await second.resign();
});

it("a crashed leader is shown for the hour by which the clock went back, or until a force-release", async () => {
  const { theirs, term, next } = await scene();
  stage.near.locks.on("error", () => {}); // of renewals
  stage.proxy.refuse(true);
  stage.proxy.cut();
  clock.jump(-HOUR);
  await until(() => !term.held);
  expect((await theirs.leader())?.token).toBe(term.token);
  expect(await theirs.forceResign()).toBe(true);
  const second = await next;
  expect(second.token).toBeGreaterThan(term.token);
  await until(async () => (await theirs.leader())?.value === "second");
  await second.resign();
});
