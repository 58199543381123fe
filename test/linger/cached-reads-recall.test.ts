import { expect, it } from "vitest";
import { countCommands } from "../support/command-count.ts";
import { heard, KeptReadsStage } from "../support/kept-reads.ts";
import { timedAwake } from "../support/stage.ts";
import { STAY_FRESH, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// Writers that do not wait ask those that may keep reads, and take no place in the queue before all
// of them have answered: it would close to all readers what they share.

/** ms: less than `linger`, and than the time of a recall(). */
const AT_ONCE = 500;
const stage = new KeptReadsStage();
const places = (): Promise<number> => stage.far.redis.zcard(`${stage.key}:queue`);

it("a writer's tryLock() does not divide readers", async () => {
  const { near, far } = stage;
  const { read } = await stage.keep();
  const third = await stage.join();
  for (const party of [far, third]) await warm(near, party);
  const inside = await read.lock();
  let isOver = false;
  const writing = (async () => {
    for (let i = 0; i < 20; i++) expect(await stage.pairOf(third).write.tryLock()).toBeNull();
    isOver = true;
  })();
  // Each is a reader that Redis is asked for.
  while (!isOver) {
    const lease = await stage.pairOf(far).read.tryLock();
    expect(lease?.held).toBe(true);
    await lease?.unlock();
  }
  await writing;
  await inside.unlock();
});

it.each(["alone", "in a multi-lock"])(
  "a writer's tryLock() beside a reader whose client cannot be notified says busy at once, %s, and the cached reads of others stay",
  async (how) => {
    const { near, far } = stage;
    const third = await stage.join();
    for (const party of [far, third]) await warm(near, party);
    const inside = await stage.pairOf(far).read.lock();
    await stage.keep();
    const recalls = heard(near, "recall");
    const { write } = stage.pairOf(third);
    const all =
      how === "alone" ? write : third.locks.multiLock([write, third.locks.lock(`${stage.lock.name}:other`)]);
    const lease = await all.tryLock();
    expect([lease, await places()]).toEqual([null, 0]);
    expect(recalls).toEqual([]);
    await inside.unlock();
  },
);

it("recall() of a suspended client delays no reader, and a writer's tryLock() is answered soon", async () => {
  const { near, far, proxy } = stage;
  await stage.keep();
  const third = await stage.join();
  await warm(far, third);
  await warm(near, far);
  await stage.pairOf(near).read.withLock(() => {});
  proxy.freeze();
  const commands = await countCommands(far.redis);
  const recalled = stage.pairOf(far).read.recall();
  // The question was sent.
  await until(async () => (await commands.since()).publish);
  const [lease, waited] = await timedAwake(stage.pairOf(third).read.lock());
  expect(waited).toBeLessThan(AT_ONCE);
  await lease.unlock();
  expect(await recalled).toBe("silent");
  const [none, took] = await timedAwake(stage.pairOf(third).write.tryLock());
  expect([none, took < AT_ONCE, await places()]).toEqual([null, true, 0]);
});

it.each([
  ["at once", 0],
  ["long after", STAY_FRESH],
])(
  "a reader that has reported itself to a writer's try releases when it leaves %s, because another caller may have queued since",
  async (_, body) => {
    const { near, far, key } = stage;
    const { read } = await stage.keep();
    // Neither claimed nor renewed.
    const inside = await read.lock({ lease: STAY_WINDOW - 500 });
    const [hold = ""] = (await far.redis.hkeys(key)).filter((field) => field !== "=");
    const ears = far.redis.duplicate();
    const asker = `holdfast:client:${far.locks.id}`;
    const busy = new Promise((resolve) => ears.on("message", (_, text: string) => resolve(text)));
    await ears.subscribe(asker);
    const nonce = `${far.locks.id}.0123456789abcdef`;
    await far.redis.publish(hold.slice(0, -22), `recall ${hold} ${nonce} ${key}`);
    expect(await busy).toBe(`busy ${nonce} ${key}`);
    ears.disconnect();
    const told = performance.now();
    await until(() => performance.now() > told + body);
    await inside.unlock();
    expect([near.locks.stats().kept, await stage.holders()]).toEqual([0, 0]);
  },
);
