import { expect, it, onTestFinished } from "vitest";
import type { Leader } from "../../src/index.ts";
import { freshName, Parties } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { until } from "../support/until.ts";

// Elections where messages belong to slots, and where the server is replaced.

type Seen = AsyncIterableIterator<Leader | null, undefined>;
const nextOf = async (seen: Seen, value: string | null): Promise<void> => {
  for (;;) {
    const { value: leader, done } = await seen.next();
    if (done) throw new Error(`the observation ended before ${value}`);
    if ((leader?.value ?? null) === value) return;
  }
};

it("in a Cluster observers receive the news of an election, whatever its name", async () => {
  const cluster = await RedisCluster.launch();
  const parties = new Parties();
  onTestFinished(async () => {
    await parties.close();
    await cluster.stop();
  });
  for (const keyPrefix of ["", "app:", "{tag} é:"]) {
    const connect = () => cluster.connect({ keyPrefix });
    const [a, b] = [await parties.join({ connect }), await parties.join({ connect })];
    for (const name of [freshName(), "{x} é"]) {
      const seen = b.locks.election(name).observe();
      expect((await seen.next()).value).toBeNull();
      const news = `${keyPrefix}holdfast:election:{${name.replace(/[%{}]/g, encodeURIComponent)}}:news`;
      const admin = await cluster.adminOf(news);
      await until(async () => ((await admin.call("PUBSUB", "SHARDNUMSUB", news)) as unknown[])[1] === 1);
      const from = performance.now();
      const term = await a.locks.election(name, { lease: 3_000, label: "é 1" }).campaign({ value: "a" });
      await nextOf(seen, "a");
      expect((await b.locks.election(name).leader())?.label).toBe("é 1");
      let renewals = 0;
      a.locks.on("renew", () => renewals++);
      const heir = b.locks.election(name).campaign({ value: "b" });
      if (keyPrefix === "") await until(() => renewals > 0);
      await term.resign();
      const second = await heir;
      await nextOf(seen, "b");
      await second.resign();
      await nextOf(seen, null);
      // A look by itself would be due behind 7 s, for each of the three.
      expect(performance.now() - from).toBeLessThan(20_000);
      await seen.return?.();
    }
  }
});

it("after a failover the observer sees what the new primary says", async () => {
  const group = await SentinelGroup.launch();
  const parties = new Parties();
  onTestFinished(async () => {
    await parties.close();
    await group.stop();
  });
  const connect = () => group.connect();
  const [a, b] = [await parties.join({ connect }), await parties.join({ connect })];
  for (const { locks } of [a, b]) locks.on("error", () => {});
  const name = freshName();
  const term = await a.locks.election(name, { lease: 60_000 }).campaign({ value: "a" });
  const seen = b.locks.election(name).observe();
  await nextOf(seen, "a");
  const primary = await group.adminOf();
  await primary.set("written", 1);
  await until(async () => (await primary.wait(1, 1_000)) >= 1, { what: "a replica in step" });
  await group.failover();
  await until(() =>
    term.proclaim("behind").then(
      () => true,
      () => false,
    ),
  );
  await nextOf(seen, "behind");
  await term.resign();
  await nextOf(seen, null);
  await seen.return?.();
});
