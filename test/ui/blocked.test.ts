import { expect, it } from "vitest";
import type { Listed } from "../../src/index.ts";
import { blocked } from "../../src/tools/ui/blocked.ts";

const party = (client: string, ms: number) => ({
  ...{ id: `client:${client}:1:0000000000000000:1`, label: null, host: client, pid: 1, since: null },
  ...{ units: 1, mode: null, heldFor: ms, waitedFor: ms, remaining: 30_000, token: 7 },
});

/** A lock that one client holds and another has waited for since so many ms. */
function lock(name: string, holder: string, waiter: string, waited: number): Listed {
  const by = party(holder, 60_000);
  return {
    ...{ kind: "lock", name, holder: by, holders: [by], heldFor: 60_000, remaining: 30_000 },
    ...{ kept: false, permits: null, waiters: [party(waiter, waited)] },
  };
}

/** What is said of clients in a circle, and who is shown elsewhere, from above to below. */
function signs(...locks: Listed[]): (string | null)[] {
  const found: (string | null)[] = [];
  const read = ({ circle, isElsewhere, blocks }: ReturnType<typeof blocked>["clients"][number]): void => {
    found.push(circle ?? (isElsewhere ? "elsewhere" : null));
    for (const { waiters } of blocks) for (const one of waiters) read(one);
  };
  for (const client of blocked(locks, []).clients) read(client);
  return found;
}

it("clients that wait for each other are a sign of a deadlock once each has waited for 10 s", () => {
  expect(signs(lock("x", "a", "b", 10_000), lock("y", "b", "a", 10_000))).toContain("sign");
  const threeWays = (last: number) =>
    signs(lock("x", "a", "b", 90_000), lock("y", "b", "c", 90_000), lock("z", "c", "a", last));
  expect(threeWays(10_000)).toContain("sign");
  // Callers that take turns at some hot locks wait for each other all the time, and none for long.
  for (const found of [
    signs(lock("x", "a", "b", 90_000), lock("y", "b", "a", 9_999)),
    signs(lock("x", "a", "b", 9_999), lock("y", "b", "a", 90_000)),
    threeWays(9_999),
  ]) {
    expect(found).not.toContain("sign");
    expect(found).toContain("elsewhere");
  }
});
