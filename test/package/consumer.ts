// What users of the package write, each for one of the ways in which they compile and load it.

export const TSCONFIG = JSON.stringify({
  compilerOptions: {
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "NodeNext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
  },
  files: ["main.ts"],
});

export const OLD_TSCONFIG = JSON.stringify({
  compilerOptions: {
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "CommonJS",
    moduleResolution: "node10",
    ignoreDeprecations: "6.0",
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ["old.ts"],
});

export const OLD = `
import { createLockClient, type LockClient } from "holdfast";
import { Redis } from "ioredis";
export const locks: LockClient = createLockClient(new Redis());
`;

/** Prints the CPU time of an import, as a share of that of ioredis. */
export const CPU = `
async function cpu(name) {
  const before = process.cpuUsage();
  await import(name);
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
const ioredis = await cpu("ioredis");
console.log((await cpu("holdfast")) / ioredis);
`;

export const REQUIRE = `
const { createLockClient, LockError, ...others } = require("holdfast");
const { Redis } = require("ioredis");
const [url, name] = process.argv.slice(2);
const redis = new Redis(url);
const locks = createLockClient(redis);
locks.lock(name).withLock((lease) => lease.held).then(async (held) => {
  console.log("required", held, new others.LockTimeoutError(name, 5) instanceof LockError);
  await locks.close();
  redis.disconnect();
});
`;

/** What MAIN prints. */
export const SAID = [
  "await using: held true",
  "await using: free false",
  "null: somebody else holds it",
  "using: held true",
  "a body alone: 42 true",
  "options first: forty-two",
  "undefined members: true",
  "isLockLost: true false",
  "lost in an await using block: true",
  "timeout: LOCK_TIMEOUT 50",
  "abort: enough",
  "second copy: true",
  "optimistic: OK,1 1",
  "beside: redissonLock redissonFencedLock spinLock redissonLock",
  "together: 3 true",
  "stale: true",
  "other copy: TypeError true",
  "events: acquire release",
  "closed: CLIENT_CLOSED",
];

export const MAIN = `
import { Cluster, Redis } from "ioredis";
import { Cluster as SecondCluster, Redis as SecondRedis } from "second-ioredis";
import {
  type BodyOptions,
  ClientClosedError,
  type ClusterLike,
  createLockClient,
  type EventKind,
  type GiveUpReason,
  type Inspection,
  isLockLost,
  type Lease,
  type LingerOptions,
  type Lock,
  type LockClient,
  type LockClientOptions,
  LockError,
  LockLostError,
  type LockOptions,
  type LockStats,
  LockTimeoutError,
  type LossReason,
  type PermitLease,
  type RedisLike,
  StaleTokenError,
  type UnfencedLease,
} from "holdfast";
import { type FencedSetOptions, fencedSet } from "holdfast/fencing";
import { optimistic, type Transaction } from "holdfast/optimistic";
import { createQuorumClient, type QuorumClient, type QuorumClientOptions } from "holdfast/quorum";
import { redissonFencedLock, redissonLock } from "holdfast/redisson";
import { type SpinLockOptions, spinLock } from "holdfast/spin";
import { createTestLocks } from "holdfast/testing";
import { createLockClient as createSecondClient } from "second-holdfast";

const [url = "", name = ""] = process.argv.slice(2);
const say = (...words: unknown[]): void => console.log(words.join(" "));

const redis = new Redis(url);
const redis2 = new Redis(url, { maxRetriesPerRequest: 1 });
const second = new SecondRedis(url);
const locks: LockClient = createLockClient(redis);
const others = createLockClient(redis2, { leaseTime: 5_000, grantWindow: undefined, connection: "own" });
const lingering: LingerOptions = { linger: 0, localHandoffs: undefined };
const lock: Lock = locks.lock(name, lingering);
const kept: LockStats["kept"] = locks.stats().kept;
if (kept !== 0) throw new Error("nothing is kept yet");
const other = others.fairLock(name);

const told = new Set<string>();
locks.on("acquire", ({ name, token, waitedFor, kept }) => {
  const types: [string, number | null, number, boolean] = [name, token, waitedFor, kept];
  told.add(types.length === 4 ? "acquire" : "nothing");
});
locks.on("recall", ({ name, kind, idle, uses }) => {
  const types: [string, EventKind, number, number] = [name, kind, idle, uses];
  return types;
});
locks.once("release", (event) => void told.add(event.heldFor >= 0 ? "release" : "nothing"));
locks.on("wait", ({ heldBy }) => {
  const known: "this scope" | "this client" | "this process" | "unknown" = heldBy;
  return known;
});
locks.on("giveup", ({ name, kind, call, waitedFor, why }) => {
  const types: [string, EventKind, number, number, GiveUpReason] = [name, kind, call, waitedFor, why];
  return types;
});
locks.on("lost", ({ error }: { error: LockLostError }) => {
  const reason: LossReason = error.reason;
  return reason;
});
const onError = (error: LockError): void => console.error(error.code, error.lockName, error.cause);
locks.on("error", onError).off("error", onError);

async function awaitUsing(): Promise<void> {
  {
    await using lease = await lock.tryLock(1_000);
    if (!lease) throw new Error("busy");
    lease.assertHeld();
    say("await using: held", lease.held);
  }
  say("await using: free", await lock.isLocked());
}

async function awaitUsingNull(): Promise<void> {
  await using held = await other.lock();
  await using lease = await lock.tryLock(20);
  // @ts-expect-error it may be null
  const token = () => lease.token;
  if (lease === null) say("null: somebody else holds it");
  else say("both have it", lease.token, held.token, token);
}

async function justUsing(): Promise<void> {
  using lease = await lock.tryLock({ wait: 100, lease: 1_000 });
  const narrowed: Lease | null = lease;
  say("using: held", narrowed?.held);
}

async function bodies(): Promise<void> {
  const number: number = await lock.withLock({ wait: 1_000 }, async (lease) => (lease.remaining > 0 ? 42 : 0));
  const inside: boolean = await lock.withLock(() => lock.isHeldHere());
  say("a body alone:", number, inside);
  const text: string = await lock.withLock({ wait: 1_000, watchdog: true }, () => "forty-two");
  say("options first:", text);
}

async function undefinedMembers(maybe?: AbortSignal): Promise<void> {
  const options: LockOptions = { wait: undefined, lease: undefined, watchdog: undefined, maxHold: undefined };
  const ended: BodyOptions = { ...options, confirm: undefined };
  await lock.withLock(ended, () => {});
  const lease = await lock.lock({ ...options, signal: maybe });
  await lease.extend(60_000);
  const inspection: Inspection = await lock.inspect();
  say("undefined members:", inspection.holder !== null && inspection.token === lease.token);
  await lease.unlock();
}

async function losing(): Promise<void> {
  const lease = await lock.lock();
  await other.forceUnlock();
  const error: unknown = await lease.unlock().catch((error: unknown) => error);
  say("isLockLost:", isLockLost(error), isLockLost(new Error("other")));
  const wrapped: unknown = await (async () => {
    await using lease = await lock.lock();
    await other.forceUnlock();
    throw new Error(\`the body failed, holding \${lease.name}\`);
  })().catch((error: unknown) => error);
  say("lost in an await using block:", isLockLost(wrapped) && !(wrapped instanceof LockError));
}

async function impatient(): Promise<void> {
  await using _ = await other.lock();
  try {
    await lock.lock({ wait: 50 });
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    const code: string = error.code;
    say("timeout:", code, error.wait);
  }
  const controller = new AbortController();
  setTimeout(() => controller.abort("enough"), 20);
  await lock.lock({ signal: controller.signal }).catch((reason: unknown) => say("abort:", reason));
}

async function secondCopy(): Promise<void> {
  const likes: RedisLike[] = [redis, second];
  const options: LockClientOptions = { connection: "own", localHandoffs: undefined };
  await using clients = createLockClient(second, options);
  say("second copy:", (await clients.lock(name).withLock((lease) => lease.held)) && likes.length === 2);
}

async function transactions(): Promise<void> {
  const key = name + ":count";
  const tx = await optimistic(redis, [key], async (tx) => {
    const before: string | null = await tx.redis.get(key);
    tx.multi.set(key, Number(before) + 1, "EX", 100).exists(key);
    return tx;
  });
  const count: string | null = await optimistic(second, [key], ({ redis }) => redis.get(key), { retries: 3 });
  say("optimistic:", tx.replies, count);
}

async function entryPoints(): Promise<void> {
  const prefix: SpinLockOptions = { prefix: name };
  const beside = [redissonLock(locks, name + ":a"), redissonFencedLock(locks, name + ":b"), spinLock(locks, ":c", prefix)];
  const testing = redissonLock(createTestLocks(), "x");
  say("beside:", ...[...beside, testing].map((lock) => (lock as Lock & { toJSON(): { kind: string } }).toJSON().kind));
  await using both = await locks.multiLock([...beside]).lock();
  say("together:", both.names.length, both.held);
  const options: FencedSetOptions = { fence: 2, ttl: 60_000 };
  await fencedSet(redis, name + ":stock", "1", options);
  const stale: unknown = await fencedSet(redis, name + ":stock", "2", { ...options, fence: 1 }).catch((e: unknown) => e);
  say("stale:", stale instanceof StaleTokenError);
  const foreign = createSecondClient(redis);
  try {
    spinLock(foreign, "x");
  } catch (error) {
    say("other copy:", (error as Error).name, /another copy of holdfast/.test(String(error)));
  }
  await foreign.close();
}

await awaitUsing();
await awaitUsingNull();
await justUsing();
await bodies();
await undefinedMembers();
await losing();
await impatient();
await secondCopy();
await transactions();
await entryPoints();
say("events:", ...[...told].sort());
await Promise.all([locks.close({ grace: undefined }), others.close({ grace: 100 })]);
await lock.lock().catch((error: unknown) => say("closed:", error instanceof ClientClosedError && error.code));
for (const connection of [redis, redis2, second]) await connection.quit();

/** Never called: what must not compile. */
export async function refused(lease: Lease): Promise<void> {
  // @ts-expect-error the lease is what is unlocked
  await lock.unlock();
  // @ts-expect-error no time unit
  await lock.tryLock(10, 60, "SECONDS");
  // @ts-expect-error an unknown option
  await lock.tryLock({ wait: 10, leaseTime: 60 });
  // @ts-expect-error a number of ms
  await lock.lock({ wait: "1s" });
  // @ts-expect-error a number of ms
  await lock.tryLock("1s");
  // @ts-expect-error options, not a number
  await lock.lock(5);
  // @ts-expect-error no body
  await lock.withLock({ wait: 5 });
  // @ts-expect-error no such event
  locks.on("locked", () => {});
  // @ts-expect-error that event has no number
  locks.on("acquire", (count: number) => count);
  const cluster: ClusterLike = new Cluster([]);
  createLockClient(cluster);
  createLockClient(new SecondCluster([], { keyPrefix: "app:" }), { replicas: 1 });
  const length: number = await optimistic(cluster as Cluster, ["a"], async (tx) => {
    tx.multi.lpush("a", await tx.redis.llen("a"));
    return tx.replies.length;
  });
  // @ts-expect-error the body gives a number
  const text: string = await optimistic(redis, ["a"], () => length);
  // @ts-expect-error an array of keys
  await optimistic(redis, "a", () => text);
  // @ts-expect-error no such option
  await optimistic(redis, ["a"], () => 1, { wait: 5 });
  const transaction: Transaction<Redis>["replies"] | null = null;
  const several: QuorumClientOptions = { nodeTimeout: 100 };
  const quorum: QuorumClient = createQuorumClient([redis, second, redis2], several);
  // @ts-expect-error several masters have a client of their own
  createLockClient([redis, second, redis2]);
  // @ts-expect-error Redisson knows no quorum
  redissonLock(quorum, "x", transaction);
  // @ts-expect-error a function beside the client
  locks.spinLock("x");
  // @ts-expect-error no such option
  redissonFencedLock(locks, "x", { localHandoffs: 5 });
  // @ts-expect-error a client needs a connection
  createLockClient("redis://127.0.0.1");
  // @ts-expect-error no such option
  createLockClient(redis, { lease: 5 });
  // @ts-expect-error made by createLockClient only
  lease.token = 5;
  // @ts-expect-error null is none
  await lock.lock({ signal: null });
  const unfenced: Lock<UnfencedLease> = spinLock(locks, "x");
  const any: readonly Lock<UnfencedLease>[] = [unfenced, lock, redissonLock(locks, "x"), redissonFencedLock(locks, "x")];
  const tokens: ReadonlyMap<string, number> = (await locks.multiLock([...any, "y"]).lock()).tokens;
  const bare: UnfencedLease = await unfenced.lock();
  // @ts-expect-error it has none
  bare.token;
  // @ts-expect-error its leases have no tokens
  const fenced: Lock = unfenced;
  // @ts-expect-error no fence
  await fencedSet(redis, "x", String(tokens.size), { fence: bare });
  const permits: PermitLease = await locks.semaphore("x").acquire();
  await permits.release();
  // @ts-expect-error permits are released
  await permits.unlock();
  // @ts-expect-error permits fence nothing
  permits.token;
  // @ts-expect-error it is two locks
  await locks.readWriteLock("x").withLock(() => fenced);
}
`;

/** The entry points that MAIN has nothing of. It is compiled only: their own tests run what they do. */
export const ENTRIES = `
import { createServer } from "node:http";
import { metrics, trace } from "@opentelemetry/api";
import { createLockClient, type LockClient } from "holdfast";
import { fencedEval } from "holdfast/fencing";
import { instrument, type OtelOptions } from "holdfast/otel";
import { register } from "holdfast/prometheus";
import { createTestLocks, type TestLocks } from "holdfast/testing";
import { createLockUI, type LockUI, observe } from "holdfast/ui";
import { Redis } from "ioredis";
import { Registry } from "prom-client";

const redis = new Redis();
const locks: LockClient = createLockClient(redis);
const testing: TestLocks = createTestLocks({ leaseTime: 5_000 });
const options: OtelOptions = { meter: metrics.getMeter("locks"), tracer: trace.getTracer("locks") };
const undo: (() => void)[] = [
  instrument(locks, options),
  register(testing, new Registry(), { nameOf: (name: string) => name }),
  observe(locks, redis),
];
const ui: LockUI = createLockUI({ locks, authorize: (request) => request.headers.has("authorization") });
export const server = createServer(ui.node);
export const written: Promise<unknown> = fencedEval(redis, "return 1", { keys: ["a"], args: [1], fence: 1 });
// @ts-expect-error neither a meter nor a tracer
instrument(locks, { meter: 1 });
// @ts-expect-error no Registry
register(locks, redis);
// @ts-expect-error not a lock client
createLockUI({ locks: redis });
for (const one of undo) one();
`;
