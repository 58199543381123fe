import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Duet } from "../support/duet.ts";
import { freshName } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The primary is replaced while a lock is held and waited for: with the lock's keys, and without them.

staysQuiet();
let group: SentinelGroup;
let duet: Duet;

beforeAll(async () => {
  group = await SentinelGroup.launch();
});
beforeEach(async () => {
  duet = await Duet.of(() => group.connect());
});
afterEach(async () => {
  await duet.end();
  await group.restore();
});
afterAll(() => group.stop());

describe.each([
  ["the primary is killed", () => group.killPrimary()],
  ["SENTINEL FAILOVER", () => group.failover()],
])("%s", (_, failOver) => {
  it("with the keys: the holder keeps the lock, the waiter its place", async ({ annotate }) => {
    const { holder } = duet;
    const { held, waiting } = await duet.begin(await group.adminOf());
    const { took } = await failOver();
    expect([held.held, held.signal.aborted]).toEqual([true, false]);
    await until(() => holder.redis.status === "ready");
    const { unlocking, waited } = await duet.handOn(held, waiting);
    await annotate(
      `failover ${Math.round(took)} ms; unlock ${unlocking} ms, the waiter has it ${waited} ms later`,
    );
  }, 60_000);

  it("an unlock and a call while there is no primary: both end, one way or the other, and the lock goes on", async ({
    annotate,
  }) => {
    const { holder } = duet;
    const { held, waiting } = await duet.begin(await group.adminOf());
    const failed = failOver();
    await until(() => holder.redis.status !== "ready", { what: "the connection to break", timeout: 30_000 });
    const call = timed(
      holder.locks
        .lock(freshName())
        .tryLock()
        .catch((error: unknown) => error),
    );
    const [outcome, took] = await timed(held.unlock().catch((error: unknown) => error));
    const [called, calling] = await call;
    const [next, waited] = await timed(waiting);
    await annotate(
      `unlock() ${took} ms (${outcome}), a call ${calling} ms (${called}), waiter ${waited} ms later`,
    );
    if (outcome !== undefined)
      expect(outcome).toMatchObject({ code: expect.stringMatching(/^LOCK_(UNAVAILABLE|LOST)$/) });
    expect(took).toBeLessThan(3 * 5_000);
    expect(next.held).toBe(true);
    await next.unlock();
    await failed;
    await duet.expectMessages();
  }, 60_000);
});

describe("a failover that loses the key", () => {
  /** Refuses smaller tokens than it has seen. */
  class Resource {
    readonly writes: string[] = [];
    #highest = 0;

    write(token: number, who: string): boolean {
      if (token < this.#highest) return false;
      this.#highest = token;
      this.writes.push(who);
      return true;
    }
  }

  it("two believe that they hold it until the first one's renewal; the resource refuses its late write", async ({
    annotate,
  }) => {
    const { holder, waiter, lock } = duet;
    const primary = await group.primary();
    const [replica] = group.servers.filter((server) => server !== primary);
    replica?.suspend(); // it gets nothing from here on
    await group.admin(primary).call("CLIENT", "KILL", "TYPE", "replica");
    const resource = new Resource();
    const held = await holder.locks.lock(lock.name).lock({ lease: 6_000, watchdog: true });
    expect(resource.write(held.token, "first")).toBe(true);
    const failed = group.killPrimary();
    await until(() => primary.state === "ended", { what: "the primary to die" });
    replica?.resume(); // soon enough to be taken for well
    const waiting = waiter.locks.lock(lock.name).lock();
    const told = timed(new Promise<void>((at) => held.signal.addEventListener("abort", () => at())));
    const [next, waited] = await timed(waiting);
    const both = held.held;
    expect(resource.write(next.token, "second")).toBe(true);
    expect(resource.write(held.token, "first, late")).toBe(false);
    expect(resource.writes).toEqual(["first", "second"]);
    const [, knew] = await told;
    const { took } = await failed;
    await annotate(
      `failover ${Math.round(took)} ms; the second has it ${waited} ms after the kill, the first knows after ${knew} ms (both at one time: ${both})`,
    );
    expect(["gone", "taken", "expired"]).toContain(held.signal.reason.reason);
    await expect(held.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect([next.held, await lock.holder()]).toEqual([true, expect.stringContaining(waiter.locks.id)]);
    await next.unlock();
    await duet.expectMessages();
  }, 60_000);
});
