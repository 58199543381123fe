// On a real Redis; in virtual time: test/world/directed/rechecks.test.ts.

import { afterAll, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { onScript } from "../support/scripts-sent.ts";
import { runs } from "../support/stage.ts";
import { until } from "../support/until.ts";

// `lock` and `fairLock` of one name are one lock, whose queue in Redis knows clients and not kinds.

const parties = new Parties();
staysQuiet();
afterAll(parties.close);

it.each([
  ["lock", "fairLock"],
  ["fairLock", "lock"],
] as const)(
  "a caller of %s re-checks for one of %s after it, which goes on when the first leaves",
  async (near, far) => {
    const [holder, client] = [await parties.join(), await parties.join()];
    const name = freshName();
    const held = await holder.locks.lock(name).lock();
    const leaving = new AbortController();
    const isLook = runs("recheck");
    const looks: unknown[] = [];
    onScript(client.redis, ({ name, args }, send) => {
      // Behind its hash, the number of its keys, and four keys.
      if (isLook([name, ...args.map(String)])) looks.push(args[6]);
      send();
    });
    const queued = async () => (await holder.locks.lock(name).inspect()).waiters?.length ?? 0;
    const first = client.locks[near](name).lock({ signal: leaving.signal });
    first.catch(() => {});
    await until(async () => (await queued()) === 1);
    const second = client.locks[far](name).lock();
    await until(async () => (await queued()) === 2);
    // The first look of the second one would come in this time.
    await until(() => looks.length >= 2, { what: "two looks" });
    expect(new Set(looks).size).toBe(1);
    leaving.abort();
    await until(() => new Set(looks).size === 2, { what: "a look of the second one" });
    await held.unlock();
    await (await second).unlock();
  },
);
