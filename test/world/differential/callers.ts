import { setTimeout as delay } from "node:timers/promises";
import { checkClientOptions, type LockClientOptions } from "../../../src/api/options.ts";
import { redisServer } from "../../../src/client/server.ts";
import { ServerClient } from "../../../src/client/server-client.ts";
import { fencingLua } from "../../../src/fencing/lua.generated.ts";
import { isLockLost, LockError, type LockOptions, type RedisArgument } from "../../../src/index.ts";
import { MajorityClient } from "../../../src/quorum/majority-client.ts";
import { checkQuorumOptions } from "../../../src/quorum/options.ts";
import { codes } from "../../../src/redis/codes.generated.ts";
import { Keys } from "../../../src/redis/keys.ts";
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

/** Runs callers for `ms`, then what is rare, and closes all clients. All scripts that ran meanwhile. */
export async function runCallers(seed: number, ms: number): Promise<Execution[]> {
  const dice = new Dice(seed);
  const redis = memoryRedis();
  const nodes = Array.from({ length: 3 }, memoryRedis);
  const recordings = [redis, ...nodes].map(record);
  const endsAt = performance.now() + ms;
  const clients = OPTIONS.map((options) => open(networkTo(redis), options));
  const masters = nodes.map((node) => networkTo(node));

  const callers = clients.flatMap(({ client }, i) =>
    KINDS.flatMap((kind) => [0, 1].map(() => repeat(endsAt, new Dice(dice.seed()), client, kind, i))),
  );
  const others = [
    ...Array.from({ length: 5 }, () => runQuorum(endsAt, new Dice(dice.seed()), masters)),
    ...[0, 1].map(() => runConnections(endsAt, new Dice(dice.seed()), redis)),
    runDeadlock(clients[0]?.client, clients[1]?.client),
    runCrowd(redis),
    runFences(networkTo(redis), new Dice(dice.seed())),
  ];
  await Promise.all([...callers, ...others]);
  await Promise.all(clients.map(({ client }) => client.close({ grace: 100 })));
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
    connect() {
      let isOpen = true;
      return {
        toServer: (work) => void setImmediate(work),
        toClient: (work) => void setImmediate(() => isOpen && work()),
        close(noticed) {
          isOpen = false;
          if (noticed) setImmediate(noticed);
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

function open(network: Network, options: LockClientOptions): { client: ServerClient; link: MemoryLink } {
  const settings = checkClientOptions(options);
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

async function repeat(
  endsAt: number,
  dice: Dice,
  client: ServerClient,
  run: Caller,
  i: number,
): Promise<void> {
  await delay(i * 7);
  while (performance.now() < endsAt) {
    await run(dice, client).catch(expected);
    await delay(dice.chance(0.5) ? dice.int(0, 5) : dice.int(5, 120));
  }
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
    return lock.withLock({ ...wishOf(dice), confirm: dice.chance(0.2) }, () => work(dice));
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
    return client.runOnce(
      `${dice.pick(NAMES)} ${aligned}`,
      { every, aligned, onCrash, lease: 150 },
      async () => {
        await work(dice);
        if (dice.chance(0.1)) throw new Error("the body failed");
      },
    );
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
      if (dice.chance(0.4)) await lock.withLock({ wait: 100 }, () => work(dice));
    });
  },
];

/** Clients that come and go, and lose their connection: each begins with a connection's first scripts. */
async function runConnections(endsAt: number, dice: Dice, redis: MemoryRedis): Promise<void> {
  while (performance.now() < endsAt) {
    const { client, link } = open(networkTo(redis), { leaseTime: 500, label: "guest" });
    const calls = [0, 1, 2].map((kind) => KINDS[kind]?.(dice, client).catch(expected));
    await delay(dice.int(0, 30));
    link.lose();
    await delay(dice.int(0, 30));
    link.restore();
    await client.check().catch(expected);
    // Callers that still wait check again, as the first command of their kind on the new connection.
    await Promise.race([Promise.all(calls), delay(1_600)]);
    for await (const _ of client.list({ kind: ["lock", "readWrite", "semaphore", "election", "redisson"] }));
    await Promise.all(calls);
    await client.close({ grace: 100 });
  }
}

/** A client of three masters, of which one is away at times. */
async function runQuorum(endsAt: number, dice: Dice, networks: readonly Network[]): Promise<void> {
  while (performance.now() < endsAt) {
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
    await client.check().catch(expected);
    for (let call = 0; call < 12; call++) {
      if (dice.chance(0.2)) away.lose();
      const lock = client.lock(dice.pick(NAMES));
      if (dice.chance(0.1)) await lock.inspect().catch(expected);
      if (dice.chance(0.05)) await lock.forceUnlock().catch(expected);
      const { label: _, ...wish } = wishOf(dice);
      await lock
        .withLock(wish, async () => {
          setTimeout(() => away.restore(), dice.int(1, 30));
          await work(dice);
        })
        .catch(expected);
      away.restore();
      await delay(dice.int(0, 20));
    }
    await client.close({ grace: 100 });
  }
}

/** Two callers that each hold what the other one wants: their clients write notes after 5 s. */
async function runDeadlock(one: ServerClient | undefined, other: ServerClient | undefined): Promise<void> {
  if (!one || !other) return;
  const cross = (client: ServerClient, first: string, second: string): Promise<unknown> =>
    client.scope(() =>
      client.lock(first).withLock(async () => {
        await delay(200);
        await client.lock(second).withLock({ wait: 7_500 }, () => {});
      }),
    );
  const ends = [cross(one, "left", "right"), cross(other, "right", "left")];
  await Promise.all(ends.map((end) => end.catch(expected)));
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

/** Writes behind a fence, and the notes that the page shows. */
async function runFences(network: Network, dice: Dice): Promise<void> {
  const runner = new ScriptRunner(new MemoryLink(network), 5_000);
  const now = Date.now() * 1_000;
  for (let call = 0; call < 60; call++) {
    const token = now + dice.int(-90_000_000, 90_000_000) * 1_000;
    const [remember, ttl] = dice.pick([
      [0, 0],
      [1_000, 61_000],
      [86_400_000, 86_460_000],
    ]);
    const words = `${dice.chance(0.2) ? call : token} ${remember} ${ttl}`;
    const resource = `order:${dice.int(1, 4)}`;
    const keys = [resource, runner.keys.fence(resource)];
    const [script, args] = dice.pick([
      [fencingLua.set, ["value"]],
      [fencingLua.set, ["value", "PX", "5000"]],
      [fencingLua.check, []],
    ] as const);
    await runner.run(script, keys, [...args, words], String).catch(isStale);
  }
  await runner.run(uiLua.notes, [new Keys("", false).waits], ["100"], String);
  runner.detach();
}

function isStale(error: Error): void {
  if (!/^STALETOKEN/.test(error.message)) throw error;
}
