import { beforeEach, describe, expect, it } from "vitest";
import type { Party } from "../support/fixture.ts";
import { runs, Stage } from "../support/stage.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// A reply is lost, ioredis reconnects and sends the command again: every script is executed twice.

const stage = new Stage({ near: { client: { localHandoffs: 0 } } });
let proxy: TcpProxy;
let near: Party;
let far: Party;
let name: string;
beforeEach(() => {
  ({ proxy, near, far } = stage);
  name = stage.lock.name;
});

const waiters = async (): Promise<number> => (await far.locks.lock(name).inspect()).waiters?.length ?? 0;
const holder = async (): Promise<string | undefined> => (await far.locks.lock(name).inspect()).holder?.id;
const isFree = async (): Promise<boolean> => (await far.redis.exists(`holdfast:{${name}}`)) === 0;

describe("the reply is lost and the command is sent again", () => {
  it("acquire: it does not block itself", async () => {
    const dropped = proxy.dropReply(runs("acquire"));
    const lease = await near.locks.lock(name).tryLock(2_000);
    await dropped;
    expect(lease?.held).toBe(true);
    await lease?.unlock();
    expect(await isFree()).toBe(true);
  });

  it("release with a waiter: the waiter is not released too, and no loss is reported", async () => {
    const lease = await near.locks.lock(name).lock();
    const waiting = far.locks.lock(name).lock();
    await until(async () => (await waiters()) === 1);
    const dropped = proxy.dropReply(runs("release"));
    await Promise.all([lease.unlock(), dropped]);
    const next = await waiting;
    expect(next.held).toBe(true);
    expect(await holder()).toContain(far.locks.id);
    await next.unlock();
  });
});

describe("an abandoned command leaves no key behind", () => {
  const paused = async (party: Party): Promise<void> => {
    await far.redis.client("PAUSE", 60_000, "WRITE"); // UNPAUSE ends it
    await expect(party.locks.lock(name).lock({ wait: 1_000 })).rejects.toMatchObject({
      code: "LOCK_UNAVAILABLE",
    });
    await far.redis.client("UNPAUSE");
  };
  const gone = (): Promise<unknown> => until(isFree, { what: "the key to go" });

  it("by ioredis's commandTimeout", async () => {
    await paused(await stage.join({ redis: { commandTimeout: 1_000 } }));
    await gone();
  });
});
