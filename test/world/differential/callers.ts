import { setTimeout as delay } from "node:timers/promises";
import { checkClientOptions, type LockClientOptions } from "../../../src/api/options.ts";
import { redisServer } from "../../../src/client/server.ts";
import { ServerClient } from "../../../src/client/server-client.ts";
import { DEADLOCK_AFTER, RECHECKS } from "../../../src/defaults.ts";
import { fencingLua } from "../../../src/fencing/lua.generated.ts";
import { isLockLost, LockError, type LockOptions, type RedisArgument } from "../../../src/index.ts";
import { MajorityClient } from "../../../src/quorum/majority-client.ts";
import { checkQuorumOptions } from "../../../src/quorum/options.ts";
import { codes } from "../../../src/redis/codes.generated.ts";
import { handoffLua } from "../../../src/redis/lua.generated.ts";
import { ScriptRunner } from "../../../src/redis/script-runner.ts";
import { redissonFencedLock, redissonLock } from "../../../src/redisson.ts";
import { spinLock } from "../../../src/spin.ts";
import { MemoryLink, type Network } from "../../../src/tools/testing/memory-link.ts";
import { MemoryRedis } from "../../../src/tools/testing/memory-redis.ts";
import { uiLua } from "../../../src/tools/ui/lua.generated.ts";
import { Dice } from "../../chaos/dice.ts";
import { until } from "../../support/until.ts";
import type { Execution } from "./execution.ts";
import { record } from "./record.ts";

// Callers of real clients on memory Redises, in real time: every kind of lock, and what people and
// tools send. For the scripts that they run; nothing is checked here.

/** Names whose keys need encoding are among them. */
const NAMES = ["order:42", "a b {c} %é"];

type Caller = (dice: Dice, client: ServerClient) => Promise<unknown>;

/** In ms: by then the callers end, whatever has not run. */
const PATIENCE = 60_000;

/**
 * Runs callers for `ms`, and longer until each of these scripts has run, by its SHA. All scripts that
 * ran meanwhile.
 */
export async function runCallers(seed: number, ms: number, wanted: readonly string[]): Promise<Execution[]> {
  const dice = new Dice(seed);
  const redis = memoryRedis();
  const nodes = Array.from({ length: 3 }, memoryRedis);
  const recordings = [redis, ...nodes].map(record);
  const hasRun = (sha: string): boolean => recordings.some(({ counts }) => counts.has(sha));
  const since = performance.now();
  const goesOn = (): boolean => {
    const passed = performance.now() - since;
    return passed < ms || (passed < PATIENCE && !wanted.every(hasRun));
  };
  const again = async (run: (dice: Dice) => Promise<unknown>): Promise<void> => {
    const own = new Dice(dice.seed());
    while (goesOn()) {
      await run(own).catch(expected);
      await delay(own.chance(0.5) ? own.int(0, 5) : own.int(5, 120));
    }
  };

  const clients = OPTIONS.map((options) => open(networkTo(redis), options).client);
  const masters = nodes.map(networkTo);
  await Promise.all([
    ...clients.flatMap((client) => [...KINDS, ...KINDS].map((run) => again((own) => run(own, client)))),
    ...[0, 1].map(() => again((own) => runGuest(own, redis))),
    ...[0, 1, 2, 3, 4].map(() => again((own) => runQuorum(own, masters))),
    again(() => runReconnect(redis)),
    again(() => runDeadlock(redis)),
    again((own) => runRest(own, redis)),
    runCrowd(redis),
  ]);
  await Promise.all(clients.map((client) => client.close({ grace: 100 })));
  return recordings.flatMap(({ executions, stop }) => {
    stop();
    return executions;
  });
}

/** Short leases are renewed while the callers run, and short windows make grants expire. */
const OPTIONS: readonly LockClientOptions[] = [
  { leaseTime: 600, linger: 400, deadlocks: "reject" },
  { leaseTime: 600, localHandoffs: 2, deadlocks: "reject", label: "worker" },
  { leaseTime: 3_000, grantWindow: 60, linger: 30, localHandoffs: 0 },
  { leaseTime: 400, prefix: "tenant:", linger: 200 },
  { leaseTime: 400, prefix: "tenant:", reentrant: false },
  { leaseTime: 500, replicas: 1 },
];

const memoryRedis = (): MemoryRedis =>
  new MemoryRedis(() => (performance.timeOrigin + performance.now()) * 1_000);

