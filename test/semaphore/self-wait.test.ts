import { expect, it, onTestFinished, vi } from "vitest";
import { CountedKind } from "../../src/wires/counted.ts";
import { CountedCalls } from "../support/counted-calls.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { until } from "../support/until.ts";

it("a caller whose process holds permits gets a warning of a deadlock only if it waits for these", async () => {
  const parties = new Parties();
  const warned: string[] = [];
  const watch = ({ message }: Error): void => void warned.push(message);
  const looked = vi.spyOn(CountedKind.prototype, "look");
  process.on("warning", watch);
  onTestFinished(async () => {
    process.off("warning", watch);
    looked.mockRestore();
    await parties.close();
  });
  const { locks } = await parties.join();
  const slots = locks.semaphore(freshName(), { permits: 3 });
  const calls = new CountedCalls((await parties.join()).redis, slots.name);
  onTestFinished(() => calls.end());
  const told: unknown[] = [];
  locks.on("wait", ({ heldBy, units, call }) => told.push([call, heldBy, units]));
  // A caller is warned after two of its own leases: those that wait have short ones, so that what
  // is held outlives a busy machine.
  const short = { lease: 500 };
  const [mine, theirs] = [await slots.acquire(), calls.hold("another-process")];
  await calls.attempt(theirs, { units: 2, upTo: 2, permits: 3 });

  // Another process has what it waits for.
  const plain = slots.acquire(2, short);
  await until(() => looked.mock.settledResults.some(({ type }) => type === "fulfilled"));
  expect([told, warned]).toEqual([[[2, "unknown", 2]], []]);
  await calls.release(theirs);
  await plain; // ends by itself

  // Its own process has all that there is.
  const rest = await slots.acquire(2);
  told.length = 0;
  const stuck = slots.acquire(1, short);
  await until(() => warned.length > 0);
  expect(told).toEqual([
    [4, "unknown", 1],
    [4, "this client", 1],
  ]);
  expect(warned).toEqual([
    expect.stringMatching(/for a permit of 'test:.*', of which this process \(pid \d+\)/),
  ]);
  await mine.release();
  await stuck;
  await rest.release();
});
