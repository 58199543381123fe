import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Lease, LockClientOptions, LockOptions } from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { Dice } from "../chaos/dice.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { TurnWitness } from "./turn-witness.ts";

/** What goes wrong meanwhile: nothing; a lock's key is deleted, or all are; connections. */
export type FuzzFaults = "none" | "forget" | "connections";

export interface FuzzOptions {
  readonly url: string;
  readonly seed: number;
  readonly ms: number;
  readonly faults: FuzzFaults;
  /** Clients that keep their locks, too. */
  readonly lingers: boolean;
}

export interface FuzzReport {
  readonly violations: readonly string[];
  readonly turns: number;
  /** ms that a caller of `lock()` waited, at the most. */
  readonly longest: number;
}

const CLIENTS = 4;
const CALLERS = 3;
const KEYS = new Keys("", false);

interface Player {
  readonly by: string;
  readonly party: Party;
  readonly proxy: TcpProxy;
}

/**
 * Callers of several clients take a few locks at random for a while: one that all want, and one of
 * each client's own, which others take now and then. All clients are in this process, so that each
 * turn is seen exactly.
 */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { seed, ms, url } = options;
  const dice = new Dice(seed);
  const parties = new Parties();
  const { hostname, port } = new URL(url);
  const players: Player[] = [];
  for (let i = 0; i < CLIENTS; i++) {
    const proxy = await TcpProxy.start({ host: hostname, port: Number(port) });
    const client = clientOptions(dice, options.lingers);
    const party = await parties.join({ url: proxy.url, client });
    party.locks.on("error", () => {});
    players.push({ by: `client ${i} ${JSON.stringify(client)}`, party, proxy });
  }
  const run = new Run(options, dice, players);
  try {
    const end = performance.now() + ms;
    const callers = players.flatMap((player, own) =>
      Array.from({ length: CALLERS }, () => run.caller(player, own, end)),
    );
    await Promise.all([...callers, run.disturb(end)]);
  } finally {
    await parties.close();
    for (const { proxy } of players) await proxy.stop();
  }
  return { violations: run.witness.violations, turns: run.witness.turns, longest: run.longest };
}

function clientOptions(dice: Dice, lingers: boolean): LockClientOptions {
  return {
    leaseTime: dice.pick([1_000, 3_000, 30_000]),
    localHandoffs: dice.pick([0, 1, 16, 16]),
    replyTimeout: 2_000,
    ...(lingers && { linger: dice.pick([0, 200, 1_000, 1_000]) }),
  };
}

class Run {
  readonly witness = new TurnWitness();
  longest = 0;
  readonly #options: FuzzOptions;
  readonly #dice: Dice;
  readonly #players: readonly Player[];
  readonly #shared = freshName("shared");
  readonly #own: readonly string[];

  constructor(options: FuzzOptions, dice: Dice, players: readonly Player[]) {
    this.#options = options;
    this.#dice = dice;
    this.#players = players;
    this.#own = players.map((_, i) => freshName(`own ${i}`));
  }

