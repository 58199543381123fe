import { AsyncLocalStorage } from "node:async_hooks";
import { execFile } from "node:child_process";
import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import type { Meter, Tracer } from "@opentelemetry/api";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  createLockClient,
  type Lease,
  type Lock,
  type LockClient,
  type LockEvents,
} from "../../src/index.ts";
import { optimistic } from "../../src/optimistic/index.ts";
import { createQuorumClient, type QuorumClient } from "../../src/quorum/index.ts";
import { instrument } from "../../src/tools/telemetry/otel.ts";
import { register } from "../../src/tools/telemetry/prometheus.ts";
import { createLockUI } from "../../src/tools/ui/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { block } from "../support/block.ts";
import { carrierOf } from "../support/carrier.ts";
import { circle } from "../support/circles.ts";
import { compiled } from "../support/compiled.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { launchAll } from "../support/servers/launch-all.ts";
import { until } from "../support/until.ts";

// In which asynchronous context does code run that is not the library's own: with whose
// `AsyncLocalStorage` stores, and in whose scope? This depends on the version of Node.js: before 24
// the stores are fields of the resource that runs.

// What takes 5 s takes 200 ms here.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEADLOCK_AFTER: 200,
  DEADLOCK_AGAIN: 100,
}));

const parties = new Parties();
afterEach(parties.close);
afterAll(parties.close);

const requests = new AsyncLocalStorage<string>();

interface Stage {
  readonly locks: LockClient;
  /** Of another process, as it were. */
  readonly far: LockClient;
  /** The connection of `locks`, and how its locks are carried. */
  readonly redis: Redis;
  /** A fresh one. */
  readonly name: string;
  /** That name's lock. */
  readonly lock: Lock;
  /** The foreign code: notes in which context it runs. */
  readonly see: () => void;
  /** How often it ran. */
  readonly times: () => number;
}

/** Prepares a door, and returns what a caller does so that the foreign code behind it runs. */
type Door = (stage: Stage) => (() => unknown) | Promise<() => unknown>;

/** A listener after one that leaves a store behind. */
const hears =
  (event: keyof LockEvents, act: (stage: Stage) => unknown): Door =>
  (stage) => {
    stage.locks.on(event, () => requests.enterWith("another listener")).on(event, stage.see);
    return () => act(stage);
  };

/** A subscriber of a channel about this client. */
const subscribes =
  (channel: string, act: (stage: Stage) => unknown): Door =>
  (stage) => {
    const { locks, see } = stage;
    const told = (message: unknown): void => {
      if ((message as { client: string }).client === locks.id) see();
    };
    subscribe(channel, told);
    onTestFinished(() => void unsubscribe(channel, told));
    return () => act(stage);
  };

/** A listener of a signal of a lease that `act` ends. */
const aborts =
  (signal: (lease: Lease) => AbortSignal, act: (stage: Stage) => unknown): Door =>
  (stage) =>
  async () => {
    const lease = await stage.lock.lock();
    signal(lease).addEventListener("abort", stage.see);
    const acted = act(stage);
    await seen(stage);
    await lease.unlock().catch(() => {});
    await acted;
  };

/** Sees each socket that the process opens meanwhile. It keeps the context in which it is opened. */
const opens =
  ({ see }: Stage, act: () => Promise<unknown>): (() => Promise<void>) =>
  async () => {
    subscribe("net.client.socket", see);
    await act();
    unsubscribe("net.client.socket", see);
  };

/** Intercepts the commands of a connection, as tracers do, until the returned function is called. */
function intercept({ redis, see }: Stage, isMeant = (_words: string): boolean => true): () => void {
  const connection = carrierOf(redis) as { sendCommand: (...args: unknown[]) => unknown };
  const send = connection.sendCommand.bind(connection);
  connection.sendCommand = (command, ...more) => {
    const { args = [] } = command as { args?: unknown[] };
    if (isMeant((Array.isArray(command) ? command : args).join(" "))) see();
    return send(command, ...more);
  };
  return () => {
    connection.sendCommand = send;
  };
}

/** A subscriber of a part of a tracing channel, about this client. */
const traces =
  (channel: string, part: "start" | "asyncEnd", body = (): void => {}): Door =>
  (stage) => {
    const told = (message: unknown): void => {
      if ((message as { client: string }).client === stage.locks.id) stage.see();
    };
    const traced = tracingChannel<unknown, object>(channel)[part];
    return async () => {
      traced.subscribe(told);
      await stage.lock.withLock(body);
      traced.unsubscribe(told);
    };
  };

