// On a real Redis; in virtual time: test/world/directed/endings.test.ts.

import { expect, it } from "vitest";
import { type LockError, LockUnavailableError } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// What `using` does not wait for, and `await using` does: a server that stands still while the block ends.

const own = new OwnServer();

const client = () => own.parties.join({ url: own.url, client: { leaseTime: 30_000, replyTimeout: 2_000 } });

it("`using` goes on before Redis answers, throws nothing, and reports a failure as an error event", async () => {
  const { locks } = await client();
  const errors: Error[] = [];
  locks.on("error", (error) => errors.push(error));
  const order: string[] = [];
  try {
    {
      using lease = await locks.lock(freshName()).lock();
      order.push(`held ${lease.held}`);
      own.server.suspend();
    }
    order.push(`after the block, errors: ${errors.length}`);
    await until(() => errors.length > 0);
  } finally {
    own.server.resume();
  }
  expect(order).toEqual(["held true", "after the block, errors: 0"]);
  expect(errors[0]).toBeInstanceOf(LockUnavailableError);
});

it("`using` of several locks reports the failure of each as an error event of its own", async () => {
  const { locks } = await client();
  const errors: LockError[] = [];
  locks.on("error", (error) => errors.push(error));
  const names = [freshName(), freshName()].sort();
  try {
    {
      using lease = await locks.multiLock(names).lock();
      expect(lease.held).toBe(true);
      own.server.suspend();
    }
    await until(() => errors.length === 2);
  } finally {
    own.server.resume();
  }
  expect(errors.every((error) => error instanceof LockUnavailableError)).toBe(true);
  expect(errors.map(({ lockName }) => lockName).sort()).toEqual(names);
});

it("`await using` waits for the answer; without one the block keeps its outcome, and an event says so", async () => {
  const { locks } = await client();
  const told: Error[] = [];
  locks.on("error", (error) => told.push(error));
  const block = async () => {
    await using lease = await locks.lock(freshName()).lock();
    own.server.suspend();
    return lease.held;
  };
  expect(await block().finally(() => own.server.resume())).toBe(true);
  expect(told).toEqual([expect.any(LockUnavailableError)]);
});