  async caller(player: Player, own: number, end: number): Promise<void> {
    const dice = new Dice(this.#dice.seed());
    while (performance.now() < end) {
      await pause(dice);
      await this.#call(player, this.#choose(own, dice), dice).catch((error: unknown) => {
        if (!isExpected(error)) this.witness.violations.push(`${player.by}: ${error}`);
      });
    }
  }

  #choose(own: number, dice: Dice): string {
    if (dice.chance(0.3)) return this.#shared;
    return this.#own[dice.chance(0.9) ? own : dice.int(0, CLIENTS - 1)] as string;
  }

  async #call({ by, party }: Player, name: string, dice: Dice): Promise<void> {
    const lock = dice.chance(0.04) ? party.locks.fairLock(name) : party.locks.lock(name);
    const how = dice.pick([
      "lock",
      "lock",
      "withLock",
      "withLock",
      "tryLock",
      "wait",
      "abort",
      "many",
    ] as const);
    const options = lockOptions(dice);
    const turn = async (lease: Lease): Promise<void> => {
      const leave = this.witness.enter(name, by, lease);
      try {
        await body(dice, lease);
      } finally {
        leave();
      }
    };
    if (how === "withLock") return lock.withLock(options, turn);
    const asked = performance.now();
    if (how === "many") {
      const all = await party.locks.multiLock([name, this.#shared]).tryLock(dice.pick([0, 50]));
      if (!all) return;
      const leave = all.names.map((one) =>
        this.witness.enter(one, by, {
          token: all.tokens.get(one) ?? 0,
          get held() {
            return all.held;
          },
        }),
      );
      await body(dice, null);
      for (const go of leave) go();
      return all.unlock();
    }
    const aborting = how === "abort" ? AbortSignal.timeout(dice.int(0, 60)) : undefined;
    const wait = how === "tryLock" ? 0 : how === "wait" ? dice.int(1, 80) : 20_000;
    const lease = await lock.tryLock({ ...options, wait, ...(aborting && { signal: aborting }) });
    if (how === "lock") this.longest = Math.max(this.longest, performance.now() - asked);
    if (how === "lock" && !lease) this.witness.violations.push(`${by} waited 20 s in vain for ${name}`);
    if (!lease) return;
    await turn(lease);
    if (dice.chance(0.1)) void lease.unlock().catch(() => {});
    else await lease.unlock();
  }

  async disturb(end: number): Promise<void> {
    const { faults, url } = this.#options;
    const dice = new Dice(this.#dice.seed());
    if (faults === "none") return;
    const parties = new Parties();
    const { redis } = await parties.join({ url });
    while (performance.now() < end) {
      await sleep(dice.int(20, 300));
      if (faults === "forget") await this.#forget(redis, dice);
      else await this.#break(redis, dice);
    }
    for (const { proxy } of this.#players) proxy.thaw();
    await parties.close();
  }

  async #forget(redis: Party["redis"], dice: Dice): Promise<void> {
    const all = [this.#shared, ...this.#own];
    if (dice.chance(0.2)) return this.witness.forgets(all, () => redis.flushall());
    const name = dice.pick(all);
    await this.witness.forgets([name], () => redis.del(KEYS.of(name).lock));
  }

  async #break(redis: Party["redis"], dice: Dice): Promise<void> {
    const { proxy } = dice.pick(this.#players);
    const ms = dice.int(20, 700);
    const which = dice.pick(["all", "commands", "subscribers"] as const);
    switch (dice.int(1, 6)) {
      case 1:
        proxy.cut(which);
        break;
      case 2:
        proxy.freeze(which);
        await sleep(ms);
        proxy.thaw();
        break;
      case 3:
        proxy.partition(dice.pick(["commands", "subscribers"] as const));
        await sleep(ms);
        proxy.thaw();
        break;
      case 4:
        proxy.delay(dice.int(2, 120), { which });
        await sleep(ms);
        proxy.delay(0);
        break;
      case 5:
        await redis.call("CLIENT", "KILL", "TYPE", dice.pick(["pubsub", "normal"]));
        break;
      default:
        void proxy.dropReply((command) => /^eval/i.test(command[0] ?? ""));
    }
  }
}

function lockOptions(dice: Dice): LockOptions {
  if (dice.chance(0.75)) return {};
  const lease = dice.pick([150, 400, 2_000, 5_000]);
  return { lease, ...(dice.chance(0.3) && { watchdog: true }) };
}

async function pause(dice: Dice): Promise<void> {
  const kind = dice.int(1, 100);
  if (kind <= 35) return;
  if (kind <= 55) await nextTurn();
  else if (kind <= 95) await sleep(dice.int(0, 4));
  else await sleep(dice.int(5, 250));
}

async function body(dice: Dice, lease: Lease | null): Promise<void> {
  const kind = dice.int(1, 100);
  if (kind <= 40) return;
  if (kind <= 55) await Promise.resolve();
  else if (kind <= 80) await nextTurn();
  else if (kind <= 96) await sleep(dice.int(0, 5));
  else await sleep(dice.int(60, 250));
  if (lease && dice.chance(0.03)) {
    const extended = lease.extend(dice.pick([500, 4_000]));
    if (dice.chance(0.5)) await extended;
    else extended.catch(() => {});
  }
}

/** What a caller may be told when leases are short, and the network is bad. */
function isExpected(error: unknown): boolean {
  const { code, name } = error as { code?: string; name?: string };
  return (
    ["LOCK_LOST", "LOCK_TIMEOUT", "LOCK_UNAVAILABLE", "LOCK_RELEASED"].includes(code ?? "") ||
    name === "TimeoutError" ||
    name === "AggregateError"
  );
}
