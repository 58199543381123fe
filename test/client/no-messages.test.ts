import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  createLockClient,
  type LockClient,
  type LockError,
  type NodeRedisLike,
  type RedisLike,
} from "../../src/index.ts";
import { register } from "../../src/tools/telemetry/prometheus.ts";
import { createTestLocks } from "../../src/tools/testing/index.ts";
import { observe } from "../../src/tools/ui/index.ts";
import type { ShownNow } from "../../src/tools/ui/shown.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { inTurn } from "../support/in-turn.ts";
import { openNodeRedis } from "../support/node-redis.ts";
import { OwnServer } from "../support/own-server.ts";
import { present } from "../support/present.ts";
import { servePage } from "../support/served-page.ts";
import { timedAwake } from "../support/stage.ts";
import { until } from "../support/until.ts";

// The connection for messages fails for good, and the one for commands does not: no call fails, so the
// client has to say it. A test client puts the clocks of this process on, by a minute. What takes 2 s
// takes 300 ms here, and what takes 10 s takes 1.5 s.
vi.mock("../../src/defaults.ts", async (all) => ({
  ...((await all()) as object),
  DEAF_AFTER: 300,
  DEAF_STEADY: 1_500,
}));

const own = new OwnServer();
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

/** Between the client and Redis: what happens to connections from now on. */
class Gate {
  mode: "pass" | "refuse" | "drop" | "close" = "pass";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly listening: Promise<unknown>;