/** What is sent arrives in a later turn of the event loop. */
function networkTo(redis: MemoryRedis): Network {
  return {
    name: "memory:6379",
    redis,
    connect(_, closed) {
      let isOpen = true;
      return {
        toServer: (work) => void setImmediate(work),
        toClient: (work) => void setImmediate(() => isOpen && work()),
        close() {
          isOpen = false;
          setImmediate(closed);
        },
      };
    },
  };
}

/** The server has a replica, which acknowledges everything at once. */
class ReplicatedLink extends MemoryLink {
  override openOnce(): ReplicatedLink {
    return new ReplicatedLink(this.network);
  }

  override command(words: readonly RedisArgument[]): Promise<unknown> {
    return words[0] === "WAIT" ? Promise.resolve(1) : super.command(words);
  }
}

interface Opened {
  readonly client: ServerClient;
  readonly link: MemoryLink;
}

function open(network: Network, options: LockClientOptions): Opened {
  // The crowd's commands come at once, in real time: on a busy machine they take seconds.
  const settings = checkClientOptions({ replyTimeout: 60_000, ...options });
  const link = new ReplicatedLink(network);
  const client = new ServerClient(redisServer(link, settings), settings);
  client.on("error", () => {});
  return { client, link };
}

const OURS = ["the caller has gone", "the body failed"];

/** Ends of calls that belong to what happens here. */
function expected(error: unknown): void {
  const isOurs = error instanceof Error && OURS.includes(error.message);
  if (!(error instanceof LockError) && !isLockLost(error) && !isOurs) throw error;
}

const wishOf = (dice: Dice): LockOptions => ({
  wait: dice.pick([0, 5, 50, 400, 2_500]),
  ...(dice.chance(0.2) && { lease: dice.pick([15, 200, 900]) }),
  ...(dice.chance(0.2) && { label: dice.pick(["nightly", "a b"]) }),
  ...(dice.chance(0.1) && { signal: goneIn(dice.int(0, 60)) }),
});

function goneIn(ms: number): AbortSignal {
  const gone = new AbortController();
  setTimeout(() => gone.abort(new Error("the caller has gone")), ms);
  return gone.signal;
}

/** Mostly short; sometimes for longer than some leases, so that they are renewed. */
const work = (dice: Dice): Promise<void> => delay(dice.chance(0.8) ? dice.int(0, 8) : dice.int(100, 900));

