import { afterAll, beforeAll, expect, it } from "vitest";
import type { LockError } from "../../src/index.ts";
import { spinLock } from "../../src/spin.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties } from "../support/fixture.ts";

// A server, or a proxy before one, that has not all commands: as Envoy, it lacks SUBSCRIBE.

const parties = new Parties();
let server: LocalServer;
beforeAll(async () => {
  server = await launchServer({ args: ["--rename-command", "SUBSCRIBE", ""] });
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

it("without SUBSCRIBE a caller that would wait is refused with the reason, check() says so, and a spinLock works", async () => {
  const join = () => parties.join({ url: server.url });
  const [a, b] = [(await join()).locks, (await join()).locks];
  const told: string[] = [];
  for (const locks of [a, b]) locks.on("error", (error) => told.push((error as LockError).code));
  const name = freshName();
  const held = await a.lock(name).lock();
  await expect(b.lock(name).lock()).rejects.toThrow(/cannot be subscribed to, because .*unknown command/);
  const { ok, problems } = await b.check();
  expect(ok).toBe(false);
  expect(problems.join()).toMatch(/Messages do not arrive.*unknown command/);
  await held.unlock();
  const spinning = await spinLock(a, name).lock();
  const next = spinLock(b, name).lock();
  await spinning.unlock();
  await (await next).unlock();
  expect(new Set(told)).toEqual(new Set(["NO_MESSAGES"]));
});