  constructor() {
    this.#server = createServer((socket) => this.#accept(socket)).listen(0, "127.0.0.1");
    this.listening = once(this.#server, "listening");
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    if (this.mode === "refuse") return void socket.resetAndDestroy();
    this.#sockets.add(socket);
    if (this.mode === "drop") return void socket.resume();
    const redis = connect(own.server.port, "127.0.0.1").on("error", () => {});
    socket.on("close", () => redis.destroy());
    redis.on("close", () => socket.destroy());
    socket.pipe(redis).pipe(socket);
    // As a server whose client-output-buffer-limit is reached again and again.
    if (this.mode === "close") redis.on("data", (data) => /subscribe/.test(String(data)) && socket.destroy());
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

let gate: Gate;
let user: { username: string; password: string };
beforeEach(async () => {
  gate = new Gate();
  await gate.listening;
  user = await own.addUser("~*", "&*", "+@all");
});
afterEach(async () => {
  gate.stop();
  await own.admin.config("SET", "maxclients", 10_000);
});

interface Fault {
  begin(): unknown;
  end(): unknown;
  /** What the client says of it. */
  readonly says: RegExp;
}

const rules = (...all: string[]) => own.admin.acl("SETUSER", user.username, ...all);
const gateIs = (mode: Gate["mode"]): void => {
  gate.mode = mode;
};

const FAULTS: Readonly<Record<string, Fault>> = {
  "its password is refused": {
    begin: () => rules("resetpass", ">another"),
    end: () => rules(`>${user.password}`),
    says: /WRONGPASS.*current user and password/,
  },
  "its user may not SUBSCRIBE": {
    begin: () => rules("-subscribe"),
    end: () => rules("+subscribe"),
    says: /NOPERM.*subscribe.*rights/,
  },
  "its user may not subscribe to the channel": {
    begin: () => rules("resetchannels", "&other:*"),
    end: () => rules("allchannels"),
    says: /NOPERM.*channel.*rights/,
  },
  "the server has too many clients": {
    begin: async () => {
      const clients = String(await own.admin.client("LIST")).trim();
      await own.admin.config("SET", "maxclients", clients.split("\n").length);
    },
    end: () => own.admin.config("SET", "maxclients", 10_000),
    says: /max number of clients/,
  },
  "a firewall refuses it": {
    begin: () => gateIs("refuse"),
    end: () => gateIs("pass"),
    says: /ECONNRESET/,
  },
  "a firewall drops what it sends": {
    begin: () => gateIs("drop"),
    end: () => gateIs("pass"),
    says: /did not acknowledge SUBSCRIBE.*firewall/,
  },
  "the server closes it again and again": {
    begin: () => gateIs("close"),
    end: () => gateIs("pass"),
    says: /closed?.*again and again/,
  },
};

type Connect = () => RedisLike | NodeRedisLike;
const onIoredis =
  (Redis: typeof Redis6): Connect =>
  () => {
    const redis = new Redis({ port: gate.port, host: "127.0.0.1", ...user });
    redis.on("error", () => {});
    undo.push(() => redis.disconnect());
    return redis as unknown as RedisLike;
  };
const onNodeRedis =
  (version: 5 | 6): Connect =>
  () => {
    const client = openNodeRedis(version, { port: gate.port, ...user });
    undo.push(() => client.destroy());
    return client as unknown as NodeRedisLike;
  };

const LIBRARIES: readonly (readonly [string, Connect])[] = [
  ["ioredis 6", onIoredis(Redis6)],
  ["ioredis 5", onIoredis(Redis5 as never)],
  ["node-redis 6", onNodeRedis(6)],
  ["node-redis 5", onNodeRedis(5)],
];

const isOfMessages = (error: LockError): boolean => error.code === "NO_MESSAGES";

/** A client whose connection for commands is there, and another one that has a lock. */
async function joined(redis: RedisLike | NodeRedisLike, connection: "shared" | "own" = "shared") {
  const locks = createLockClient(redis, { connection });
  undo.push(() => locks.close({ grace: 0 }));
  const errors: LockError[] = [];
  locks.on("error", (error) => errors.push(error));
  await until(() =>
    locks
      .lock(freshName())
      .tryLock()
      .then((lease) => lease?.unlock().then(() => true))
      .catch(() => false),
  );
  const { locks: others } = await own.parties.join({ url: own.url });
  const busy = freshName();
  const held = await others.lock(busy).lock({ lease: 3_600_000 });
  return { locks, errors, busy, held };
}

/** What `check()` says of messages. It finds other things too: the clocks were put on. */
const unheard = async (locks: LockClient): Promise<string[]> =>
  (await locks.check()).problems.filter((one) => one.startsWith("Messages do not arrive"));

describe.each(inTurn(LIBRARIES))("%s: no messages arrive, because", (_, open) => {
  it.each(Object.keys(FAULTS))(
    "%s: an error event says so within seconds, and each minute",
    async (fault) => {
      const clock = createTestLocks();
      const { locks, errors, busy, held } = await joined(open());
      const { begin, end, says } = present(FAULTS[fault]);
      await begin();
      // A long lease: a wait of two leases for another client of this process is a warning.
      const waiting = locks.lock(busy).lock({ wait: 3_600_000, lease: 3_600_000 });
      // It rejects where Redis itself has refused SUBSCRIBE, and waits elsewhere.
      const waited = waiting.catch(() => null);
      const [, took] = await timedAwake(until(() => errors.some(isOfMessages)));
      expect(took).toBeLessThan(30_000);
      const [first] = errors.filter(isOfMessages);
      expect(first?.message).toMatch(says);
      expect(first?.message).toContain(`127.0.0.1:${gate.port}`);
      expect(await unheard(locks)).toEqual([expect.stringMatching(says)]);
      // LOCK_UNAVAILABLE where Redis itself has refused SUBSCRIBE.
      const late = (await failure(locks.lock(busy).lock({ wait: 100 }))) as LockError;
      expect(["LOCK_TIMEOUT", "LOCK_UNAVAILABLE"]).toContain(late.code);
      expect(late.message).toMatch(new RegExp(says.source.split(".*")[0] ?? ""));
      expect(errors.filter(isOfMessages)).toHaveLength(1);
      await clock.test.advance(61_000);
      const toldAgain = async (): Promise<boolean> => {
        await failure(locks.lock(busy).lock({ wait: 100 }));
        return errors.filter(isOfMessages).length > 1;
      };
      await until(toldAgain, { what: "the next minute's event" });
      await end();
      await until(async () => (await unheard(locks)).length === 0, { what: "messages to arrive again" });
      const told = errors.filter(isOfMessages).length;
      await clock.test.advance(61_000);
      await held.unlock();
      await (await waited)?.unlock();
      await (await locks.lock(busy).lock()).unlock();
      expect(errors.filter(isOfMessages)).toHaveLength(told);
    },
  );
});

it("a metric counts it, and the page shows the process and the reason", async () => {
  const registry = new Registry();
  const { locks, errors, busy, held } = await joined(onIoredis(Redis6)());
  undo.push(register(locks, registry));
  undo.push(observe(locks, own.admin));
  await rules("-subscribe");
  const waiting = locks.lock(busy).lock({ wait: 3_600_000, lease: 3_600_000 });
  waiting.catch(() => {});
  await until(() => errors.some(isOfMessages));
  expect(await registry.metrics()).toMatch(/holdfast_lock_errors_total\{code="NO_MESSAGES"\} 1/);
  const page = await servePage(own.admin);
  undo.push(() => page.stop());
  const deaf = await until(async () => {
    const shown = (await (await fetch(`${page.url}?part=state&view=now`)).json()) as ShownNow;
    return shown.deaf.length > 0 && shown.deaf;
  });
  expect(deaf).toEqual([
    expect.objectContaining({ client: locks.id, pid: process.pid, why: expect.stringContaining("NOPERM") }),
  ]);
  await failure(waiting);
  await held.unlock();
});
