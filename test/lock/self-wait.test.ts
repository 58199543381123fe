import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inVirtualTime } from "../contract/in-virtual-time.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { linkOf } from "../support/link.ts";
import { lockOf } from "../support/permit.ts";
import { present } from "../support/present.ts";
import type { OwnServer } from "../support/servers/topology.ts";
import { until } from "../support/until.ts";
import { whileTimePasses } from "../world/virtual-time.ts";

// A caller that waits for the very code that has called it waits for ever, and is told so; callers
// that only wait long are not. In virtual time.

const KINDS = ["lock", "fairLock", "redissonLock", "spinLock"] as const;
type Kind = (typeof KINDS)[number];
const LEASE = 5_000;
const WARNED = { what: "the warning", timeout: 60_000 };
const parties = new Parties();
const seen: (Error & { code?: string })[] = [];
const watch = (warning: Error & { code?: string }): void => void seen.push(warning);
let server: OwnServer;

const start = (): Promise<OwnServer> => present(inVirtualTime.ownServer)();
const join = (): Promise<Party> => server.join(parties, { leaseTime: LEASE });
const passing = (work: () => Promise<void>) => () => whileTimePasses(work);
/** The warnings about these locks. */
const told = (...names: readonly string[]) =>
  seen.filter(
    ({ code, message }) => code === "LOCK_SELF_WAIT" && names.some((name) => message.includes(name)),
  );

beforeAll(
  passing(async () => {
    process.on("warning", watch);
    server = await start();
  }),
);
afterAll(
  passing(async () => {
    process.off("warning", watch);
    await parties.close();
  }),
);

// Each kind has its one warning in the contract.
it(
  "a caller that waits for its own client: a warning, and no second one within a minute",
  passing(async () => {
    const { locks } = await join();
    const waits: string[] = [];
    locks.on("wait", ({ name, heldBy }) => void waits.push(`${name},${heldBy}`));
    const names = [freshName(), freshName()];
    const held = await Promise.all(names.map((name) => locks.lock(name).lock()));
    const waiting = names.map((name) => locks.lock(name).lock());
    await until(() => names.every((name) => waits.includes(`${name},this client`)));
    expect(told(...names)).toMatchObject([
      { message: expect.stringContaining(`which this process (pid ${process.pid}) holds`) },
    ]);
    for (const lease of held) await lease.unlock();
    for (const one of waiting) await (await one).unlock();
  }),
);

it(
  "a reader outside of every scope that waits for the write lock of its name: the warning, and both wait on",
  passing(async () => {
    const { locks } = await join();
    const waits: string[] = [];
    locks.on("wait", ({ name, heldBy }) => void waits.push(`${name},${heldBy}`));
    const name = freshName();
    const { read, write } = locks.readWriteLock(name);
    const reader = await read.lock();
    const begun = performance.now();
    const writing = write.lock();
    await until(() => told(name).length > 0, WARNED);
    expect(performance.now() - begun).toBeGreaterThan(2 * LEASE - 1);
    expect(waits).toContain(`${name},this client`);
    await delay(4 * LEASE);
    expect([reader.held, await Promise.race([writing, "waits"])]).toEqual([true, "waits"]);
    await reader.unlock();
    await (await writing).unlock();
  }),
);

const HELD =
  "10 1800000000000007 1800000000000001 holdfast:client:host:7:0123456789abcdef:000000010123456789abc";
/** How another process takes a lock: its key, and a command that writes it. */
const FOREIGN: Readonly<Record<Kind, (name: string) => readonly [string, readonly string[]]>> = {
  lock: (name) => [`holdfast:{${name}}`, ["SET", `holdfast:{${name}}`, HELD]],
  fairLock: (name) => [`holdfast:{${name}}`, ["SET", `holdfast:{${name}}`, HELD]],
  redissonLock: (name) => [name, ["HSET", name, "another:1", "1"]],
  spinLock: (name) => [name, ["SET", name, "another"]],
};

