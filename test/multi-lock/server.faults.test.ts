import { afterEach, describe, expect, it } from "vitest";
import { LockUnavailableError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { three } from "../support/multi-locks.ts";
import { MultiLockStage } from "./stage.ts";

// The commands for several locks at a server that refuses them for lack of a right. What other
// refusals and silence do is in test/world/directed/multi-lock-faults.test.ts.

const stage = new MultiLockStage(5_000);

describe("a server that refuses", () => {
  afterEach(async () => {
    const { redis } = stage.far;
    await redis.call("ACL", "SETUSER", "default", "+@all");
  });

  it.each(["set", "del", "zpopmin", "publish"])(
    "for a missing right, %s: the error names it before anything is written",
    async (right) => {
      const { far } = stage;
      const names = three();
      await far.redis.call("ACL", "SETUSER", "default", `-${right}`);
      const { locks } = await stage.join();
      const error = await failure(locks.multiLock(names).tryLock());
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect(String(error)).toMatch(new RegExp(`NOPERM.*\\b${right}\\b`));
      await far.redis.call("ACL", "SETUSER", "default", "+@all");
      expect(await stage.holders(names)).toEqual(["", "", ""]);
    },
  );
});
