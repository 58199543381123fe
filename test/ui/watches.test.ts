import { expect, it } from "vitest";
import type { Listed, ListOptions } from "../../src/api/list.ts";
import { narrowOf } from "../../src/tools/ui/views.ts";
import type { Sight } from "../../src/tools/ui/watch.ts";
import { Watches } from "../../src/tools/ui/watches.ts";
import { until } from "../support/until.ts";

// Looks at more locks than are kept in memory, which no Redis has to have for that.

const owner = {
  id: "x",
  label: null,
  host: null,
  pid: null,
  number: null,
  client: null,
  since: null,
  units: 1,
  mode: null,
};

/** Far more than what a busy machine takes to read them all: times are as of the end of a look. */
const APART = 600_000;

const lock = (i: number, waiters = 0): Listed => ({
  ...{
    kind: "lock",
    name: `job:${i}`,
    holder: null,
    holders: [],
    heldFor: i * APART,
    remaining: 1,
    kept: false,
    permits: null,
  },
  waiters: Array.from({ length: waiters }, () => ({ ...owner, waitedFor: i * APART })),
});

/** 25 000 locks, for some of which others wait; and what was asked for. */
function many(pause: () => Promise<void> = async () => {}) {
  const asked: (string | undefined)[] = [];
  const list = async function* ({ match }: ListOptions) {
    asked.push(match);
    if (match !== undefined) {
      yield lock(7);
      return;
    }
    for (let i = 0; i < 25_000; i++) {
      if (i === 100) await pause();
      yield lock(i, i % 5_000 === 1 ? 2 : 0);
    }
  };
  return { asked, watches: new Watches(list, () => null) };
}

it("surplus locks are counted, and the foremost ones are kept", async () => {
  const { watches } = many();
  const { survey } = (await watches.once(null)).sight;
  expect(survey).toMatchObject({
    total: 25_000,
    counts: { held: 0, waited: 5, long: 5 },
    isCut: true,
    isPartial: false,
  });
  expect(survey?.locks).toHaveLength(10_000);
  expect(survey?.locks.slice(0, 6).map(({ name }) => name)).toEqual(
    [20_001, 15_001, 10_001, 5_001, 1, 24_999].map((i) => `job:${i}`),
  );
  await until(() => watches.viewers === 0);
});

it("a search among them samples the names itself, and so does one lock; all are read beside that, for the line on top", async () => {
  const { watches, asked } = many();
  const wanted = (query: string) => {
    const all = new URLSearchParams(query);
    return narrowOf(all.get("view"), all);
  };
  expect(wanted("view=now")).toBeNull();
  expect(wanted("view=lock&kind=other&name=x")).toBeNull();
  const seen = async (query: string) => {
    const { sight, isNarrow } = await watches.once(wanted(query));
    return [isNarrow, sight.survey?.total];
  };
  // Nobody knows yet how many there are.
  await seen("view=now&search=b:7");
  expect(await seen("view=now&search=job:%3F")).toEqual([true, 1]);
  expect(await seen("view=now&search=b:7")).toEqual([true, 1]);
  expect(await seen("view=lock&kind=lock&name=job:*")).toEqual([true, 1]);
  expect(new Set(asked)).toEqual(new Set([undefined, "job:?", "*b:7*", "job:\\*"]));
  const sights: boolean[] = [];
  const fresh = many();
  const stop = fresh.watches.view(wanted("view=now&search=b:7"), (_, isNarrow) => void sights.push(isNarrow));
  await until(() => sights.at(-1) === true);
  expect(sights[0]).toBe(false);
  await until(() => fresh.watches.all.sight.survey?.isPartial === false);
  expect(fresh.watches.all.viewers).toBe(1);
  stop();
  await until(() => fresh.watches.viewers + watches.viewers === 0);
});

it("a slow first sample shows its beginning", async () => {
  const { watches } = many(() => new Promise((later) => setTimeout(later, 450)));
  const sights: Sight[] = [];
  const stop = watches.view(null, (sight) => void sights.push(sight));
  await until(() => sights.at(-1)?.survey?.isPartial === false);
  stop();
  expect(sights[0]?.survey?.isPartial).toBe(true);
  expect(sights[0]?.survey?.total).toBeLessThanOrEqual(101); // fewer on a machine that is slow itself
  expect(sights.at(-1)?.survey).toMatchObject({ isPartial: false, total: 25_000 });
});
