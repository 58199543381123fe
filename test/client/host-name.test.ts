import { afterAll, expect, it, vi } from "vitest";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { freshName, Parties } from "../support/fixture.ts";

// A runtime that asks for rights, such as Deno, may refuse to name the machine.

vi.mock("node:os", async (all) => {
  const refuse = () => {
    throw new Error('NotCapable: Requires sys access to "hostname"');
  };
  const os = { ...((await all()) as typeof import("node:os")), hostname: refuse, userInfo: refuse };
  return { ...os, default: os };
});

const parties = new Parties();
afterAll(parties.close);

it("a client is created and locks where the machine's name is refused; its host is 'unknown'", async () => {
  const { locks } = await parties.join({ client: { label: "shop" } });
  expect(locks.id).toMatch(new RegExp(`^shop/unknown:${process.pid}:[0-9a-f]{16}$`));
  const lock = locks.lock(freshName());
  await lock.withLock(async () => {
    expect((await lock.inspect()).holder).toMatchObject({ label: "shop", host: "unknown", pid: process.pid });
  });
});

it("so is a client of a quorum", async () => {
  const nodes = await Promise.all([1, 2, 3].map(async () => (await parties.join()).redis));
  await using locks = createQuorumClient(nodes);
  expect(locks.id).toMatch(/^unknown:/);
});

it("so is a client without a Redis", async () => {
  await using locks = createTestLocks();
  expect(locks.id).toMatch(/^unknown:/);
});
