import { expect, it } from "vitest";
import { Dice } from "../chaos/dice.ts";
import { ALL, type CountedHold, CountedStage } from "./stage.ts";

// Commands of holds at random, copies of earlier ones among them. Behind each of them the books are
// what the fields say, no more is in use than there is, and nobody waits that fits.

const stage = new CountedStage();
const SEED = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
const STEPS = 400;

/** What must be true behind every script that did not leave it to another one. */
async function check(what: string): Promise<void> {
  const fields = await stage.redis.hgetall(stage.keys.hash);
  const entries = await stage.redis.zrange(stage.keys.queue, 0, "-1");
  const { "=": text, ...holds } = fields;
  const units = Object.values(holds).map((field) => Number(field.slice(17, 24)));
  const used = units.reduce((sum, one) => sum + one, 0);
  if (text === undefined) {
    expect(Object.keys(holds), what).toEqual([]);
    expect(entries, what).toEqual([]);
    return;
  }
  const books = await stage.books();
  expect(books, what).toMatchObject({ used, holds: units.length });
  const ends = Object.values(holds).map((field) => Number(field.slice(3, 16)));
  expect(books.reap, what).toBeLessThanOrEqual(Math.min(...ends, 9_999_999_999_999));
  if (books.source === "c") expect(used, what).toBeLessThanOrEqual(books.permits);
  const [head] = entries;
  if (head !== undefined)
    expect(Number(head.split(" ")[3]), `${what}: the head fits`).toBeGreaterThan(books.permits - used);
}

it.each(["readers and writers", "permits"])(`%s (TEST_SEED=${SEED})`, async (kind) => {
  const dice = new Dice(SEED);
  const isPermits = kind === "permits";
  const holds: CountedHold[] = [];
  const writers: number[] = [];
  const make = (): CountedHold => {
    const client = dice.pick(["a", "b", "c", "d"]);
    const hold = isPermits
      ? stage.permits(client, 6, dice.int(1, 4), { upTo: dice.int(4, 6) })
      : dice.chance(0.3)
        ? stage.writer(client)
        : stage.reader(client);
    holds.push(hold);
    if (holds.length > 12) holds.shift();
    return hold;
  };
  const one = (): CountedHold => (holds.length > 0 ? dice.pick(holds) : make());
  const steps: Record<string, () => Promise<unknown>> = {
    queue: () => make().queue(),
    try: () => make().try(),
    copy: () => one().queue(),
    recheck: () => one().recheck(),
    join: () => one().join(),
    release: () => one().release(),
    again: () => one().release(),
    shrink: () => (isPermits ? one().release(dice.int(1, 3)) : one().release(1, 1_900_000_000_000_000)),
    leave: () => one().leave(),
    renew: () => one().renew(dice.int(10, 60_000)),
    yield: () => one().yieldTo(make(), isPermits ? dice.int(0, 2) : 0),
    advance: () => stage.run("advance"),
    force: () => (dice.chance(0.1) ? stage.run("forceRelease", "", "") : Promise.resolve()),
    set: () => (isPermits && dice.chance(0.1) ? stage.setPermits(dice.int(4, 9), STEPS) : Promise.resolve()),
  };
  const done: string[] = [];
  for (let step = 0; step < STEPS; step++) {
    const name = dice.pick(Object.keys(steps));
    done.push(name);
    const answer = await steps[name]?.();
    await check(`${done.slice(-12).join(", ")} → ${JSON.stringify(answer)}`);
  }
  // Writers never share, and their tokens grow.
  for (const { token, units } of await stage.shares()) if (units === ALL) writers.push(token);
  expect(writers).toEqual([...writers].sort((a, b) => a - b));
});
