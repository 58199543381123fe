import { describe, expect, it } from "vitest";
import { freshName, type Party } from "../support/fixture.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// `connection: "own"`: only the client can replace its connection. When it does so is in
// test/world/directed/own-connection.test.ts.

const stage = new Stage();

const isServed = async ({ locks }: Party): Promise<boolean> => {
  const lease = await locks
    .lock(freshName())
    .tryLock()
    .catch(() => null);
  await lease?.unlock();
  return lease !== null;
};

describe("a connection that the client opened", () => {
  it("is replaced when it is half open, and the client is served again", async ({ annotate }) => {
    const party = await stage.join({
      url: stage.proxy.url,
      client: { connection: "own", replyTimeout: 1_000 },
    });
    expect(await isServed(party)).toBe(true);
    stage.proxy.freeze("commands"); // what there is; a new one is well
    const [, took] = await timed(until(() => isServed(party), { what: "an acquisition", timeout: 30_000 }));
    await annotate(`served again after ${took} ms`);
  });
});
