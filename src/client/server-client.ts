import type { LockClient, LockStats } from "../api/client.ts";
import {
  checkElection,
  type Election,
  type ElectionOptions,
  CREATE as NO_ELECTION,
} from "../api/election.ts";
import { ClientClosedError } from "../api/errors.ts";
import type { UnfencedLease } from "../api/lease.ts";
import { checkList, type Listed, type ListOptions } from "../api/list.ts";
import type { Lock } from "../api/lock.ts";
import type { MultiLock } from "../api/multi-lock.ts";
import { checkOnce, type OnceOptions, type OnceResult, type Turn } from "../api/once.ts";
import {
  CREATE as CANNOT,
  checkClientOptions,
  checkReadWrite,
  type ForceUnlockOptions,
  type LingerOptions,
  type LockClientOptions,
  lingering,
  type ReadWriteOptions,
  type Settings,
} from "../api/options.ts";
import type { ReadWriteLock } from "../api/read-write-lock.ts";
import type { ClusterLike, NodeRedisLike, RedisLike } from "../api/redis.ts";
import { checkReentrance, type ReentranceOptions } from "../api/reentrance.ts";
import {
  checkRemember,
  NOT_REMEMBERED,
  type Remembered,
  type RememberedNow,
  type RememberOptions,
  type ResultRun,
} from "../api/remember.ts";
import { RENAMED, refuseRenamedMethods } from "../api/renamed.ts";
import type { Semaphore, SemaphoreOptions } from "../api/semaphore.ts";
import { StoredSettings } from "../api/stored-settings.ts";
import { checkName, checkOptions } from "../api/validate.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { LOCAL_HANDOFFS } from "../defaults.ts";
import { Elections } from "../election/elections.ts";
import { NamedElection } from "../election/named-election.ts";
import { hasInside, type Inside } from "../inside.ts";
import { Lister } from "../list/lister.ts";
import type { LockSettings } from "../locks/arguments.ts";
import { detectorOf } from "../locks/deadlocks/detector.ts";
import { checkSemaphore } from "../locks/permit-arguments.ts";
import { LockPair } from "../locks/read-write-lock.ts";
import { Once } from "../once/once.ts";
import { OnceScripts } from "../once/once-scripts.ts";
import type { Commands } from "../redis/commands.ts";
import { linkTo, noConnection } from "../redis/drivers.ts";
import { hasOneSlotPerLock } from "../redis/keys.ts";
import { publishProbe } from "../redis/messages.ts";
import type { Replication } from "../redis/replication.ts";
import { Remembering } from "../remember/remembering.ts";
import { inspectAs } from "../util/print.ts";
import { quote } from "../util/quote.ts";
import { CountedKind } from "../wires/counted.ts";
import { ElectionKind } from "../wires/election.ts";
import { HandoffKind } from "../wires/handoff.ts";
import { ReadWriteKinds } from "../wires/read-write.ts";
import { RememberKind } from "../wires/remember.ts";
import { BaseClient } from "./base-client.ts";
import { redisServer, type Server } from "./server.ts";