const seen = ({ times }: Stage): Promise<unknown> => until(() => times() > 0, { what: "the foreign code" });

const take = ({ lock }: Stage): Promise<void> => lock.withLock(() => {});

/** Waits for another process's lock, without success. */
async function waits({ far, lock, name }: Stage): Promise<void> {
  const held = await far.lock(name).lock();
  await lock.tryLock(50);
  await held.unlock();
}

async function loses(stage: Stage): Promise<void> {
  const lease = await stage.lock.lock();
  await stage.far.lock(stage.name).forceUnlock();
  await seen(stage);
  await lease.unlock().catch(() => {});
}

/** Gets the lock by a message, which is for a short time only: so it is renewed soon. */
async function getsByMessage({ locks, far, lock, name }: Stage): Promise<Lease> {
  const held = await far.lock(name).lock();
  const told = new Promise((resolve) => locks.once("wait", resolve));
  const waiting = lock.lock();
  await told;
  await held.unlock();
  return waiting;
}

async function renews(stage: Stage): Promise<void> {
  const lease = await getsByMessage(stage);
  await seen(stage);
  await lease.unlock();
}

/** Another process wants a lock that is cached here. */
async function isRecalled(stage: Stage): Promise<void> {
  const { locks, far, name } = stage;
  const lock = locks.lock(name, { linger: 1_000 });
  let isKept = false;
  locks.on("acquire", ({ kept }) => {
    isKept = kept;
  });
  await until(async () => {
    await lock.withLock(() => {});
    return isKept;
  });
  await far.lock(name).withLock(() => {});
}

async function stalls(stage: Stage): Promise<void> {
  const lease = await stage.lock.lock({ lease: 300 });
  block(500);
  await seen(stage);
  await lease.unlock().catch(() => {});
}

const meetsDeadlock = ({ locks }: Stage): Promise<unknown> => Promise.all(circle([locks, locks]).outcomes);

const leavesBehind = ({ locks, lock }: Stage): Promise<unknown> => locks.scope(() => lock.lock());

const breaks = ({ far, name }: Stage): Promise<unknown> => far.lock(name).forceUnlock();

let masters: LocalServer[] = [];
beforeAll(async () => {
  masters = await launchAll(3, {});
});
afterAll(() => Promise.all(masters.map((server) => server.stop())));

/** A client of a quorum, one of whose three nodes does not answer. */
async function quorum(): Promise<QuorumClient> {
  const nodes = masters.map(({ port }) => new Redis(port, { retryStrategy: () => 20 }));
  const locks = createQuorumClient(nodes, { restartDelay: 0 });
  locks.on("error", () => {});
  for (const node of nodes) node.on("error", () => {});
  await Promise.all(nodes.map((node) => node.ping()));
  masters[2]?.suspend();
  onTestFinished(async () => {
    masters[2]?.resume();
    await locks.close({ grace: 0 });
    for (const node of nodes) node.disconnect();
  });
  return locks;
}

