import { expect, it, onTestFinished } from "vitest";
import { Actor } from "../support/actor.ts";
import { freshName, testUrl } from "../support/fixture.ts";

it("of two processes that wait for each other one is rejected, and the other goes on", async ({
  annotate,
}) => {
  const client = { deadlocks: "reject" };
  const actors = await Promise.all([1, 2].map(() => Actor.start({ url: testUrl(), client })));
  onTestFinished(async () => {
    for (const actor of actors) await actor.call("close").finally(() => actor.kill());
  });
  const [a, b] = [freshName(), freshName()];
  const ended = await Promise.all([actors[0]?.call("nest", a, b), actors[1]?.call("nest", b, a)]);
  expect(ended.map((one) => one?.became).sort()).toEqual(["DEADLOCK", "both"]);
  const took = Math.max(...ended.map((one) => one?.took ?? 0));
  await annotate(`${Math.round(took)} ms`);
  expect(took).toBeGreaterThan(5_000);
}, 60_000);
