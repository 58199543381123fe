import { expect, it, vi } from "vitest";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const own = new OwnServer();

it("the documented rights of a lock are enough to find a deadlock", async () => {
  const user = await own.addUser(...rights.handoff);
  const join = () =>
    own.parties.join({
      url: own.url,
      redis: { ...user, lazyConnect: true },
      client: { deadlocks: "reject" },
    });
  const [one, other] = [await join(), await join()];
  const [a, b] = [freshName(), freshName()];
  const nest = async ({ locks }: typeof one, first: string, second: string) => {
    const body = async () => {
      await until(() => locks.lock(second).isLocked());
      return locks.lock(second).withLock(() => "both");
    };
    return locks
      .lock(first)
      .withLock(body)
      .catch((error) => error.code);
  };
  expect((await Promise.all([nest(one, a, b), nest(other, b, a)])).sort()).toEqual(["DEADLOCK", "both"]);
  expect(await own.admin.call("ACL", "LOG")).toEqual([]);
});
