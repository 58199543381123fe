import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { rememberLua as lua } from "../../src/redis/lua.generated.ts";
import { Actor } from "../support/actor.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { loadScripts } from "../support/load-scripts.ts";
import { sends } from "../support/matches.ts";
import { OwnServer } from "../support/own-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The process that runs the body is killed, or is stopped for longer than its lease.

const own = new OwnServer();
const KEEP = { keep: 3_600_000 };
const LONG = 600_000;
const never = (): never => expect.unreachable();
const ours = () => "ours";
const finishes = sends(lua.finish);
let proxy: TcpProxy;
let actor: Actor;
beforeAll(async () => {
  proxy = await TcpProxy.start(own.server);
  await loadScripts(own.admin, lua);
});
afterEach(async () => {
  await actor.end();
  proxy.refuse(false);
});
afterAll(() => proxy.stop());

/** A run of another process, whose body ends when it may, and a client of this process. */
async function theirs({ lease, stops = false }: { lease: number; stops?: boolean }) {
  const name = freshName("result");
  const keys = new Keys("", false).ofRemembered(name);
  const { locks } = await own.parties.join({ url: own.url });
  actor = await Actor.start({ url: proxy.url, library: onNodeRedis ? "node-redis" : "ioredis" });
  let isOver = false;
  const ended = actor
    .call("remember", name, { ...KEEP, lease }, "theirs", `${name}:may end`, stops)
    .catch((error: unknown) => error)
    .finally(() => {
      isOver = true;
    });
  await until(() => own.admin.exists(keys.lock));
  const mayEnd = () => own.admin.set(`${name}:may end`, "");
  const isQueued = () => until(() => own.admin.exists(keys.queue));
  /** It goes on; what its call ends with. */
  const goesOn = async () => {
    await until(() => {
      actor.kill("SIGCONT");
      return isOver;
    });
    return ended;
  };
  return { name, keys, locks, mayEnd, isQueued, goesOn };
}

it("killed before the result is stored: nothing is stored, and the waiter runs when the lease is over", async () => {
  const { name, keys, locks, mayEnd, isQueued } = await theirs({ lease: 1_500 });
  const second = locks.remember(name, KEEP, async () => {
    expect(await own.admin.exists(keys.result, keys.last)).toBe(0);
    return "ours";
  });
  await isQueued();
  const sent = proxy.stall(finishes);
  await mayEnd();
  await sent;
  actor.kill("SIGKILL");
  expect(await second).toMatchObject({ value: "ours", ran: true });
});

it("killed after the result is stored, before it knows that: the others have it", async () => {
  const { name, locks, mayEnd, isQueued } = await theirs({ lease: LONG });
  const second = locks.remember(name, KEEP, never);
  await isQueued();
  proxy.refuse(true);
  const stored = proxy.dropReply(finishes);
  await mayEnd();
  await stored;
  actor.kill("SIGKILL");
  for (const call of [second, locks.remember(name, KEEP, never)])
    expect(await call).toMatchObject({ value: "theirs", ran: false });
});

it("stopped while another process runs: its call has lost, and all have the newer result", async () => {
  const { name, locks, mayEnd, isQueued, goesOn } = await theirs({ lease: 1_500, stops: true });
  const second = locks.remember(name, KEEP, ours);
  await isQueued();
  await mayEnd();
  expect(await second).toMatchObject({ value: "ours", ran: true });
  expect(await goesOn()).toMatchObject({ name: "LockLostError", reason: "expired" });
  expect(await locks.remember(name, KEEP, never)).toMatchObject({ value: "ours" });
});

it("stopped for longer than the lease, and no other process came: its call has lost, and its result counts", async () => {
  const { name, keys, locks, mayEnd, goesOn } = await theirs({ lease: 1_500, stops: true });
  await mayEnd();
  await until(async () => (await own.admin.exists(keys.lock)) === 0);
  expect(await goesOn()).toMatchObject({ name: "LockLostError", reason: "expired" });
  expect(await locks.remember(name, KEEP, never)).toMatchObject({ value: "theirs" });
});
