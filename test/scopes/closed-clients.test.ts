import { AsyncResource } from "node:async_hooks";
import { afterAll, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";

const parties = new Parties();
afterAll(parties.close);

/** How many properties Node.js puts on each resource, to pass the enabled stores on. */
const properties = (): number => Object.getOwnPropertySymbols(new AsyncResource("any")).length;

it("a closed client costs later promises nothing, and its scopes and bodies still run", async () => {
  const before = properties();
  const { locks } = await parties.join();
  await locks.scope(() => locks.lock(freshName()).withLock(() => {}));
  await locks.scope(async () => {
    await locks.close();
    expect(properties()).toBe(before);
    expect(locks.outside(() => 1)).toBe(1);
  });
  expect(await locks.scope(() => 2)).toBe(2);
  expect(properties()).toBe(before);
});
