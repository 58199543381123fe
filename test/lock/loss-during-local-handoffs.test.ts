import { describe, expect, it } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { failure, lossOf } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { Stage, timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A lock that goes from caller to caller in one process is lost: whose loss that is, and how soon it is told.

/** ms: a renewal of the watchdog would come after ten times as long. */
const SOON = 1_000;
const stage = new Stage();

/**
 * A lock is passed on right behind its loss. Null: this machine stood still meanwhile, so Redis was
 * asked first.
 */
async function passedOn(reason: "gone" | "taken") {
  const { near, far } = stage;
  const name = freshName();
  const mine = near.locks.lock(name);
  const lost: number[] = [];
  near.locks.on("lost", (event) => event.name === name && lost.push(Number(event.token)));
  const opening = await mine.lock();
  const [one, second, third] = [mine.lock(), mine.lock(), mine.lock()];
  // The first local hand-off asks Redis for its token.
  await opening.unlock();
  const first = await one;
  await far.redis.del(new Keys("", false).of(name).lock);
  const other = reason === "taken" ? await far.locks.lock(name).lock() : null;
  const unlocked = await first.unlock().catch(() => null);
  // A pass comes before any answer of Redis, and takes the next token.
  const next = await Promise.race([second, far.redis.ping().then(() => null)]);
  if (unlocked !== null && lost.length === 0 && next?.token === first.token + 1)
    return { first, second: next, third, other, lost };
  await other?.unlock();
  for (const waiting of [second, third]) await (await waiting).unlock().catch(() => {});
  return null;
}

describe("a lock that is lost during local hand-offs", () => {
  it.each(["gone", "taken"] as const)(
    "%s: its caller at that moment is notified soon, and once; the next one acquires it anew",
    async (reason) => {
      await stage.warm(stage.near);
      const { first, second, third, other, lost } = await until(() => passedOn(reason));
      expect(second.token).toBeGreaterThan(first.token);
      const [why, waited] = await timedAwake(lossOf(second.signal));
      expect(why).toBe(reason);
      expect(waited).toBeLessThan(SOON);
      await other?.unlock();
      const next = await third;
      expect(next.token).toBeGreaterThan(other?.token ?? second.token);
      expect(next.held).toBe(true);
      await next.unlock();
      expect(lost).toEqual([second.token]);
      await failure(second.unlock());
    },
  );
});