/** Code that no call waits for: it sees no store, and is in no scope. */
const OUTSIDE: Readonly<Record<string, Door>> = {
  'locks.on("acquire")': hears("acquire", take),
  'locks.on("release")': hears("release", take),
  'locks.on("wait")': hears("wait", waits),
  'locks.on("giveup")': hears("giveup", waits),
  'locks.on("giveup") that is told at once': hears("giveup", ({ lock }) =>
    lock.tryLock({ signal: AbortSignal.abort() }).catch(() => {}),
  ),
  'locks.on("lost")': hears("lost", loses),
  'locks.on("lost") at the end of a scope': hears("lost", (stage) => {
    stage.locks.on("error", () => {});
    return leavesBehind(stage);
  }),
  'locks.on("lost") when the time is over': hears("lost", async ({ lock }) => {
    const lease = await lock.lock({ lease: 150 });
    await until(() => !lease.held);
  }),
  'locks.on("renew")': hears("renew", renews),
  'locks.on("recall")': hears("recall", isRecalled),
  'locks.on("deadlock")': hears("deadlock", meetsDeadlock),
  'locks.on("exposed") of a quorum': async (stage) => {
    const locks = await quorum();
    locks.on("exposed", stage.see);
    return async () => {
      const lease = await locks.lock(stage.name).lock();
      await seen(stage);
      await lease.unlock();
    };
  },
  'locks.on("error")': hears("error", leavesBehind),
  'locks.on("error") about a listener': hears("error", (stage) => {
    stage.locks.once("release", () => {
      throw new Error("theirs");
    });
    return take(stage);
  }),
  "locks.once()": (stage) => {
    stage.locks.once("acquire", stage.see);
    return () => take(stage);
  },
  "an async listener, later": (stage) => {
    stage.locks.on("acquire", async () => {
      await nextTurn();
      stage.see();
    });
    return () => take(stage);
  },
  "the promise that a listener returns": (stage) => {
    // biome-ignore lint/suspicious/noThenProperty: that is what it is about.
    stage.locks.on("acquire", () => ({ then: stage.see }) as unknown as undefined);
    return () => take(stage);
  },
  'process.on("warning")': (stage) => {
    const warned = ({ code }: Error & { code?: string }): void => {
      if (code === "LOCK_LEFT_BEHIND") stage.see();
    };
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    return () => leavesBehind(stage);
  },
  "the signal of a lease that is lost": aborts(({ signal }) => signal, breaks),
  "the signal of a multi-lock": (stage) => async () => {
    const lease = await stage.locks.multiLock([stage.name, freshName()]).lock();
    lease.signal.addEventListener("abort", stage.see);
    await breaks(stage);
    await seen(stage);
    await lease.unlock().catch(() => {});
  },
  "the signal of a term": (stage) => async () => {
    const term = await stage.locks.election(stage.name).campaign({ value: "me" });
    term.signal.addEventListener("abort", stage.see);
    await stage.far.election(stage.name).forceResign();
    await seen(stage);
  },
  "the signal of a lease that a scope's end takes": (stage) => {
    stage.locks.on("error", () => {});
    return () =>
      stage.locks.scope(async () => {
        const { signal } = await stage.lock.lock();
        signal.addEventListener("abort", stage.see);
      });
  },
  "lease.wanted": aborts(
    ({ wanted }) => wanted,
    ({ far, name }) => far.lock(name).withLock(() => {}),
  ),
  "channel holdfast:lost": subscribes("holdfast:lost", loses),
  "channel holdfast:giveup": subscribes("holdfast:giveup", waits),
  "channel holdfast:renew": subscribes("holdfast:renew", renews),
  "channel holdfast:recall": subscribes("holdfast:recall", isRecalled),
  "channel holdfast:stall": subscribes("holdfast:stall", stalls),
  "a meter, and the names for it": (stage) => {
    const nameOf = (): string => {
      stage.see();
      return "any";
    };
    const counter = { add: stage.see, record: stage.see, addCallback() {}, removeCallback() {} };
    const make = (): typeof counter => counter;
    const meter = {
      createHistogram: make,
      createUpDownCounter: make,
      createCounter: make,
      createObservableGauge: make,
    };
    onTestFinished(instrument(stage.locks, { meter: meter as unknown as Meter, nameOf }));
    return () => take(stage);
  },
  "nameOf of a registry": (stage) => {
    const nameOf = (): string => {
      stage.see();
      return "any";
    };
    onTestFinished(register(stage.locks, new Registry(), { nameOf }));
    return () => take(stage);
  },
  "a renewal's command": (stage) => async () => {
    const lease = await getsByMessage(stage);
    const stop = intercept(stage, (words) => words.includes(stage.name));
    await seen(stage);
    stop();
    await lease.unlock();
  },
  "the socket for messages": async (stage) => {
    // Opened when a call of the client may wait for the first time.
    const { locks } = await parties.join();
    return opens(stage, () => waits({ ...stage, locks, lock: locks.lock(stage.name) }));
  },
  "the socket of a client's own connection": (stage) =>
    opens(stage, async () => {
      const own = createLockClient(carrierOf(stage.redis) as Redis, { connection: "own" });
      await own.lock(stage.name).withLock(() => {});
      await own.close();
    }),
  "the socket of optimistic()": (stage) =>
    opens(stage, () => optimistic(stage.redis, [stage.name], () => {})),
  "the looks of the page, for all viewers": async (stage) => {
    const ui = createLockUI({ locks: stage.locks, authorize: () => true });
    onTestFinished(ui.close);
    return async () => {
      const stop = intercept(stage);
      const gone = new AbortController();
      const request = new Request("http://localhost/?part=events", { signal: gone.signal });
      await ui.fetch(request);
      await seen(stage);
      stop();
      gone.abort();
    };
  },
};

