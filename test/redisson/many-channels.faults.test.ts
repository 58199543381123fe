import { expect, it } from "vitest";
import { redissonLock } from "../../src/redisson.ts";
import { channelOf } from "../contract/java.ts";
import { Stage, timed } from "../support/stage.ts";
import { until } from "../support/until.ts";

// A process waits for very many locks that have a release channel each, and its subscriber
// connection is lost.

const NAMES = 2_500;
/** A busy machine takes seconds for the commands of all of them. */
const client = { replyTimeout: 30_000 };
const stage = new Stage({ near: { client }, far: { client } });

it("a client resubscribes to all channels by commands of at most 1 000 channels", async ({ annotate }) => {
  const { near, far, lock, proxy } = stage;
  const names = Array.from({ length: NAMES }, (_, i) => `${lock.name}:${i}`);
  const held = await Promise.all(names.map((name) => redissonLock(far.locks, name).lock({ lease: 120_000 })));
  const waiting = names.map((name) => redissonLock(near.locks, name).lock());
  for (const one of waiting) one.catch(() => {}); // it is judged at the end
  const channels = names.map(channelOf);
  const heard = async (): Promise<number> => {
    const counts = (await far.redis.pubsub("NUMSUB", ...channels)) as (string | number)[];
    return counts.filter((count) => Number(count) === 1 && typeof count === "number").length;
  };
  await until(async () => (await heard()) === NAMES, { what: "all to be heard" });
  proxy.record();
  proxy.cut("subscribers");
  const subscribed = (): string[][] =>
    proxy.commands.map(({ command }) => command).filter(([name]) => name?.toLowerCase() === "subscribe");
  await until(() => subscribed().flatMap(([, ...rest]) => rest).length >= NAMES);
  await until(async () => (await heard()) === NAMES, { what: "all to be heard again" });
  const longest = Math.max(...subscribed().map(({ length }) => length - 1));
  await annotate(`${subscribed().length} commands, the longest with ${longest} channels`);
  expect(longest).toBeLessThanOrEqual(1_000);
  const [, took] = await timed(Promise.all([...held.map((lease) => lease.unlock()), ...waiting]));
  await annotate(`${NAMES} locks handed over in ${took} ms`);
  await Promise.all(waiting.map(async (lease) => (await lease).unlock()));
}, 120_000);
