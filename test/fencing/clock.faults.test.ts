import { afterEach, expect, it } from "vitest";
import { fencedSet } from "../../src/fencing/index.ts";
import { StaleTokenError } from "../../src/index.ts";
import { failure } from "../contract/observe.ts";
import { HOUR, stageWithClock } from "../support/clock-stage.ts";
import { until } from "../support/until.ts";

// The clock of the server that has the lock and the resource is set back. Tokens are times of it,
// and so is the end of a fence.

const { stage, clock } = stageWithClock();

// Tokens never fall: behind a clock that stays back they would be times that are still to come.
afterEach(() => clock.jump(-clock.ahead));

async function token(): Promise<number> {
  const lease = await stage.far.locks.lock(stage.lock.name).lock();
  await lease.unlock();
  return lease.token;
}
const write = (key: string, fence: number) =>
  fencedSet(stage.far.redis, key, `${fence}`, { fence, remember: 60_000 });

it("after a step back by an hour the next holder's token is larger and writes, and the former holder's is refused", async () => {
  const key = stage.lock.name;
  const first = await token();
  await write(key, first);
  clock.jump(-HOUR);
  const second = await token();
  expect(second).toBeGreaterThan(first);
  await write(key, second);
  expect(await failure(write(key, first))).toMatchObject({ name: "StaleTokenError", seen: second });
  expect(await stage.far.redis.get(key)).toBe(`${second}`);
});

it("after a step back once the fence has ended, an outdated token is accepted again, as docs/fencing.md says", async () => {
  const key = stage.lock.name;
  const { redis } = stage.far;
  const [first, second] = [await token(), await token()];
  await write(key, second);
  clock.jump(HOUR / 2);
  await until(async () => (await redis.exists(`holdfast:fence:${key}`)) === 0);
  expect(await failure(write(key, first))).toBeInstanceOf(StaleTokenError);
  clock.jump(-HOUR / 2);
  await write(key, first);
  expect(await redis.get(key)).toBe(`${first}`);
});
