import { expect, it } from "vitest";
import type { Listed } from "../../src/api/list.ts";
import { type Sight, Watch } from "../../src/tools/ui/watch.ts";
import { until } from "../support/until.ts";

// What viewers are told where a look fails, or takes long. Side by side: they wait for the next look.

/** A lock that is held for longer than any of these tests takes, by a hold of this number. */
const held = (name: string, hold = 1): Listed =>
  ({ kind: "lock", name, holders: [{ id: `hold ${hold}` }], remaining: 60_000, waiters: [] }) as never;

/** What each look of a watch said of a restart, when looks find these runs of a server and locks. */
async function restartsIn(...looks: (readonly [run: string | null, ...locks: Listed[]])[]) {
  let next = -1;
  const run = () => looks[next]?.[0] ?? null;
  const watch = new Watch(
    async function* (): AsyncGenerator<Listed> {
      next++;
      for (const lock of looks[next]?.slice(1) ?? []) yield lock as Listed;
    },
    1 / 4,
    run,
  );
  const sights: Sight[] = [];
  const stop = watch.view((sight) => void sights.push(sight));
  await until(() => sights.length >= looks.length, { timeout: 60_000 });
  stop();
  return sights
    .slice(0, looks.length)
    .map(({ restart }) => restart && [restart.isCertain, restart.gone, restart.held]);
}

/** A watch whose looks end as the last of `ends` says, when that is there. */
function watched() {
  const ends: ("fails" | "answers")[] = [];
  const looks: number[] = [];
  const watch = new Watch(async function* (signal): AsyncGenerator<Listed> {
    const look = looks.push(performance.now()) - 1;
    await until(() => signal.aborted || ends.length > look);
    if (ends[look] === "fails") throw new Error("no connection to Redis");
  }, 1 / 4);
  const view = () => {
    const sights: Sight[] = [];
    return { sights, stop: watch.view((sight) => void sights.push(sight)) };
  };
  return { ends, looks, view };
}

it.concurrent("a viewer that comes before the first answer learns the reason at once", async () => {
  const { ends, view } = watched();
  const one = view();
  ends.push("fails");
  await until(() => one.sights.length === 1);
  expect(one.sights[0]).toMatchObject({ survey: null, trouble: "no connection to Redis" });
  const other = view();
  expect(other.sights).toEqual([one.sights[0]]);
  for (const { stop } of [one, other]) stop();
});

it.concurrent("a failed sample leaves the former state, with its age, and the next one restores it", async () => {
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

it.concurrent("after a viewer has gone, the next one does not get its errors", async () => {
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

it.concurrent("after a look that hung the next one comes as soon as ever; only two slow ones in a row make looks rare", async () => {
  const { ends, looks, view } = watched();
  const { sights, stop } = view();
  ends.push("answers");
  await until(() => looks.length === 2);
  const [, began = 0] = looks;
  // By a length of 4 s alone the next one would come 12 s later.
  await until(() => performance.now() - began >= 4_000);
  ends.push("answers");
  await until(() => looks.length === 3);
  stop();
  const [, second] = sights;
  expect((looks[2] ?? 0) - (second?.survey?.at ?? 0)).toBeLessThan(8_000);
  expect(sights.map(({ trouble }) => trouble)).toEqual([null, null]);
});

it.concurrent("a restart between two looks is reported, with the locks whose holders are gone", async () => {
  const before = [held("kept"), held("lost"), held("taken again")];
  const after = [held("kept"), held("taken again", 2)];
  expect(
    await restartsIn(
      ["a", ...before],
      // A look that does not learn the run hides nothing.
      [null, ...after],
      ["b", ...after],
      // The next restart loses nothing, and the report of the loss stays.
      ["c", ...after],
    ),
  ).toEqual([null, null, [true, 2, 3], [true, 2, 3]]);
});

it.concurrent("a restart that keeps the locks is reported with none gone; without a run none is reported", async () => {
  const both = [held("a"), held("b")];
  expect(await restartsIn(["a", ...both], ["b", ...both], ["b"])).toEqual([null, [true, 0, 2], [true, 0, 2]]);
  expect(await restartsIn([null, ...both], [null])).toEqual([null, null]);
});
