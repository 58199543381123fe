import { AsyncLocalStorage } from "node:async_hooks";
import type { Cluster, Redis } from "ioredis";
import { expect, type MockInstance, vi } from "vitest";
import type { LockClientOptions, LockOptions } from "../../src/api/options.ts";
import { LingerLearner } from "../../src/core/linger-learner.ts";
import {
  createLockClient,
  type EventKind,
  type Lease,
  type Lock,
  type LockClient,
  type ReentranceOptions,
} from "../../src/index.ts";
import { Keys } from "../../src/redis/keys.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { carrier } from "../support/carrier.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { lockOf, type Maker, opponentOf } from "../support/permit.ts";
import type { OwnServer, Topology, TopologyKind } from "../support/servers/topology.ts";
import { until } from "../support/until.ts";
import { KINDS, type Kind, type Traits } from "./kinds.ts";

const KEYS = new Keys("", false);
/**
 * A place that no client gave back ends by itself after 4.5 s. A test must not take that for giving
 * it back.
 */
const LEAVING = 4_000;

/** The lock kind under test on one topology, with two clients that stand for two processes. */
export class Subject implements Traits {
  /** The client's method that makes the lock. */
  readonly kind: Maker;
  /** How events call it. */
  readonly eventKind: EventKind;
  readonly tokens: boolean;
  readonly stored: Traits["stored"];
  readonly counter: boolean;
  readonly isQuorum: boolean;
  readonly client: LockClientOptions;
  /** What a hook or a test does is to run in this. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
  /** Starts a server that a test may empty and restart. */
  readonly ownServer: () => Promise<OwnServer>;
  readonly #launch: () => Promise<Topology>;
  #topology: Topology | undefined;
  readonly #parties = new Parties();
  /**
   * Of each test the locks that it uses, and the clients that joined in it: some tests run side by
   * side.
   */
  readonly #tests = new AsyncLocalStorage<{ readonly names: Set<string>; readonly parties: Parties }>();
  /**
   * The clients that have said that they wait, by lock: all that is known of waiters that hear no
   * messages.
   */
  readonly #said = new Map<string, Set<LockClient>>();
  #keeps: MockInstance | undefined;
  #first: Party | undefined;
  #second: Party | undefined;
  /** Makes others give up what they keep. */
  #third: Party | undefined;

  /** `place`: what it runs on. */
  constructor(kind: Kind, { launch, ownServer = realServer, during = (work) => work() }: TopologyKind) {
    const traits = KINDS[kind];
    this.during = during;
    this.ownServer = ownServer;
    this.#launch = launch;
    this.kind = traits.method ?? (kind as Maker);
    this.eventKind = traits.eventKind;
    this.tokens = traits.tokens;
    this.stored = traits.stored;
    this.counter = traits.counter ?? false;
    this.isQuorum = traits.isQuorum ?? false;
    this.client = traits.client ?? {};
  }

  readonly open = (): Promise<void> => this.during(() => this.#opened());

  async #opened(): Promise<void> {
    // What it keeps is not to hang on what it has learned.
    if (this.lingers) this.#keeps = vi.spyOn(LingerLearner.prototype, "keeps").mockReturnValue(true);
    this.#topology = await this.#launch();
    this.#first = await this.join();
    this.#second = await this.join();
    if (this.lingers) this.#third = await this.join({ linger: 0 });
  }

  readonly close = (): Promise<void> =>
    this.during(async () => {
      this.#keeps?.mockRestore();
      await this.#parties.close();
      await this.#topology?.stop();
    });

  /** Another connection, which the test closes. */
  connect(): Redis {
    return this.topology.connect() as Redis;
  }

