import { describe, expect, it, onTestFinished } from "vitest";
import { observe } from "../../src/tools/ui/index.ts";
import { STREAM, type Told, type ToldCall } from "../../src/tools/ui/observed.ts";
import { cli } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { running } from "../support/result-runs.ts";
import { servePage } from "../support/served-page.ts";
import { toldCall } from "../support/told-call.ts";
import { until } from "../support/until.ts";

// What the page says of waits: candidates that stand by are well, callers that wait now count, and
// events are told in order of time.

const own = new OwnServer();

interface Row {
  readonly name: string;
  readonly kind: string;
  readonly longest: number | null;
  readonly waitingProcesses: number;
}
interface State {
  readonly locks: readonly Row[];
  readonly worst: Row | null;
  readonly waitedLocks: number;
  readonly longWaits: number;
  readonly clients: readonly { readonly id: string }[];
  readonly waitTimes: readonly (Row & { readonly waits: readonly number[] })[];
  readonly lock: Row | null;
  readonly reported: readonly { readonly how: string; readonly ago: number }[];
}

async function serve(options: Parameters<typeof servePage>[1] = {}) {
  await own.admin.flushall();
  const { redis } = await own.parties.join({ url: own.url });
  const served = await servePage(redis, options);
  onTestFinished(() => served.stop());
  return async (query: string) => (await (await fetch(`${served.url}?part=state&${query}`)).json()) as State;
}

const join = async () => (await own.parties.join({ url: own.url })).locks;
/** A score of a queue. */
const micros = (ago: number): number => (Date.now() - ago) * 1_000;

/** Lets what waits in a queue have waited for so long. */
async function age(queue: string, ago: number): Promise<void> {
  for (const entry of await own.admin.zrange(queue, 0, "-1")) await own.admin.zadd(queue, micros(ago), entry);
}

it("a run is shown with its kind, its holder and its waiters, and what it leaves is not", async () => {
  const state = await serve();
  const [one, other] = [await join(), await join()];
  const name = freshName("result");
  const { run, ran } = await running(one, name, { label: "charge" });
  const waiting = other.remember(name, { keep: 60_000 }, () => "mine");
  await until(async () => (await own.admin.zcard(`holdfast:remember:{${name}}:queue`)) === 1);
  const shown = { name, kind: "remember", waitingProcesses: 1, holder: { label: "charge" } };
  expect((await state("view=now")).locks).toMatchObject([shown]);
  const { lock } = await state(`view=lock&kind=remember&name=${name}`);
  expect(lock).toMatchObject(shown);
  ran("a secret");
  expect((await waiting).token).toBe(run.token);
  await until(async () => (await state("view=now")).locks.length === 0);
  const all = await Promise.all(["view=now", `view=lock&kind=remember&name=${name}`].map(state));
  expect(JSON.stringify(all)).not.toContain("a secret");
});

describe("an election", () => {
  /** A leader, two candidates that stand by for 15 min, and a lock that is waited for. */
  async function standby() {
    const state = await serve();
    const [leader, one, other] = [await join(), await join(), await join()];
    const [elected, contended] = [freshName("a-scheduler"), freshName("order")];
    const term = await leader.election(elected).campaign();
    const ended = new AbortController();
    const gone = [one, other].map((locks) =>
      locks
        .election(elected)
        .campaign({ signal: ended.signal })
        .catch(() => {}),
    );
    await until(async () => (await own.admin.zcard(`holdfast:election:{${elected}}:queue`)) === 2);
    await age(`holdfast:election:{${elected}}:queue`, 900_000);
    const lease = await one.lock(contended).lock();
    const waiter = leader.lock(contended).lock();
    await until(async () => (await one.lock(contended).inspect()).waiters?.length === 1);
    const end = async () => {
      ended.abort();
      await Promise.all(gone);
      await lease.unlock();
      await (await waiter).unlock();
      await term.resign();
    };
    return { state, elected, contended, end };
  }

  it("with candidates on standby is no row at the top, no longest wait, and blocks no process", async () => {
    const { state, elected, contended, end } = await standby();
    const now = await state("view=now");
    expect(now.locks.map(({ name }) => name)).toEqual([contended, elected]);
    expect(now.locks[1]).toMatchObject({ kind: "election", waitingProcesses: 2, longest: null });
    expect(now).toMatchObject({ worst: { name: contended }, waitedLocks: 1, longWaits: 0 });
    expect((await state("view=now&only=waited")).locks.map(({ name }) => name)).toEqual([contended]);
    expect((await state("view=now&sort=wait")).locks.map(({ name }) => name)).toEqual([contended, elected]);
    // The leader waits for a lock of a candidate, which is no sign of a deadlock.
    expect(JSON.stringify((await state("view=blocked")).clients)).not.toMatch(/"sign"|scheduler/);
    expect((await state("view=wait-times")).waitTimes.map(({ name }) => name)).toEqual([contended]);
    const listed = (await cli("ls", "--redis", own.url).finished).stdout.trim().split("\n");
    expect(listed.map((line) => line.split(" ")[0])).toEqual(["NAME", contended, elected]);
    expect(listed[2]).toMatch(/2 +standby$/);
    await end();
  });

  it("without a leader is a wait, which counts from when it was first seen so", async () => {
    const state = await serve();
    const name = freshName("scheduler");
    const hold = `holdfast:client:web-1:7:0123456789abcdef:00000001${"a".repeat(13)}`;
    await own.admin.zadd(`holdfast:election:{${name}}:queue`, micros(900_000), `1 3000 0 ${hold}`);
    const first = await state("view=now");
    expect(first).toMatchObject({ worst: { name, kind: "election" }, waitedLocks: 1, longWaits: 0 });
    expect(first.worst?.longest).toBeLessThan(300_000);
    const longer = await until(
      async () => {
        const { worst } = await state("view=now");
        return worst?.name === name && (worst.longest ?? 0) > (first.worst?.longest ?? 0) && worst;
      },
      { what: "a longer wait" },
    );
    expect(longer.longest).toBeLessThan(300_000);
  });
});