/** The locks on one Redis: a server, a Sentinel group or a Cluster. */
export class ServerClient extends BaseClient implements LockClient {
  readonly #kinds: Readonly<Record<"lock" | "fair", LockKind>>;
  readonly #semaphores: Readonly<Record<"pooled" | "fair", CountedKind>>;
  readonly #lingering: ReturnType<typeof lingering>;
  readonly #once: Once;
  readonly #leaseTime: number;
  readonly #parts: {
    readonly places: Server["places"];
    readonly commands: Commands;
    readonly replication: Replication | null;
    readonly settings: Settings;
    readonly stored: StoredSettings;
  };
  /** Made for the first caller. */
  #elections: Elections | null = null;
  #remembering: Remembering | null = null;
  #lister: Lister | null = null;
  #readWrite: ReadWriteKinds | null = null;

  constructor(server: Server, settings: Settings) {
    const { commands, replication, places } = server;
    const { leaseTime, grantWindow, localHandoffs, replicas } = settings;
    super({
      transport: commands,
      subscribe: server.subscribe,
      label: settings.label,
      process: server.process,
      window: grantWindow,
      leaseTime,
      linger: settings.linger,
      reentrant: settings.reentrant,
      detector: (locks) => detectorOf(settings.deadlocks, commands, locks, () => this.#inspections),
      replicas,
      checkable: {
        places,
        isCluster: commands.isCluster,
        isQuorum: false,
        restartDelay: 0,
        channel: (name) => this.locks.inbox.channelOf(name),
        publish: (channel, message) => publishProbe(commands, channel, message),
        trouble: () => commands.trouble(),
      },
      closed: server.closed,
    });
    const stored = new StoredSettings(this.locks.events);
    this.#parts = { places, commands, replication, settings, stored };
    this.#lingering = lingering(settings);
    this.#leaseTime = leaseTime;
    this.#once = new Once(new OnceScripts(commands, replication), this.locks, stored);
    this.#kinds = {
      lock: new HandoffKind(commands, replication, false, localHandoffs, grantWindow),
      fair: new HandoffKind(commands, replication, true, 0, grantWindow),
    };
    const at = { commands, replication, window: grantWindow, stored };
    this.#semaphores = {
      pooled: new CountedKind(at, "semaphore", localHandoffs ?? LOCAL_HANDOFFS, false),
      fair: new CountedKind(at, "semaphore", 0, true),
    };
    const lockOf: Inside["lockOf"] = (...kind) => this.lockOf(...kind);
    const inspectRun: Inside["inspectRun"] = (name) => this.#results.inspect(name);
    hasInside(this, { commands, replication, settings, lockOf, inspectRun });
  }

  lock(name: string, options?: LingerOptions): Lock {
    if (options === undefined) return this.lockOf(name, this.#kinds.lock);
    const { localHandoffs, ...how } = checkOptions(LOCK, this.#lingering, options);
    return this.lockOf(name, this.#kinds.lock, { ...how, passes: localHandoffs });
  }

  fairLock(name: string, options?: ReentranceOptions): Lock {
    if (options === undefined) return this.lockOf(name, this.#kinds.fair, UNKEPT);
    const { reentrant } = checkReentrance(
      options,
      "a fairLock has no local hand-offs, or its order would not hold",
    );
    return this.lockOf(name, this.#kinds.fair, { linger: 0, reentrant });
  }

  semaphore(name: string, options?: SemaphoreOptions): Semaphore {
    const { permits, fair, localHandoffs } = checkSemaphore(options);
    const kind = fair ? this.#semaphores.fair : this.#semaphores.pooled;
    return this.semaphoreOf(name, kind, permits ?? null, localHandoffs);
  }

  readWriteLock(name: string, options?: ReadWriteOptions): ReadWriteLock {
    const wanted = checkReadWrite(this.#lingering, options);
    const { fair, localHandoffs, linger = fair ? 0 : undefined, reentrant } = wanted;
    this.#readWrite ??= this.#newReadWrite();
    const { read, write } = this.#readWrite[fair ? "fair" : "plain"];
    return new LockPair(
      this.lockOf(name, read, { linger, reentrant }),
      this.lockOf(name, write, { passes: localHandoffs, linger: 0, reentrant }),
      () => read.look(name),
    );
  }

  #newReadWrite(): ReadWriteKinds {
    const { commands, replication, settings, stored } = this.#parts;
    const { grantWindow: window, localHandoffs = LOCAL_HANDOFFS } = settings;
    return new ReadWriteKinds({ commands, replication, window, stored }, localHandoffs);
  }

  multiLock(members: readonly (string | Lock<UnfencedLease>)[], options?: unknown): MultiLock {
    return this.multiLockOf(members, this.#kinds.lock, options);
  }

  async runOnce<T>(
    name: string,
    options: OnceOptions,
    body: (turn: Turn) => T | PromiseLike<T>,
  ): Promise<OnceResult<T>> {
    return this.#once.run(name, checkOnce(name, options, body, this.#leaseTime), body);
  }

  async remember<T>(
    name: string,
    options: RememberOptions,
    body: (run: ResultRun) => T | PromiseLike<T>,
  ): Promise<Remembered<T>> {
    const wanted = checkRemember(name, options, body, this.#leaseTime);
    return this.#results.remember(name, wanted, body, ServerClient.prototype.remember);
  }

  async remembered<T = unknown>(name: string): Promise<RememberedNow<T> | null> {
    return this.#results.remembered(checkName(name, NOT_REMEMBERED));
  }

  async forget(name: string): Promise<boolean> {
    return this.#results.forget(checkName(name, NOT_REMEMBERED));
  }

  async stopRun(name: string, options?: ForceUnlockOptions): Promise<boolean> {
    return this.#results.stop(checkName(name, NOT_REMEMBERED), options);
  }

  get #results(): Remembering {
    this.#remembering ??= this.#newRemembering();
    return this.#remembering;
  }

  #newRemembering(): Remembering {
    const { commands, replication, settings } = this.#parts;
    const kind = new RememberKind(commands, replication, settings.grantWindow);
    return new Remembering(kind, this.locks, this.scopes);
  }

  protected override closeBeside(): Promise<void> {
    this.#elections?.close();
    return this.#once.close();
  }

  election(name: string, options?: ElectionOptions): Election {
    const terms = checkElection(options);
    this.#elections ??= this.#newElections();
    return new NamedElection(checkName(name, NO_ELECTION), this.#elections, terms);
  }

  #newElections() {
    return new Elections(this.#newElectionKind(), this.locks, this.#leaseTime);
  }

  #newElectionKind(): ElectionKind {
    const { commands, replication, settings } = this.#parts;
    return new ElectionKind(commands, replication, settings.grantWindow, this.id);
  }

  list(options?: ListOptions): AsyncGenerator<Listed, void, undefined> {
    const wanted = checkList(options);
    this.#lister ??= this.#newLister();
    return this.#lister.list(wanted, () => {
      if (this.isClosed) throw new ClientClosedError(null);
    });
  }

  #newLister(): Lister {
    const { places, commands } = this.#parts;
    return new Lister(places, commands, this.#inspections);
  }

  get #inspections() {
    this.#readWrite ??= this.#newReadWrite();
    const { readers } = this.#readWrite;
    return {
      lock: (name: string) => this.#kinds.lock.inspect(name),
      remember: (name: string) => this.#results.inspect(name),
      readWrite: (name: string) => readers.look(name),
      semaphore: (name: string) => this.#semaphores.fair.look(name),
    };
  }

  stats(): LockStats {
    let waiting = 0;
    for (const resource of this.locks.resources()) for (const _ of resource) waiting++;
    return { waiting, ...this.locks.stays.learner.stats };
  }
}

const LOCK = "Cannot create a lock";
const UNKEPT: LockSettings = { linger: 0 };

/**
 * Creates a lock client on an ioredis connection (5.11 or later, or 6; iovalkey's 0.4 too), or on a
 * client of node-redis 5 or 6: to a single server, a Sentinel group or a Cluster. The connection
 * carries the commands and stays yours. The first call that may wait for a lock or permits, or
 * `check()`, opens a subscriber connection (in Cluster one to each primary in use); a client that
 * only calls `tryLock()` and caches no locks (`linger`) never opens one. Nothing is sent before the
 * first lock is taken.
 *
 * @throws TypeError or RangeError for bad arguments.
 * @example
 * import { Redis } from "ioredis";
 * const locks = createLockClient(new Redis());
 */
export function createLockClient(
  redis: RedisLike | ClusterLike | NodeRedisLike,
  options?: LockClientOptions,
): LockClient {
  if (Array.isArray(redis))
    throw new TypeError(
      `${CANNOT}: createLockClient takes one connection; for several masters it is createQuorumClient(masters) from holdfast/quorum`,
    );
  const settings = checkClientOptions(options);
  const link = linkTo(redis);
  if (!link) throw new TypeError(`${CANNOT}: redis ${noConnection(redis)}`);
  const prefix = link.keyPrefix + settings.prefix;
  if (link.nodes && !hasOneSlotPerLock(prefix)) {
    throw new TypeError(
      `${CANNOT}: with the prefix ${quote(prefix)} the keys of one lock have different hash slots; use one without "{}"`,
    );
  }
  if (settings.replicas > 0 && !link.opensOnce)
    throw new TypeError(
      `${CANNOT}: replicas needs a connection of its own to each master, which ${link.library} opens for a single server only; use ioredis for a ${link.kind === "cluster" ? "Cluster" : "Sentinel group"}`,
    );
  return new ServerClient(redisServer(link, settings), settings);
}

inspectAs(ServerClient, "LockClient");
refuseRenamedMethods(ServerClient, RENAMED.client);
