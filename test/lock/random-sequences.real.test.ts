// On a real Redis; in virtual time: test/world/seeds-with-faults.test.ts.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Lease } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { keysWithoutTtl, trackUnhandled } from "../support/leaks.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Random sequences of acquire, unlock, abort, expire and kill with three clients on one lock. The
// reference is simple, because all three share this process and its clock: at the moment of a grant
// no other lease may say that it is held, and its token must be the greatest so far.

/** Longer than a busy machine stands still: what the watchdog renews is not to run out. */
const LEASE = 2_000;
/** One that runs out. */
const SHORT = 300;
const RUNS = 300;
/** Sequences that are played at the same time: most of their time they wait. */
const LANES = 30;
const seed = Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

type Kind = "lock" | "fairLock";
type Step = {
  readonly client: 0 | 1 | 2;
  readonly act: "acquire" | "short" | "unlock" | "abort" | "expire" | "kill" | "pause";
};

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    client: fc.constantFrom(0 as const, 1 as const, 2 as const),
    act: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom("acquire" as const, "short" as const) },
      { weight: 8, arbitrary: fc.constant("unlock" as const) },
      { weight: 3, arbitrary: fc.constantFrom("abort" as const, "expire" as const) },
      { weight: 1, arbitrary: fc.constant("kill" as const) },
    ),
  }),
  { minLength: 4, maxLength: 24 },
);

const parties = new Parties();
let server: LocalServer;

beforeAll(async () => {
  server = await launchServer();
});
afterAll(async () => {
  await parties.close();
  await server.stop();
});

/** One client behind a proxy, so that it can vanish from the network while its leases believe on. */
class Player {
  readonly party: Party;
  readonly #proxy: TcpProxy;
  isDead = false;
  readonly waiting = new Map<Promise<unknown>, AbortController>();
  readonly leases = new Set<Lease>();

  private constructor(party: Party, proxy: TcpProxy) {
    this.party = party;
    this.#proxy = proxy;
  }

  static async join(): Promise<Player> {
    const proxy = await TcpProxy.start(server);
    const party = await parties.join({
      url: proxy.url,
      client: { leaseTime: LEASE, grantWindow: 500, localHandoffs: 2, replyTimeout: 30_000 },
    });
    party.locks.on("error", () => {}); // renewals of a killed client
    return new Player(party, proxy);
  }

  kill(): void {
    this.isDead = true;
    this.#proxy.refuse(true);
    this.#proxy.cut();
  }

  async leave(): Promise<void> {
    for (const lease of this.leases) lease.unlock().catch(() => {});
    this.party.redis.disconnect();
    await this.party.locks.close({ grace: 0 });
    await this.#proxy.stop();
  }
}

/** Plays one sequence on one lock. Throws at the first grant that breaks a promise. */
async function play(kind: Kind, sequence: readonly Step[]): Promise<void> {
  const name = freshName();
  const players = await Promise.all([Player.join(), Player.join(), Player.join()]);
  const given: Lease[] = [];
  /** Those that nobody renews. */
  const short = new Set<Lease>();
  const faults: string[] = [];
  let last = 0;

  /** For the message of a failure: whose it is, and how long it believes on. */
  const show = (lease: Lease): string => {
    const player = players.findIndex(({ leases }) => leases.has(lease));
    const how = `${short.has(lease) ? "short" : "renewed"}${players[player]?.isDead ? ", killed" : ""}`;
    return `token ${lease.token} (client ${player}, ${how}, ${lease.remaining} ms left)`;
  };
  const granted = (player: Player, lease: Lease): void => {
    const believers = given.filter((other) => other.held);
    player.leases.add(lease);
    if (lease.held && believers.length > 0)
      faults.push(`${show(lease)} was granted while ${believers.map(show).join(" and ")} believed`);
    if (lease.token <= last) faults.push(`token ${lease.token} came after ${last}`);
    last = Math.max(last, lease.token);
    given.push(lease);
  };
  const acquire = (player: Player, lease?: number): void => {
    const controller = new AbortController();
    const work = player.party.locks[kind](name)
      .lock({ signal: controller.signal, lease })
      .then((one) => {
        if (lease) short.add(one);
        granted(player, one);
      })
      .catch((error: unknown) => {
        // A lease may be over before Redis has answered; when that comes twice, the call is refused.
        const isOver = String(error).includes("was over before the caller could have it");
        if (!controller.signal.aborted && !player.isDead && !isOver)
          faults.push(`lock() failed: ${String(error)}`);
      })
      .finally(() => player.waiting.delete(work));
    player.waiting.set(work, controller);
  };
  const unlock = async (player: Player): Promise<void> => {
    const [lease] = player.leases;
    if (!lease) return;
    player.leases.delete(lease);
    const wasHeld = lease.held;
    await lease.unlock().catch((error: { code?: string }) => {
      if (wasHeld && lease.remaining > LEASE / 2) faults.push(`unlock of a held lease failed: ${error.code}`);
    });
  };

  /** A holder that goes away without a word: its lease runs out. */
  const expire = async (player: Player): Promise<void> => {
    const lease = [...player.leases].find((one) => short.has(one));
    if (!lease) return;
    await until(() => !lease.held, { what: "a short lease to end" });
    player.leases.delete(lease);
  };
  /** Two round trips: what was begun has reached the server, and a grant may have come back. */
  const breathe = async (player: Player): Promise<void> => {
    if (player.isDead) return;
    await player.party.redis.ping();
    await player.party.redis.ping();
  };

  for (const { client, act } of sequence) {
    const player = players[client];
    if (!player || player.isDead) continue;
    if (act === "acquire") acquire(player);
    else if (act === "short") acquire(player, SHORT);
    else if (act === "unlock") await unlock(player);
    else if (act === "abort") for (const controller of player.waiting.values()) controller.abort();
    else if (act === "kill") player.kill();
    else if (act === "expire") await expire(player);
    await breathe(player);
  }

  // Nobody is forgotten: every waiter gets its turn when the holders let go.
  const living = players.filter((player) => !player.isDead);
  await until(
    async () => {
      for (const player of living) while (player.leases.size > 0) await unlock(player);
      return living.every((player) => player.waiting.size === 0);
    },
    { what: "every waiter to end", timeout: 200_000 },
  );
  await Promise.all(players.map((player) => player.leave()));
  expect(faults).toEqual([]);
}

describe(`random sequences (TEST_SEED=${seed})`, () => {
  it.each(["lock", "fairLock"] as const)(
    "%s: one holder at a time, growing tokens, and every waiter is served",
    async (kind) => {
      const unhandled = trackUnhandled({ ignore: ["LOCK_SELF_WAIT"] });
      const lanes = Array.from({ length: LANES }, (_, lane) =>
        fc.assert(
          fc.asyncProperty(steps, (sequence) => play(kind, sequence)),
          { numRuns: RUNS / LANES, seed: seed + lane, endOnFailure: true },
        ),
      );
      await Promise.all(lanes);
      const left = await keysWithoutTtl((await parties.join({ url: server.url })).redis);
      expect(left.filter((key) => key !== "holdfast:clock")).toEqual([]);
      await unhandled.assertNone();
      unhandled.stop();
    },
    300_000,
  );
});
