import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { LocalServer } from "../../../tools/redis/index.ts";
import type { Fault } from "./fault.ts";
import { forgetting } from "./forgetting.ts";
import type { ServerTime } from "./server-time.ts";

/** What can happen to a server that is alone: nobody takes its place. */
export function crashes(server: LocalServer, admin: Redis, time: ServerTime): Fault[] {
  const now = (): number => time.now;
  const crash: Fault = {
    kind: "crash and restart with data",
    weight: 3,
    async run({ dice }, begin) {
      const ms = dice.int(0, 2_500);
      begin(`down for ${ms} ms`);
      await server.kill();
      await delay(ms);
      await server.restart();
    },
  };
  const forget: Fault = {
    kind: "crash and restart empty",
    weight: 2,
    async run(field, begin) {
      const ms = field.dice.int(0, 1_500);
      await time.caughtUp();
      begin(`down for ${ms} ms`);
      const forgotten = forgetting(field, "empty restart", now, time.unsure);
      await server.kill();
      forgotten();
      await rm(join(server.dir, "appendonlydir"), { recursive: true, force: true });
      await delay(ms);
      await server.restart();
    },
  };
  const flush: Fault = {
    kind: "FLUSHALL",
    weight: 1,
    async run(field, begin) {
      await time.caughtUp();
      begin("");
      const forgotten = forgetting(field, "FLUSHALL", now, time.unsure);
      await admin.flushall();
      forgotten();
    },
  };
  const suspend: Fault = {
    kind: "stop the server",
    weight: 3,
    async run({ dice }, begin) {
      const ms = dice.pick([dice.int(20, 500), dice.int(500, 5_000)]);
      begin(`for ${ms} ms`);
      server.suspend();
      await delay(ms);
      server.resume();
    },
  };
  return [crash, forget, flush, suspend];
}
