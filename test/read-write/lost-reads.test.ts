import { expect, it, onTestFinished } from "vitest";
import type { Lease } from "../../src/index.ts";
import { freshName, Parties } from "../support/fixture.ts";

it("a hold that Redis reports as gone admits no reader that a listener starts", async () => {
  const parties = new Parties();
  onTestFinished(parties.close);
  const { redis, locks } = await parties.join();
  const name = freshName();
  const { read } = locks.readWriteLock(name);
  await read.withLock(() => {});
  const passed: boolean[] = [];
  const tried: Promise<Lease | null>[] = [];
  let other: Lease | null = null;
  const body = async (): Promise<void> => {
    other = await locks.outside(() => read.lock());
    await redis.del(`holdfast:rw:{${name}}`);
    locks.on("acquire", (told) => passed.push(told.passed));
    locks.once("lost", () => tried.push(locks.outside(() => read.tryLock())));
  };
  await expect(read.withLock({ confirm: true }, body)).rejects.toMatchObject({ code: "LOCK_LOST" });
  const [lease] = await Promise.all(tried);
  expect([lease?.held, passed]).toEqual([true, [false]]);
  await lease?.unlock();
  await (other as Lease | null)?.unlock().catch(() => {});
});