/** Code that a call waits for, or that a tracer ties to the call: it runs in the caller's context. */
const INSIDE: Readonly<Record<string, Door>> = {
  "the body of a scope":
    ({ locks, see }) =>
    () =>
      locks.scope(see),
  "the body of withLock":
    ({ lock, see }) =>
    () =>
      lock.withLock(see),
  "the body of withLock, later":
    ({ lock, see }) =>
    () =>
      lock.withLock(async () => {
        await nextTurn();
        see();
      }),
  "the body of withLock after a wait for another process":
    ({ far, lock, name, see }) =>
    async () => {
      const held = await far.lock(name).lock();
      const waited = lock.withLock(see);
      await held.unlock();
      await waited;
    },
  "the body of withPermits":
    ({ locks, name, see }) =>
    () =>
      locks.semaphore(name, { permits: 1 }).withPermits(1, see),
  "the body of a reader":
    ({ locks, name, see }) =>
    () =>
      locks.readWriteLock(name).read.withLock(see),
  "the body of a multi-lock":
    ({ locks, name, see }) =>
    () =>
      locks.multiLock([name, freshName()]).withLock(see),
  "the body of runOnce":
    ({ locks, name, see }) =>
    () =>
      locks.runOnce(name, { every: 10 }, see),
  "the body of runAsLeader":
    ({ locks, name, see }) =>
    () =>
      locks.election(name).runAsLeader(async () => see()),
  "the body of optimistic()":
    ({ redis, name, see }) =>
    () =>
      optimistic(redis, [name], () => see()),
  "holdfast:acquire, start": traces("holdfast:acquire", "start"),
  "holdfast:acquire, asyncEnd": traces("holdfast:acquire", "asyncEnd"),
  "holdfast:hold, start": traces("holdfast:hold", "start"),
  "holdfast:hold, asyncEnd": traces("holdfast:hold", "asyncEnd"),
  "holdfast:hold, asyncEnd after a body that leaves a store behind": traces("holdfast:hold", "asyncEnd", () =>
    requests.enterWith("the body"),
  ),
  "`around` of holdfast:hold, and the body in it": (stage) => {
    const { locks, lock, see } = stage;
    const started = (message: unknown): void => {
      const told = message as { client: string; around: unknown };
      if (told.client !== locks.id) return;
      told.around = (body: () => unknown) => {
        see();
        return body();
      };
    };
    const { start } = tracingChannel<unknown, object>("holdfast:hold");
    return async () => {
      start.subscribe(started);
      await lock.withLock(see);
      start.unsubscribe(started);
    };
  },
  "a tracer, and the names for it": (stage) => {
    const nameOf = (): string => {
      stage.see();
      return "any";
    };
    const span = { end: stage.see, setStatus: stage.see, spanContext: () => ({}) };
    const tracer = {
      startSpan: () => {
        stage.see();
        return span;
      },
    };
    return async () => {
      const undo = instrument(stage.locks, { tracer: tracer as unknown as Tracer, nameOf });
      await take(stage);
      undo();
    };
  },
  "the commands of a call": (stage) => {
    intercept(stage, (words) => words.includes(stage.name));
    return () => take(stage);
  },
  "authorize of the page": ({ locks, see }) => {
    const authorize = (): boolean => {
      see();
      return true;
    };
    const ui = createLockUI({ locks, authorize });
    onTestFinished(ui.close);
    return () => ui.fetch(new Request("http://localhost/"));
  },
};

interface Sight {
  readonly store: string | undefined;
  readonly isInScope: boolean;
}

/**
 * How a caller comes to a door: as a request; and in the synchronous part of what a listener starts.
 * `inScope`: does its scope hold the guard then?
 */
const CALLERS: Readonly<
  Record<string, (locks: LockClient, guard: Lock, act: () => unknown) => Promise<boolean>>
> = {
  "a request": async (locks, guard, act) => {
    await requests.run("caller", () =>
      locks.scope(async () => {
        const held = await guard.lock();
        await act();
        await held.unlock();
      }),
    );
    return true;
  },
  "a listener's store and scope": async (locks, _guard, act) => {
    const { lock, locks: other } = { lock: freshName(), locks: await parties.join() };
    const acted = new Promise<unknown>((resolve, reject) => {
      other.locks.once("acquire", () => {
        requests.run("caller", () => locks.scope(async () => void (await act()))).then(resolve, reject);
      });
    });
    // Its release too: a client that is closed before it is answered warns of it.
    await Promise.all([acted, other.locks.lock(lock).withLock(() => {})]);
    return false;
  },
};