  get topology(): Topology {
    return opened(this.#topology);
  }

  get first(): Party {
    return opened(this.#first);
  }

  get second(): Party {
    return opened(this.#second);
  }

  /** A further client, to the end of the test; one that never waited has no subscriber yet. */
  async join(client: LockClientOptions = {}): Promise<Party> {
    const parties = this.#tests.getStore()?.parties ?? this.#parties;
    const party = await parties.join({
      client: { ...this.client, ...client },
      connect: () => this.connect(),
      create: (redis, options) => this.create(redis, options),
    });
    // Connections to a Cluster's nodes are made when they are needed: their handshakes are not what
    // a test measures.
    await Promise.all(this.origins(party.redis).map((redis) => redis.ping()));
    this.listen(party.locks);
    // The first command of a quorum's client asks each node who it is; tests count what comes after that.
    // Its lease is longer than a busy machine stands still, whatever the client's is.
    if (this.isQuorum) await this.of(party, freshName("first")).withLock({ lease: 10_000 }, () => {});
    return party;
  }

  /** Has its waiters counted; a client that joined is listened to already. */
  listen(locks: LockClient): void {
    if (this.messages) return;
    locks.on("wait", ({ name }) => {
      this.#said.set(name, (this.#said.get(name) ?? new Set()).add(locks));
    });
  }

  /** A client of the kind under test on this connection, and those that were made with it. */
  create(redis: Redis, options: LockClientOptions = this.client): LockClient {
    // Of a quorum the methods that are called here are the same.
    const made: unknown = this.topology.client?.(redis, options) ?? createLockClient(carrier(redis), options);
    return made as LockClient;
  }

  /** All connections of the client on this one. */
  group(redis: Redis): Redis[] {
    return this.topology.group?.(redis) ?? [redis];
  }

  /** Has Redis forget the lock. */
  async erase(name: string): Promise<void> {
    await Promise.all(this.group(this.second.redis).map((redis) => redis.del(this.key(name))));
  }

  /** Java reads its hash: a field for the holder, and in it how often it entered. */
  get isRedissons(): boolean {
    return this.kind.startsWith("redisson");
  }

  /** Its clients cache a lock while no caller is inside. */
  get lingers(): boolean {
    return (this.client.linger ?? 0) > 0;
  }

  /**
   * A lease with which `unlock()` asks Redis whatever its client keeps: one above the window is
   * never kept.
   */
  get proving(): LockOptions {
    return this.lingers ? { lease: 30_000 } : {};
  }

  /**
   * What its own client holds says nothing of what a caller gets: it asks Redis. Of permits one
   * that waits may share a place.
   */
  get isFair(): boolean {
    return this.kind === "fairLock" || this.kind === "permit";
  }

  /** As events and inspections tell it. */
  tokenOf(lease: Lease): number | null {
    expect("token" in lease).toBe(this.tokens);
    return this.tokens ? lease.token : null;
  }

  /** What its events have besides. */
  get units(): object {
    return this.kind === "permit" ? { units: 1 } : {};
  }

  /** The loss reason of a holder whose lock another caller has. Permits of one caller are never another's. */
  get taken(): "taken" | "gone" {
    return this.isCounted ? "gone" : "taken";
  }

  /** Its key is a hash with all holders. */
  get isCounted(): boolean {
    return this.kind === "permit" || this.kind === "readLock" || this.kind === "writeLock";
  }

  get isCluster(): boolean {
    return this.first.redis.isCluster;
  }

  /** The connections that subscribers are duplicates of. */
  origins(redis: Redis): Redis[] {
    return redis.isCluster ? (redis as unknown as Cluster).nodes("master") : this.group(redis);
  }

  /** A lock name of its own for a test, which must leave nothing under it. */
  name(name = freshName(this.kind)): string {
    opened(this.#tests.getStore()).names.add(name);
    return name;
  }

  of(party: Party, name: string, options?: ReentranceOptions): Lock {
    return this.on(party.locks, name, options);
  }

  /** Readers exclude only writers, so the second of the two clients writes. */
  on(locks: LockClient, name: string, options?: ReentranceOptions): Lock {
    if (this.kind === "readLock" && locks === this.#second?.locks) return opponentOf(locks, name);
    return lockOf(locks, this.kind, name, options);
  }

  /** One lock as two processes see it. */
  pair(name = this.name()): { name: string; mine: Lock; theirs: Lock } {
    return { name, mine: this.of(this.first, name), theirs: this.of(this.second, name) };
  }

  /** The key that exists while the lock is held. */
  key(name: string): string {
    return this.stored(name, KEYS).lock;
  }

  /** The key of the queue, where Redis keeps one. */
  queueOf(name: string): string | undefined {
    return this.stored(name, KEYS).queue;
  }

  /** Redis keeps a queue and hands the lock on; without one it tells all waiters to try again. */
  get queues(): boolean {
    return this.queueOf("") !== undefined;
  }

  /** Waiters receive messages, so Redis knows that they are subscribed. */
  get messages(): boolean {
    return this.queues || this.stored("", KEYS).channel !== undefined;
  }

  /** How many clients wait, as Redis sees them; where it cannot, how many have said so. */
  async waiting(name: string): Promise<number> {
    const { redis } = this.first;
    // Channels are data: unlike keys they have the connection's prefix in them.
    const queue = this.queueOf(name);
    if (queue !== undefined) return redis.zcard(queue);
    const { channel } = this.stored(name, new Keys(redis.options.keyPrefix ?? "", this.isCluster));
    if (channel === undefined) return this.#said.get(name)?.size ?? 0;
    const node = await this.topology.adminOf(channel);
    const [, listeners] = await node.pubsub((this.isCluster ? "SHARDNUMSUB" : "NUMSUB") as "NUMSUB", channel);
    return Number(listeners);
  }

  /**
   * Resolves when `count` clients wait in Redis: 1 if they all belong to one client and the kind
   * shares its place.
   */
  async untilWaiting(name: string, count: number): Promise<void> {
    const timeout = count === 0 ? LEAVING : 10_000;
    if (count === 0) this.#said.delete(name); // nothing of theirs is in Redis that could stay
    await until(async () => (await this.waiting(name)) === count, {
      timeout,
      what: `${count} waiting in Redis`,
    });
  }

  /**
   * Resolves when a lock that is held stands on every server of the client: of several masters a
   * majority was enough for it.
   */
  async untilEverywhere(name: string): Promise<void> {
    const exists = () =>
      Promise.all(this.group(this.first.redis).map((redis) => redis.exists(this.key(name))));
    await until(async () => (await exists()).every((count) => count === 1), { what: "the lock everywhere" });
  }

  /** Every test is to run in this: its locks and clients are known as its own. */
  readonly around = (test: () => Promise<void>): Promise<void> => {
    const own = { names: new Set<string>(), parties: new Parties() };
    return this.during(() => this.#tests.run(own, test).finally(own.parties.close));
  };

  /** Every test gives back what it took: no lock, no place in a queue, no subscription stays. */
  readonly leavesNothing = async (): Promise<void> => {
    for (const name of opened(this.#tests.getStore()).names) {
      this.#said.delete(name);
      // A cached lock is given up at once when another client wants it.
      if (this.#third) await (await this.of(this.#third, name).lock({ wait: LEAVING })).unlock();
      const { lock, queue } = this.stored(name, KEYS);
      const keys = queue === undefined ? [lock] : [lock, queue];
      const isClean = async () => {
        const left = await Promise.all(this.group(this.first.redis).map((redis) => redis.exists(...keys)));
        return left.every((count) => count === 0) && (await this.waiting(name)) === 0;
      };
      await until(isClean, {
        timeout: LEAVING,
        what: `the test to leave nothing of ${JSON.stringify(name)}`,
      });
    }
  };
}

function opened<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("The subject is not open yet: use it inside of tests");
  return part;
}

async function realServer(): Promise<OwnServer> {
  const server = await launchServer();
  return {
    join: (parties, client) => parties.join({ url: server.url, client }),
    restart: () => server.restart(),
    stop: () => server.stop(),
  };
}
