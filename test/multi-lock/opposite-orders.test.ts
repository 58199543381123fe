import { expect, it } from "vitest";
import { Section } from "../contract/observe.ts";
import type { Party } from "../support/fixture.ts";
import { MultiLocks, three } from "../support/multi-locks.ts";

// A multi-lock takes its members in one order, whatever order it was given, so there is no deadlock.

const several = new MultiLocks();

it("callers that want the same locks in opposite orders never wait for each other: all get them", async () => {
  const [a, b] = three();
  const section = new Section();
  const rounds = async ({ locks }: Party, names: string[]) => {
    for (let i = 0; i < 150; i++) await locks.multiLock(names).withLock({ wait: 60_000 }, section.visit);
  };
  const { mine, theirs } = several;
  const third = await several.join();
  await Promise.all([
    rounds(mine, [a, b]),
    rounds(theirs, [b, a]),
    rounds(third, [b, a]),
    rounds(third, [a, b]),
  ]);
  expect(section).toMatchObject({ most: 1, visits: 600 });
  await several.gone([a, b]);
});
