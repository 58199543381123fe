import { expect, it, onTestFinished } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";

it("in a Cluster the locks of all primaries are listed, also by an unused client", async () => {
  const cluster = await RedisCluster.launch();
  onTestFinished(() => cluster.stop());
  const made = createLockClient(cluster.connect());
  const names = Array.from({ length: 60 }, (_, i) => freshName(String(i)));
  const leases = await Promise.all(names.map((name) => made.lock(name).lock({ label: `job ${name}` })));
  const locks = createLockClient(cluster.connect());
  const found: string[] = [];
  for await (const { name, holder } of locks.list({ match: "test:*" })) {
    expect(holder).toMatchObject({ id: expect.stringContaining(made.id), label: `job ${name}` });
    found.push(name);
  }
  expect(found.sort()).toEqual(names.sort());
  await Promise.all(leases.map((lease) => lease.unlock()));
  await made.close();
  await locks.close();
});