describe("wait times have the waits in progress", () => {
  async function waiting(options: Parameters<typeof servePage>[1] = {}) {
    const state = await serve(options);
    const name = freshName("order");
    const holder = await join();
    const lease = await holder.lock(name).lock();
    const others = [await join(), await join(), await join()];
    const waiters = others.map((locks) => locks.lock(name).lock());
    await until(async () => (await holder.lock(name).inspect()).waiters?.length === 3);
    await age(`holdfast:{${name}}:queue`, 80_000);
    const end = async () => {
      await lease.unlock();
      await Promise.all(waiters.map(async (waiter) => (await waiter).unlock()));
    };
    return { state, name, others, end };
  }

  it("of processes that nothing observes, and of a page without a connection for reports", async () => {
    for (const options of [{}, { redis: undefined }]) {
      const { state, name, end } = await waiting(options as never);
      const { waitTimes } = await state("view=wait-times");
      expect(waitTimes).toMatchObject([{ kind: "lock", name, waitingProcesses: 3 }]);
      expect(waitTimes[0]?.longest).toBeGreaterThanOrEqual(80_000);
      expect((await state(`view=lock&kind=lock&name=${name}`)).lock).toMatchObject({
        waitingProcesses: 3,
        longest: expect.any(Number),
      });
      await end();
      await until(async () => (await state("view=wait-times")).waitTimes.length === 0);
    }
  });

  it("beside those that have ended, and a long one comes first", async () => {
    const { state, name, others, end } = await waiting();
    const busy = freshName("busy");
    const told: Told = { client: "web-1:7:0123456789abcdef", waits: { [busy]: { "12": 900 } }, calls: [] };
    await own.admin.xadd(STREAM, "*", "told", JSON.stringify(told));
    const { redis } = await own.parties.join({ url: own.url });
    const stops = others.map((locks) => observe(locks, redis));
    const rows = await until(async () => {
      const { waitTimes } = await state("view=wait-times");
      return waitTimes.length === 2 && waitTimes;
    });
    expect(rows).toMatchObject([
      { name, waitingProcesses: 3 },
      { name: busy, waitingProcesses: 0, longest: null },
    ]);
    for (const stop of stops) stop();
    await end();
  });
});

it("the reported calls of a lock, and its last loss, are in order of time, whichever process reports first", async () => {
  const state = await serve();
  const name = freshName("order");
  const locks = await join();
  await using _ = await locks.lock(name).lock();
  const tell = (client: string, ...ended: [ToldCall["how"], number][]) => {
    const told: Told = {
      client: `${client}:7:0123456789abcdef`,
      waits: {},
      calls: ended.map(([how, ago]) => toldCall(name, how, { ago, why: how === "lost" ? client : null })),
    };
    return own.admin.xadd(STREAM, "*", "told", JSON.stringify(told));
  };
  await tell("web-1", ["released", 5_000], ["lost", 1_000]);
  await tell("web-2", ["giveup", 9_000], ["lost", 8_000], ["released", 3_000]);
  const { reported } = await state(`view=lock&kind=lock&name=${name}`);
  expect(reported.map(({ how }) => how)).toEqual(["lost", "released", "released", "lost", "giveup"]);
  const agos = reported.map(({ ago }) => ago);
  expect(agos).toEqual([...agos].sort((one, other) => one - other));
  expect((await state("view=now")).locks).toMatchObject([{ name, lost: { why: "web-1" } }]);
});