/** Another process takes it there, and renews it until the end. */
async function takeElsewhere({ redis }: Party, kind: Kind, name: string, end: AbortSignal): Promise<void> {
  const [key, take] = FOREIGN[kind](name);
  const link = linkOf(redis);
  await link.command(take);
  const renew = () => link.command(["PEXPIRE", key, `${LEASE}`]);
  await renew();
  const renewing = setInterval(renew, LEASE / 3);
  end.addEventListener("abort", () => clearInterval(renewing));
}

describe.each(KINDS)("%s", (kind) => {
  it(
    "another client of its process holds a caller's lock: the warning too, unless it is on another server",
    passing(async () => {
      const [outer, inner] = [await join(), await join()];
      const away = await (await start()).join(parties, { leaseTime: LEASE / 2 });
      const [waits, elsewhere] = [[], []] as [unknown[], unknown[]];
      inner.locks.on("wait", ({ heldBy }) => waits.push(heldBy));
      away.locks.on("wait", ({ heldBy }) => elsewhere.push(heldBy));
      const name = freshName();
      const enough = new AbortController();
      const { signal } = enough;
      await takeElsewhere(away, kind, name, signal);
      await lockOf(outer.locks, kind, name).withLock(async () => {
        const both = [inner, away].map(({ locks }) =>
          lockOf(locks, kind, name)
            .withLock({ signal }, () => "never")
            .catch(() => "given up"),
        );
        // Two of the leases of the other server's caller are over long before that.
        await until(() => told(name).length > 0, WARNED);
        enough.abort();
        expect(await Promise.all(both)).toEqual(["given up", "given up"]);
      });
      expect(told(name)).toMatchObject([
        { message: expect.stringContaining("another lock client of this process") },
      ]);
      expect(waits).toEqual(["unknown", "this process"]);
      expect(elsewhere).toEqual(["unknown"]);
    }),
  );
});

it(
  "candidates of one election wait on purpose: no warning, except for a caller that came later",
  passing(async () => {
    const [candidates, control] = [await join(), await join()];
    const waits: string[] = [];
    for (const { locks } of [candidates, control])
      locks.on("wait", (event) => void waits.push(`${event.kind}: ${event.heldBy}`));
    const candidacy = freshName();
    const election = candidates.locks.election(candidacy, { lease: LEASE });
    const term = await election.campaign();
    const next = election.campaign();
    await until(() => waits.includes("election: unknown"));
    const lock = control.locks.fairLock(freshName());
    const lease = await lock.lock();
    const waiting = lock.lock();
    await until(() => told(lock.name).length > 0, WARNED);
    // The candidate has re-checked by then.
    await delay(LEASE);
    await term.resign();
    await (await next).resign();
    await lease.unlock();
    await (await waiting).unlock();
    expect(told(candidacy)).toEqual([]);
    expect(waits.filter((one) => one.startsWith("election"))).toEqual(["election: unknown"]);
  }),
);

it(
  "callers that each hold a lock for longer than a lease, of one client or of two: no warning",
  passing(async () => {
    const [one, other] = [await join(), await join()];
    const jobs = [one, one, one, other].flatMap(({ locks }) =>
      KINDS.map((kind) => lockOf(locks, kind, `self-wait:${kind}`)),
    );
    await Promise.all(jobs.map((lock) => lock.withLock({ wait: 60_000 }, () => delay(1.1 * LEASE))));
    expect(told("self-wait:")).toEqual([]);
  }),
);

it(
  "a caller ahead in the queue, from before the holder got it, does not hide one that waits for itself",
  passing(async () => {
    const { locks } = await join();
    const lock = locks.lock(freshName());
    const first = await lock.lock();
    const second = lock.lock();
    const third = lock.lock();
    await first.unlock();
    const held = await second;
    // By the code that holds it, behind the third caller, which waits for the same.
    const fourth = lock.lock();
    await until(() => told(lock.name).length > 0, WARNED);
    await held.unlock();
    await (await third).unlock();
    await (await fourth).unlock();
  }),
);
