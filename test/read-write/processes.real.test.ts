// On a real Redis; in virtual time: test/world/directed/read-write.test.ts,
// test/world/directed/read-write-joins.test.ts.

import { expect, it } from "vitest";
import type { ReadWriteLock } from "../../src/index.ts";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// A process that reads dies, or stands still, while another one reads and a writer waits.

const own = new OwnServer();
/** The lease of the readers in that process, in ms. */
const LEASE = 2_000;

const locks = async (name: string): Promise<ReadWriteLock> =>
  (await own.parties.join({ url: own.url })).locks.readWriteLock(name);

/** Two readers in a process of its own, one here, and a writer that waits. */
async function scene() {
  const name = freshName();
  const actor = await Actor.start({ url: own.url, client: { leaseTime: LEASE } });
  const rw = await locks(name);
  const read = () => actor.call("acquire", "readLock", name, 0);
  const readers = [await read(), await read()];
  const here = await rw.read.lock();
  const write = (await locks(name)).write.lock();
  await until(async () => (await rw.inspect()).waiters.length === 1, { what: "a writer that waits" });
  expect((await rw.inspect()).holders).toHaveLength(2);
  return { actor, rw, read, here, write, handles: readers.map((one) => one?.handle ?? -1) };
}

it("a killed reader delays the writer by its lease, and no longer", async () => {
  const { actor, rw, here, write } = await scene();
  actor.kill();
  await actor.exit;
  await here.unlock();
  const [dead] = (await rw.inspect()).holders;
  const since = performance.now();
  const writer = await write;
  // Its lease is over in Redis; the writer looks again behind that.
  expect(performance.now() - since).toBeGreaterThan((dead?.remaining ?? 0) - 50);
  expect(performance.now() - since).toBeLessThan(LEASE + 5_000);
  expect(writer.token).toBeGreaterThan(dead?.token ?? 0);
  await writer.unlock();
});

it("a stopped reader delays the writer by its lease, and its leases are over when it resumes", async () => {
  const { actor, rw, read, here, write, handles } = await scene();
  actor.kill("SIGSTOP");
  await here.unlock();
  const writer = await write;
  actor.kill("SIGCONT");
  for (const handle of handles) {
    expect(await actor.call("state", handle)).toMatchObject({ held: false, aborted: true });
    await expect(actor.call("unlock", handle)).rejects.toMatchObject({ code: "LOCK_LOST" });
  }
  // Nor do others of its process come into what it had, and nothing of that touches the writer.
  expect(await read()).toBeNull();
  expect(await rw.inspect()).toMatchObject({ mode: "write", holders: [{ token: writer.token }] });
  await writer.unlock();
  expect((await read())?.token).toBeGreaterThan(writer.token);
  await actor.end();
});
