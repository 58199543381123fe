// On a real Redis; in virtual time: test/world/directed/election.test.ts,
// test/world/directed/election-observers.test.ts.

import { expect, it } from "vitest";
import type { Leader } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { electionLua } from "../../src/redis/lua.generated.ts";
import { failure } from "../contract/observe.ts";
import { Stage } from "../support/stage.ts";
import { until } from "../support/until.ts";

// Observers and leaders whose Redis, or whose messages, cannot be reached. That nothing rejects
// unhandled is checked behind each test.

const stage = new Stage({ near: { client: { replyTimeout: 500 } } });
const keysOf = () => new Keys("", false).ofElection(stage.lock.name);
type Seen = AsyncIterableIterator<Leader | null, undefined>;
const next = async (seen: Seen): Promise<string | null> => {
  const { value, done } = await seen.next();
  if (done) throw new Error("the observation is over");
  return value?.value ?? null;
};
/** Whatever comes before it. */
const nextOf = async (seen: Seen, value: string | null): Promise<void> => {
  while ((await next(seen)) !== value);
};
const proclaims = (command: readonly string[]): boolean => command.includes(electionLua.proclaim.sha);
/** So that no script has to be sent as text. */
const warm = async (): Promise<void> => {
  const election = stage.far.locks.election("warm");
  const term = await election.campaign();
  await election.leader();
  await term.resign();
};
const election = (of: "near" | "far", lease = 30_000) => stage[of].locks.election(stage.lock.name, { lease });
const heard = () =>
  until(async () => Number((await stage.far.redis.pubsub("NUMSUB", keysOf().news))[1]) === 1);

it("after both connections were cut, the observer sees the current state, and receives messages again", async () => {
  const { proxy } = stage;
  const term = await election("far").campaign({ value: "one" });
  const seen = election("near").observe();
  expect(await next(seen)).toBe("one");
  await heard();
  proxy.refuse(true);
  proxy.cut();
  await term.resign();
  const heir = await election("far").campaign({ value: "two" });
  proxy.refuse(false);
  await nextOf(seen, "two");
  await heard();
  await heir.proclaim("three");
  await nextOf(seen, "three");
  await heir.resign();
  await nextOf(seen, null);
  await seen.return?.();
});

it("after only the subscriber was cut, the observer asks again, because it may have missed a message", async () => {
  const { proxy } = stage;
  const term = await election("far").campaign({ value: "one" });
  const seen = election("near").observe();
  expect(await next(seen)).toBe("one");
  await heard();
  proxy.freeze("subscribers");
  await term.proclaim("two");
  proxy.cut("subscribers");
  const from = performance.now();
  expect(await next(seen)).toBe("two");
  // A look by itself is due behind 7 s.
  expect(performance.now() - from).toBeLessThan(5_000);
  await Promise.all([seen.return?.(), term.resign()]);
});

it("while Redis does not answer, no leader is shown, however long the term was; afterwards the leader is shown again", async () => {
  const { near, proxy } = stage;
  const errors: Error[] = [];
  near.locks.on("error", (error) => errors.push(error));
  const term = await election("far").campaign({ value: "one" });
  const seen = election("near").observe();
  expect(await next(seen)).toBe("one");
  await heard();
  proxy.freeze();
  // The next look shows that Redis does not answer; this message cannot come.
  await term.proclaim("two");
  proxy.thaw();
  expect(await next(seen)).toBe("two");
  proxy.partition("commands");
  await term.proclaim("three");
  expect(await next(seen)).toBeNull();
  expect(errors.map(String)).toEqual([
    expect.stringMatching(/its leader could not be read this time, because Redis at /),
  ]);
  proxy.thaw();
  await nextOf(seen, "three");
  await Promise.all([seen.return?.(), term.resign()]);
});

it("after FLUSHALL, no former leader is shown, and each leader notices at its renewal", async () => {
  const term = await election("near", 600).campaign({ value: "one" });
  const seen = election("far").observe();
  expect(await next(seen)).toBe("one");
  await stage.far.redis.flushall();
  const heir = await election("far").campaign({ value: "two" });
  expect(heir.token).toBeGreaterThan(term.token);
  await nextOf(seen, "two");
  await until(() => term.signal.aborted);
  expect(term.lost?.reason).toMatch(/gone|taken/);
  await Promise.allSettled([seen.return?.(), term.resign(), heir.resign()]);
});

it("a lost proclamation is unconfirmed, and the next renewal restores it", async () => {
  const { proxy, lock } = stage;
  const { locks } = await stage.join({ url: proxy.url, redis: { autoResendUnfulfilledCommands: false } });
  await warm();
  const term = await locks.election(lock.name, { lease: 3_000 }).campaign({ value: "one" });
  const dropped = proxy.dropCommand(proclaims);
  const proclaimed = failure(term.proclaim("two"));
  await dropped;
  expect(await proclaimed).toMatchObject({ code: "LOCK_UNAVAILABLE", lockName: lock.name });
  expect([term.value, (await election("far").leader())?.value]).toEqual(["two", "one"]);
  await until(async () => (await election("far").leader())?.value === "two");
  await term.resign();
});

it("a candidate that cannot proclaim itself is rejected, and does not lead", async () => {
  const { proxy } = stage;
  await warm();
  const seen = election("far").observe();
  expect(await next(seen)).toBeNull();
  const dropped = proxy.stall(proclaims);
  const rejected = failure(election("near").campaign({ value: "one" }));
  await dropped;
  expect(await rejected).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  proxy.cut();
  await until(async () => (await stage.far.redis.exists(keysOf().lock)) === 0);
  const heir = await election("far").campaign({ value: "two" });
  await nextOf(seen, "two");
  await Promise.all([seen.return?.(), heir.resign()]);
});

it("a late copy of a proclamation changes nothing, during its term and after it", async () => {
  const { proxy } = stage;
  await warm();
  const term = await election("near").campaign({ value: "one" });
  const holding = proxy.holdCommand(proclaims);
  const proclaimed = term.proclaim("two").catch(() => {});
  const late = await holding;
  await proclaimed;
  await term.proclaim("three");
  await late.deliver();
  expect((await election("far").leader())?.value).toBe("three");
  await term.resign();
  await late.deliver().catch(() => {});
  expect(await election("far").leader()).toBeNull();
});
