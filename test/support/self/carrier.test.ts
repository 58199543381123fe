import { afterAll, expect, it } from "vitest";
import { linkTo } from "../../../src/redis/drivers.ts";
import { carrier, onNodeRedis } from "../carrier.ts";
import { Parties } from "../fixture.ts";

const parties = new Parties();
afterAll(parties.close);

it("the locks of tests run on the client library that HOLDFAST_DRIVER or the suite names", async ({
  task,
}) => {
  const { redis } = await parties.join();
  const named = onNodeRedis || task.file.projectName === "node-redis" ? "node-redis" : "ioredis";
  expect(linkTo(carrier(redis))?.library).toBe(named);
});