/** Each does one thing with one lock of its kind. */
const KINDS: readonly Caller[] = [
  async (dice, client) => {
    const lock = dice.chance(0.6) ? client.lock(dice.pick(NAMES)) : client.fairLock(dice.pick(NAMES));
    if (dice.chance(0.05)) return lock.forceUnlock({ label: "an operator" });
    if (dice.chance(0.1)) return lock.inspect();
    if (dice.chance(0.05)) return lock.recall({ wait: 50 });
    if (dice.chance(0.4))
      return lock.withLock({ ...wishOf(dice), confirm: dice.chance(0.5) }, async (lease) => {
        await work(dice);
        if (dice.chance(0.2)) await lease.extend(dice.int(100, 1_000));
        if (dice.chance(0.2)) await lock.withLock({ wait: 100 }, () => work(dice));
      });
    const lease = await lock.tryLock(wishOf(dice));
    await work(dice);
    return lease?.unlock();
  },
  async (dice, client) => {
    const fair = dice.chance(0.4);
    const pair = client.readWriteLock(`${dice.pick(NAMES)} ${fair}`, fair ? { fair } : {});
    const lock = dice.chance(0.7) ? pair.read : pair.write;
    if (dice.chance(0.05)) return lock.forceUnlock();
    if (dice.chance(0.1)) return pair.inspect();
    const call = () => lock.withLock({ ...wishOf(dice), confirm: dice.chance(0.2) }, () => work(dice));
    // With callers of one process in line, others that wait get the lock between them.
    return Promise.all(Array.from({ length: dice.chance(0.3) ? 4 : 1 }, () => call().catch(expected)));
  },
  async (dice, client) => {
    const fair = dice.chance(0.4);
    const isSet = dice.chance(0.3);
    const slots = client.semaphore(`${dice.pick(NAMES)} ${fair} ${isSet}`, {
      ...(!isSet && { permits: 4 }),
      ...(fair && { fair }),
    });
    if (isSet && dice.chance(0.3)) return slots.setPermits(dice.int(2, 6));
    if (dice.chance(0.05)) return slots.forceUnlock();
    if (dice.chance(0.1)) return slots.inspect();
    const { label: _, ...wish } = wishOf(dice);
    const units = dice.int(1, 3);
    return slots.withPermits(units, { ...wish, confirm: dice.chance(0.2) }, () => work(dice));
  },
  async (dice, client) => {
    const election = client.election(dice.pick(NAMES));
    if (dice.chance(0.2)) return election.leader();
    if (dice.chance(0.05)) return election.forceResign();
    if (dice.chance(0.1)) {
      for await (const _ of election.observe({ signal: goneIn(dice.int(10, 200)) })) await delay(1);
      return;
    }
    const term = await election.campaign({ value: dice.pick(["", "10.0.0.7:80", "ü %"]), wait: 1_000 });
    await work(dice);
    if (dice.chance(0.4)) await term.proclaim("another value");
    await work(dice);
    return term.resign();
  },
  (dice, client) => {
    const aligned = dice.chance(0.3);
    const onCrash = dice.pick(["keep", "again"] as const);
    const every = dice.pick([10, 40, 500]);
    const gone = new AbortController();
    const options = { every, aligned, onCrash, lease: 150, signal: gone.signal };
    const run = client.runOnce(`${dice.pick(NAMES)} ${aligned}`, options, async () => {
      await work(dice);
      if (dice.chance(0.1)) throw new Error("the body failed");
    });
    // Its command is on the way, and is taken back.
    if (dice.chance(0.2)) gone.abort(new Error("the caller has gone"));
    return run;
  },
  async (dice, client) => {
    const name = dice.pick(NAMES);
    if (dice.chance(0.2)) return client.remembered(name);
    if (dice.chance(0.1)) return client.forget(name);
    if (dice.chance(0.05)) return client.stopRun(name);
    const options = { keep: dice.pick([0, 20, 20_000]), ...wishOf(dice) };
    return client.remember(name, options, async () => {
      await work(dice);
      if (dice.chance(0.2)) throw new Error("the body failed");
      return dice.pick([undefined, "a value", { of: "an object" }]);
    });
  },
  async (dice, client) => {
    const lease = await client.multiLock([...NAMES, "order:43"]).tryLock(wishOf(dice));
    await work(dice);
    return lease?.unlock();
  },
  async (dice, client) => {
    const lock = spinLock(client, dice.pick(NAMES), { prefix: "mutex:" });
    if (dice.chance(0.05)) return lock.forceUnlock();
    if (dice.chance(0.1)) return lock.inspect();
    const { label: _, ...wish } = wishOf(dice);
    return lock.withLock({ ...wish, confirm: dice.chance(0.3) }, () => work(dice));
  },
  async (dice, client) => {
    const name = `java ${dice.pick(NAMES)}`;
    const isFenced = dice.chance(0.5) && client.id.startsWith("worker");
    const lock = isFenced ? redissonFencedLock(client, `${name} fenced`) : redissonLock(client, name);
    if (dice.chance(0.05)) return lock.forceUnlock();
    if (dice.chance(0.1)) return lock.inspect();
    const { label: _, ...wish } = wishOf(dice);
    return lock.withLock({ ...wish, confirm: dice.chance(0.3) }, async () => {
      await work(dice);
      if (dice.chance(0.4)) return;
      const again = await lock.tryLock(100);
      await work(dice);
      return again?.unlock();
    });
  },
];

/** A client that comes and goes, and loses its connection: its first scripts check its rights. */
async function runGuest(dice: Dice, redis: MemoryRedis): Promise<void> {
  const { client, link } = open(networkTo(redis), { leaseTime: 500, linger: 1_000, label: "guest" });
  await client.check();
  const calls = [0, 1, 2].map((kind) => KINDS[kind]?.(dice, client).catch(expected));
  await delay(dice.int(0, 30));
  link.lose();
  await delay(dice.int(0, 30));
  link.restore();
  for await (const _ of client.list({ kind: ["lock", "readWrite", "semaphore", "election", "redisson"] }));
  await Promise.all(calls);
  // Cached locks are released as the client closes.
  const own = client.lock(`of ${client.id}`);
  for (let time = 0; time < 3; time++) await own.withLock({ wait: 100 }, () => {});
  await client.close({ grace: 100 });
}

/** A client of three masters, of which one is away at times. */
async function runQuorum(dice: Dice, networks: readonly Network[]): Promise<void> {
  const links = networks.map((network) => new MemoryLink(network));
  const settings = checkQuorumOptions({
    leaseTime: 300,
    restartDelay: 0,
    nodeTimeout: 50,
    replyTimeout: 300,
  });
  const client = new MajorityClient(links, settings);
  client.on("error", () => {});
  const away = dice.pick(links);
  await client.check();
  for (let call = 0; call < 6; call++) {
    if (dice.chance(0.3)) away.lose();
    const lock = client.lock(dice.pick(NAMES));
    if (dice.chance(0.1)) await lock.inspect().catch(expected);
    if (dice.chance(0.05)) await lock.forceUnlock().catch(expected);
    const { label: _, ...wish } = wishOf(dice);
    const body = async (): Promise<void> => {
      setTimeout(() => away.restore(), dice.int(1, 30));
      await work(dice);
    };
    await lock.withLock(wish, body).catch(expected);
    away.restore();
  }
  await client.close({ grace: 100 });
}

