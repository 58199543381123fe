import { afterAll, describe, expect, it } from "vitest";
import { LockLostError, LockTimeoutError } from "../../src/index.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { Onlooker } from "../support/onlooker.ts";
import { until } from "../support/until.ts";

// What the errors of a lock that is held too long, or lost, say of the cause.

const parties = new Parties();
afterAll(parties.close);

/** The lock's value when it is another client's, and has been somebody's without a gap since long after our hold. */
const OTHERS =
  "10 9000000000000001 9000000000000000 holdfast:client:host:1:0123456789abcdef:000000010123456789abc";

const failure = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

describe("LockTimeoutError says where the holder is", () => {
  it.for(["lock", "fairLock", "redissonLock", "spinLock"] as const)("this process: %s", async (kind) => {
    const { locks } = await parties.join();
    const lock = locks[kind](freshName());
    await using held = await lock.lock();
    const error = await failure(lock.lock({ wait: 30 }));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({
      heldBy: "this process",
      message: expect.stringMatching(
        /was held by this process itself when the 30 ms were over .*nest withLock\(\)/,
      ),
    });
    expect(held.held).toBe(true);
  });

  it("this process, of a multi-lock", async () => {
    const { locks } = await parties.join();
    const names = [freshName(), freshName()];
    await using held = await locks.lock(names[0] as string).lock();
    const error = await failure(locks.multiLock(names).lock({ wait: 30 }));
    expect(error).toMatchObject({
      heldBy: "this process",
      lockName: held.name,
      message: expect.stringContaining(
        "held by this process itself when the 30 ms were over in which this call wanted it and 1 more",
      ),
    });
  });

  it("this scope, which has lent it to another body", async () => {
    const { locks } = await parties.join();
    const lock = locks.lock(freshName());
    const errors = await lock.withLock(() =>
      Promise.all([
        failure(lock.withLock(() => until(() => false, { timeout: 100 }).catch(() => "done"))),
        failure(lock.withLock(() => "never", { wait: 20 })),
      ]),
    );
    expect(errors).toMatchObject([
      "done",
      {
        heldBy: "this scope",
        message: expect.stringMatching(
          /was held by this scope itself, and lent to another body in it, when the 20 ms were over/,
        ),
      },
    ]);
  });

  it("somebody else", async () => {
    const [near, far] = await Promise.all([parties.join(), parties.join()]);
    const name = freshName();
    await using held = await far.locks.lock(name).lock();
    const error = await failure(near.locks.lock(name).lock({ wait: 20 }));
    expect(error).toMatchObject({
      heldBy: "somebody else",
      message: expect.stringContaining("was held by somebody else for all of the 20 ms"),
    });
    expect(held.held).toBe(true);
  });
});

describe("LockLostError says what ran out, and how long it was", () => {
  const lose = async (options: object, extension?: number): Promise<string> => {
    const { locks } = await parties.join();
    const lease = await locks.lock(freshName()).lock(options);
    if (extension) await lease.extend(extension);
    await until(() => lease.signal.aborted);
    const error = await failure(lease.unlock());
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ reason: "expired" });
    return (error as Error).message;
  };

  it("the lease, which was meant to be in seconds", async () => {
    expect(await lose({ lease: 60 })).toMatch(
      /was lost: its lease of 60 ms ran out on this process's clock before it was released\. A lease is in milliseconds\.$/,
    );
  });
  it("the lease", async () => {
    expect(await lose({ lease: 200 })).toMatch(/its lease of 200 ms ran out .* before it was released\.$/);
  });
  it("its extension", async () => {
    expect(await lose({ lease: 200 }, 300)).toMatch(/its lease of 300 ms ran out/);
  });
  it("maxHold", async () => {
    expect(await lose({ maxHold: 150 })).toMatch(/its maxHold of 150 ms was over\.$/);
  });

  it("the body's error keeps it, as its cause", async () => {
    const { locks } = await parties.join();
    const error = await failure(
      locks.lock(freshName()).withLock(
        async ({ signal }) => {
          await until(() => signal.aborted);
          throw new Error("stopped");
        },
        { lease: 150 },
      ),
    );
    expect(error).toMatchObject({
      message: expect.stringContaining("its lease of 150 ms ran out"),
      cause: { message: "stopped" },
    });
  });

  it.for([
    ["gone", "DEL"],
    ["taken", "SET"],
  ] as const)("%s names forceUnlock() among the causes", async ([reason, command]) => {
    const { locks, redis } = await parties.join();
    const name = freshName();
    const { keys } = new Onlooker(redis, name);
    const lease = await locks.lock(name).lock();
    if (command === "DEL") await redis.del(keys.lock);
    else await redis.set(keys.lock, OTHERS, "PX", 500);
    const error = await failure(lease.unlock());
    expect(error).toMatchObject({ reason, message: expect.stringContaining("forceUnlock()") });
  });
});

describe("a client whose leases are below 100 ms", () => {
  it("is warned of once, as the number is mostly meant to be in seconds", async () => {
    const seen: (Error & { code?: string })[] = [];
    const watch = (warning: Error & { code?: string }) => seen.push(warning);
    process.on("warning", watch);
    for (let i = 0; i < 2; i++) await parties.join({ url: testUrl(), client: { leaseTime: 30 } });
    await until(() => seen.length > 0);
    process.off("warning", watch);
    expect(seen).toMatchObject([{ code: "LOCK_SHORT_LEASE", message: expect.stringContaining("30 ms") }]);
  });
});
