import { describe, expect, it } from "vitest";
import { spinLock } from "../../src/spin.ts";
import { failure } from "../contract/observe.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { serverIs } from "../support/server-version.ts";
import { SpinStage } from "./stage.ts";

// What else callers of spinLock do while they wait is in test/world/directed/spinning.test.ts.

const stage = new SpinStage();
const { join } = stage;

describe("waiting", () => {
  it("needs no right to any channel", async () => {
    await stage.other.redis.call("ACL", "SETUSER", "spinner", "on", ">secret", ...rights.spin, "+ping");
    const as = { username: "spinner", password: "secret" };
    const [a, b] = [await join({ redis: as }), await join({ redis: as })];
    const name = freshName("spin");
    const lease = await spinLock(a.locks, name).lock();
    const waiter = spinLock(b.locks, name).lock({ wait: 10_000 });
    await lease.extend(40_000);
    await lease.unlock();
    await (await waiter).unlock();
    if (!serverIs("7.0")) return; // it cannot tell ahead what a right is missing for
    for (const right of ["del", "pexpire"]) {
      await stage.other.redis.call("ACL", "SETUSER", "spinner", `-${right}`);
      const error = await failure(spinLock((await join({ redis: as })).locks, name).tryLock());
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right}\\b`));
      expect(await stage.other.redis.exists(name)).toBe(0);
      await stage.other.redis.call("ACL", "SETUSER", "spinner", `+${right}`);
    }
  });
});
