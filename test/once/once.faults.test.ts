import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { onceLua } from "../../src/redis/lua.generated.ts";
import { pauses } from "../../src/util/abort.ts";
import { failure } from "../contract/observe.ts";
import { onNodeRedis } from "../support/carrier.ts";
import { freshName } from "../support/fixture.ts";
import { sends } from "../support/matches.ts";
import { OwnServer } from "../support/own-server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// The timers of a run whose beginning is not answered. What else goes wrong is in
// test/world/directed/run-once.test.ts.

const own = new OwnServer();
let proxy: TcpProxy;
beforeAll(async () => {
  proxy = await TcpProxy.start(own.server);
});
afterAll(() => proxy.stop());

const HOUR = 3_600_000;
const begins = sends(onceLua.begin);

// node-redis tries to reconnect at once, without the pause that these two tests use.
it.skipIf(onNodeRedis).each(["in its pause", "while its question is unanswered"])(
  "a caller that goes %s leaves no pause timer that would keep the process alive",
  async (when) => {
    const options = { autoResendUnfulfilledCommands: false, retryStrategy: () => 300 };
    const { locks, redis } = await own.parties.join({ url: proxy.url, redis: options });
    await locks.runOnce(freshName(), { every: HOUR }, () => {});
    const controller = new AbortController();
    const { signal } = controller;
    const begun = vi.spyOn(pauses, "set");
    const held = proxy.holdCommand(begins);
    const call = failure(locks.runOnce(freshName(), { every: HOUR, signal }, () => expect.unreachable()));
    await held;
    if (when === "in its pause") {
      proxy.cut();
      await until(() => pauses.size > 0);
    }
    controller.abort(new Error("gone"));
    expect(await call).toMatchObject({ message: "gone" });
    const often = begun.mock.calls.length;
    proxy.cut();
    await until(() => redis.status === "reconnecting");
    await nextTurn();
    expect([pauses.size, begun.mock.calls.length]).toEqual([0, often]);
    begun.mockRestore();
  },
);
