import { afterAll, beforeAll, expect, it } from "vitest";
import { handoffLua } from "../../../src/redis/lua.generated.ts";
import { failure } from "../../contract/observe.ts";
import { Actor } from "../../support/actor.ts";
import { freshName } from "../../support/fixture.ts";
import { OwnServer } from "../../support/own-server.ts";
import { type Match, TcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";

// A lock with `minHold` whose unlock is not answered.

const own = new OwnServer();
let proxy: TcpProxy;
beforeAll(async () => {
  proxy = await TcpProxy.start(own.server);
});
afterAll(() => proxy.stop());

const MIN = 60_000;
const unlocks: Match = ([, text]) => text === handoffLua.releaseAt.sha || text === handoffLua.releaseAt.lua;

async function held(redis: object) {
  const { locks } = await own.parties.join({ url: proxy.url, redis });
  const name = freshName();
  const lease = await locks.lock(name).lock({ minHold: MIN });
  const key = `holdfast:{${name}}`;
  const value = await own.admin.get(key);
  const isNobodys = async () => ![null, value].includes(await own.admin.get(key));
  return { lease, key, isNobodys };
}

it("a reply that is lost, sent again: no loss, and the lock stays taken", async () => {
  const { lease, key, isNobodys } = await held({});
  const lost = proxy.dropReply(unlocks);
  await lease.unlock();
  await lost;
  expect(await isNobodys()).toBe(true);
  expect(await own.admin.pttl(key)).toBeGreaterThan(MIN - 20_000);
});

it("a command that is lost: told to the caller, and the lock is not free before its time", async () => {
  const { lease, key, isNobodys } = await held({ autoResendUnfulfilledCommands: false });
  const lost = proxy.dropCommand(unlocks);
  expect(await failure(lease.unlock())).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  await lost;
  await until(isNobodys);
  expect(await own.admin.pttl(key)).toBeGreaterThan(MIN - 20_000);
});

it("a process that exits in the turn of its unlock, at a server that does not know the script", async () => {
  const actor = await Actor.start({ url: own.url });
  const name = freshName();
  const key = `holdfast:{${name}}`;
  const handle = await actor.call("acquireFor", name, MIN);
  const value = await own.admin.get(key);
  await own.admin.script("FLUSH");
  actor.call("unlockExiting", handle).catch(() => {});
  await actor.exit;
  await until(async () => ![null, value].includes(await own.admin.get(key)));
});
