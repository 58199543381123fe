import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { LOCKS } from "./arenas/arena.ts";
import { Recorder } from "./history/recorder.ts";
import { Member } from "./member.ts";
import type { Order } from "./worker/orders.ts";

const LAST: readonly Order[] = [{ do: "drain" }, { do: "close", grace: 0 }, { do: "exit" }];

it("a worker that has not begun yet stops on request", async () => {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-chaos-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const recorder = new Recorder(folder, "director");
  const member = (index: number) =>
    new Member({
      index,
      recorder,
      options: (by) => ({
        by,
        folder,
        seed: 1,
        callers: 1,
        locks: LOCKS,
        owns: [],
        taste: { shared: 0 },
        address: { redis: { host: "127.0.0.1", port: 1 } },
        connect: { driver: "ioredis 6, RESP3", keyPrefix: "" },
        client: {},
        plant: null,
      }),
    });
  const lives = LAST.map(async (order, index) => {
    const one = member(index);
    onTestFinished(() => one.kill());
    void one.start();
    one.order(order);
    await one.ended(40_000);
    return one.lives;
  });
  expect(await Promise.all(lives)).toEqual([false, false, false]);
});