describe.each(Object.entries(CALLERS))("called by %s", (_, call) => {
  /** The contexts in which the foreign code of a door ran. */
  async function sights(door: Door): Promise<{ sights: readonly Sight[]; holdsGuard: boolean }> {
    const { locks, redis } = await parties.join({ client: { deadlocks: "reject" } });
    const far = await parties.join();
    const guard = locks.lock(freshName());
    const name = freshName();
    const all: Sight[] = [];
    const see = (): void => void all.push({ store: requests.getStore(), isInScope: guard.isHeldHere() });
    const stage = {
      locks,
      redis,
      far: far.locks,
      name,
      lock: locks.lock(name),
      see,
      times: () => all.length,
    };
    // A listener that leaves its store behind must leave it to no other.
    far.locks.once("acquire", () => requests.enterWith("left behind"));
    await far.locks.lock(freshName()).withLock(() => {});
    // From now on it receives messages.
    await waits({ ...stage, name: guard.name, lock: guard });
    const act = await door(stage);
    const holdsGuard = await call(locks, guard, act);
    await seen(stage);
    return { sights: all, holdsGuard };
  }

  it.each(Object.entries(OUTSIDE))("%s: runs outside of every caller's context", async (_, door) => {
    const { sights: all } = await sights(door);
    expect(new Set(all.map((one) => JSON.stringify(one)))).toEqual(new Set([JSON.stringify(NOWHERE)]));
  });

  it.each(Object.entries(INSIDE))("%s: runs in its caller's context", async (_, door) => {
    const { sights: all, holdsGuard } = await sights(door);
    for (const one of all) expect(one).toEqual({ store: "caller", isInScope: holdsGuard });
  });

  it("locks.outside(): keeps its caller's stores, and leaves the scope", async () => {
    const { sights: all } = await sights(
      ({ locks, see }) =>
        () =>
          locks.outside(see),
    );
    expect(all).toEqual([{ store: "caller", isInScope: false }]);
  });
});

const NOWHERE: Sight = { store: undefined, isInScope: false };

it("a listener runs in no request, though the first request has loaded the package", async () => {
  const program = compiled(`
    import { AsyncLocalStorage } from "node:async_hooks";
    import { Redis } from "ioredis";
    const requests = new AsyncLocalStorage();
    const redis = new Redis(process.argv[2]);
    await redis.ping();
    await requests.run("first", async () => {
      const { createLockClient } = await import("./src/index.ts");
      const locks = createLockClient(redis);
      locks.on("acquire", () => console.log(JSON.stringify({ store: requests.getStore() })));
      await locks.lock(process.argv[3]).withLock(() => {});
      await locks.close();
    });
    redis.disconnect();
  `);
  const { stdout } = await promisify(execFile)(process.execPath, [program, testUrl(), freshName()]);
  expect(JSON.parse(stdout)).toEqual({});
});

it.each(["first request", undefined])(
  "ioredis keeps the context in which it connects (%s), whatever is called in another one",
  async (context) => {
    const open = () => new Redis(testUrl());
    const redis = context === undefined ? open() : requests.run(context, open);
    onTestFinished(() => redis.disconnect());
    await once(redis, "ready");
    const channel = freshName();
    const store = new Promise((resolve) =>
      requests.run("second request", () => redis.once("message", () => resolve(requests.getStore()))),
    );
    await requests.run("second request", () => redis.subscribe(channel));
    const { redis: other } = await parties.join();
    await requests.run("third request", () => other.publish(channel, ""));
    expect(await store).toBe(context);
  },
);

it.each(Array.from({ length: 20 }, (_, i) => i))(
  "%i two listeners have a lock one after the other, also when one has told the other in its scope",
  async () => {
    const { locks, redis } = await parties.join();
    const lock = locks.lock(freshName());
    let [inside, most] = [0, 0];
    const use = async (lease: Lease | null): Promise<number | undefined> => {
      most = Math.max(most, ++inside);
      await redis.ping();
      inside--;
      await lease?.unlock();
      return lease?.token;
    };
    const second = new Promise<number | undefined>((resolve, reject) => {
      locks.once("giveup", () => void lock.tryLock({ wait: 60_000 }).then(use).then(resolve, reject));
    });
    const first = new Promise<number | undefined>((resolve, reject) => {
      locks.once("acquire", () => {
        const scope = locks.scope(() => {
          // Its `giveup` is told at once, in the synchronous part of this scope.
          locks
            .lock(freshName())
            .tryLock({ signal: AbortSignal.abort() })
            .catch(() => {});
          return lock.lock().then(use);
        });
        scope.then(resolve, reject);
      });
    });
    await locks.lock(freshName()).withLock(() => {});
    const tokens = await Promise.all([first, second]);
    expect(most, "callers inside at the same time").toBe(1);
    expect(new Set(tokens).size, "their tokens").toBe(2);
  },
);
