import { it } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

// A process that exits. What a killed or a stopped reader does is in
// test/world/directed/read-write.test.ts and read-write-joins.test.ts.

const own = new OwnServer();

it.each(["read", "semaphore"] as const)(
  "a process that exits right after unlocks that are not awaited leaves nothing of its callers' shared hold: %s",
  async (kind) => {
    const name = freshName();
    const actor = await Actor.start({ url: own.url });
    await actor.call("unlockSharedExiting", kind, name).catch(() => {});
    await actor.exit;
    const { locks: near } = await own.parties.join({ url: own.url });
    const others = kind === "read" ? near.readWriteLock(name) : near.semaphore(name, { permits: 3 });
    await until(async () => (await others.inspect()).holders.length === 0, { timeout: 5_000 });
  },
);
