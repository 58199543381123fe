import { expect, it } from "vitest";
import type { Listed } from "../../src/api/list.ts";
import { type Sight, Watch } from "../../src/tools/ui/watch.ts";
import { until } from "../support/until.ts";

// What viewers are told where a look fails, or takes long.

/** A watch whose looks end as the last of `ends` says, when that is there. */
function watched() {
  const ends: ("fails" | "answers")[] = [];
  let looks = 0;
  const watch = new Watch(async function* (signal): AsyncGenerator<Listed> {
    const look = looks++;
    await until(() => signal.aborted || ends.length > look);
    if (ends[look] === "fails") throw new Error("no connection to Redis");
  }, 1 / 4);
  const view = () => {
    const sights: Sight[] = [];
    return { sights, stop: watch.view((sight) => void sights.push(sight)) };
  };
  return { ends, view };
}

it("one that begins to look while nothing was ever answered is told why at once", async () => {
  const { ends, view } = watched();
  const one = view();
  ends.push("fails");
  await until(() => one.sights.length === 1);
  expect(one.sights[0]).toMatchObject({ survey: null, trouble: "no connection to Redis" });
  const other = view();
  expect(other.sights).toEqual([one.sights[0]]);
  for (const { stop } of [one, other]) stop();
});

it("a look that fails leaves what was seen before, as old as it is, and the next one mends it", async () => {
  const { ends, view } = watched();
  const { sights, stop } = view();
  ends.push("answers", "fails", "answers");
  await until(() => sights.length === 3);
  stop();
  const [first, second, third] = sights;
  expect([first?.trouble, second?.trouble, third?.trouble]).toEqual([null, "no connection to Redis", null]);
  expect(second?.survey).toBe(first?.survey);
  expect(third?.survey?.at).toBeGreaterThan((first?.survey?.at ?? 0) + 3_000);
  // Two seconds from one look to the next.
  expect(first?.due).toBeGreaterThanOrEqual(2_000);
});

it("after a viewer has gone, the next one is not told what was wrong before", async () => {
  const { ends, view } = watched();
  const one = view();
  ends.push("fails");
  await until(() => one.sights.length === 1);
  one.stop();
  const other = view();
  expect(other.sights).toEqual([]);
  ends.push("answers", "answers");
  await until(() => other.sights.length === 1);
  expect(other.sights[0]?.trouble).toBeNull();
  other.stop();
});