/** Callers wait while their connection is lost: they check again, with the rights of the new one. */
async function runReconnect(redis: MemoryRedis): Promise<void> {
  const [holder, waiter] = [0, 1].map(() => open(networkTo(redis), { label: "reconnect" })) as [
    Opened,
    Opened,
  ];
  const name = holder.client.id;
  const permits = (client: ServerClient) => client.semaphore(name, { permits: 1 });
  const held = [await holder.client.lock(name).lock(), await permits(holder.client).acquire()];
  const waiting = [waiter.client.lock(name).lock(), permits(waiter.client).acquire()];
  const seen = [holder.client.lock(name), permits(holder.client)];
  const areQueued = async (): Promise<boolean> =>
    (await Promise.all(seen.map((one) => one.inspect()))).every(({ waiters }) => waiters?.length === 1);
  await until(areQueued);
  waiter.link.lose();
  waiter.link.restore();
  // Longer than a place in the queue waits before it checks again.
  await delay(1.5 * RECHECKS[0].period);
  for (const lease of held) await lease[Symbol.asyncDispose]();
  for (const lease of await Promise.all(waiting)) await lease[Symbol.asyncDispose]();
  await Promise.all([holder, waiter].map(({ client }) => client.close()));
}

/** Two callers that each hold what the other one wants: their clients write notes after 5 s. */
async function runDeadlock(redis: MemoryRedis): Promise<void> {
  const clients = [0, 1].map(() => open(networkTo(redis), { deadlocks: "reject" }).client);
  const names = ["left", "right"];
  const calls = clients.map((client, i) =>
    client.scope(async () => {
      const [first = "", second = ""] = i === 0 ? names : names.toReversed();
      await client.lock(first).withLock(async () => {
        await until(async () => client.lock(second).isLocked());
        await client.lock(second).withLock({ wait: 2 * DEADLOCK_AFTER }, () => {});
      });
    }),
  );
  await Promise.all(calls.map((call) => call.catch(expected)));
  await Promise.all(clients.map((client) => client.close()));
}

/** A release that frees more places than one script grants. */
async function runCrowd(redis: MemoryRedis): Promise<void> {
  const permits = codes.RUN + 2;
  const { client } = open(networkTo(redis), { label: "crowd" });
  const slots = client.semaphore("crowd", { permits, fair: true });
  const all = await slots.acquire(permits);
  const callers = Array.from({ length: permits }, () => slots.acquire());
  await until(async () => (await slots.inspect()).waiters.length === permits);
  await all.release();
  for (const lease of await Promise.all(callers)) await lease.release();
  await client.close();
}

/**
 * What no client of one server sends here: writes behind a fence, the notes that the page shows, and
 * the renewal for a Cluster whose slot moves.
 */
async function runRest(dice: Dice, redis: MemoryRedis): Promise<void> {
  const { client, link } = open(networkTo(redis), { label: "rest" });
  const runner = new ScriptRunner(link, 5_000);
  const token = Date.now() * 1_000 + dice.int(-90_000, 90_000) * 1_000_000;
  const [remember, ttl] = dice.pick([
    [0, 0],
    [1_000, 61_000],
    [86_400_000, 86_460_000],
  ]);
  const words = `${dice.chance(0.2) ? 7 : token} ${remember} ${ttl}`;
  const resource = `order:${dice.int(1, 4)}`;
  const [script, args] = dice.pick([
    [fencingLua.set, ["value"]],
    [fencingLua.set, ["value", "PX", "5000"]],
    [fencingLua.check, []],
  ] as const);
  await runner
    .runRaw(script, [resource, runner.keys.fence(resource)], [...args, words], 5_000)
    .catch(isStale);

  await runner.runRaw(uiLua.notes, [runner.keys.waits], ["100"], 5_000);

  const { id } = client;
  const lease = await client.lock(id).lock();
  const holder = (await client.lock(id).inspect()).holder?.id ?? "";
  for (const hold of [holder, "another"])
    await runner.run(handoffLua.renew, [runner.keys.of(id).lock], [{ hold, ttl: dice.pick([100, 60_000]) }]);
  await lease.unlock();
  runner.detach();
  await client.close();
}

function isStale(error: Error): void {
  if (!/^STALETOKEN/.test(error.message)) throw error;
}
