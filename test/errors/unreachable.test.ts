import { EventEmitter } from "node:events";
import { createServer } from "node:net";
import { inspect } from "node:util";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLockClient, type Lock } from "../../src/index.ts";
import { createQuorumClient } from "../../src/quorum/index.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { failure } from "../contract/observe.ts";
import { freshName } from "../support/fixture.ts";
import { until } from "../support/until.ts";

// Redis cannot be reached, or refuses the connection: the error says where it should be, what the
// connection is doing and what went wrong with it, in its message and in its cause.

// An error tells what is known after the usual time.
vi.mock("../../src/defaults.ts", async (all) => ({ ...(await all<object>()), FIRST_REPLY: 500 }));

const silent = () => {};

/** A lock on a connection that has a listener for its errors, as everybody should. */
function lockOn(redis: Redis | Cluster, options: { replyTimeout?: number } = {}): Lock {
  redis.on("error", silent);
  const locks = createLockClient(redis, options);
  onTestFinished(async () => {
    await locks.close({ grace: 0 });
    redis.disconnect();
  });
  return locks.lock(freshName());
}

async function server(...args: string[]) {
  const launched = await launchServer({ args });
  onTestFinished(() => launched.stop());
  return { port: launched.port, host: "127.0.0.1" };
}

/** A port where a server says this to every client, and closes. */
async function saying(text: string): Promise<number> {
  const listening = createServer((socket) => {
    socket.on("error", silent);
    socket.end(text);
  });
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void listening.close());
  return (listening.address() as { port: number }).port;
}

/** All messages from an error down to its first cause. */
function causes(error: unknown): string[] {
  const messages: string[] = [];
  for (let one = error; one instanceof Error; one = one.cause) messages.push(one.message);
  return messages.slice(1);
}

async function expectTrouble(lock: Lock, message: RegExp, cause: RegExp | null = message): Promise<Error> {
  const error = (await failure(lock.tryLock())) as Error;
  expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
  expect(error.message).toMatch(message);
  if (cause) expect(causes(error).join("\n")).toMatch(cause);
  return error;
}

const REFUSED = /Redis at 127\.0\.0\.1:1\b.*status \w+: connect ECONNREFUSED 127\.0\.0\.1:1/;

const nowhere = (options: Omit<RedisOptions, "replyMapping"> = {}) =>
  new Redis({ host: "127.0.0.1", port: 1, ...options });

describe("an error of a Redis that cannot be reached", () => {
  it.each<[string, (lock: Lock) => Promise<unknown>]>([
    ["tryLock", (lock) => lock.tryLock()],
    ["tryLock with a wait", (lock) => lock.tryLock(700)],
    ["lock", (lock) => lock.lock()],
    ["withLock", (lock) => lock.withLock(silent)],
    ["inspect", (lock) => lock.inspect()],
    ["isLocked", (lock) => lock.isLocked()],
    ["forceUnlock", (lock) => lock.forceUnlock()],
  ])("names host, port, status and last error: %s", async (_, call) => {
    const error = (await failure(call(lockOn(nowhere(), { replyTimeout: 600 })))) as Error;
    expect(error).toMatchObject({ code: "LOCK_UNAVAILABLE" });
    expect(error.message).toMatch(REFUSED);
    expect(causes(error).at(-1)).toBe("connect ECONNREFUSED 127.0.0.1:1");
  });

  it("names them too if ioredis gives the command up, or never takes it", async () => {
    await expectTrouble(lockOn(nowhere({ maxRetriesPerRequest: 0 })), REFUSED, /connect ECONNREFUSED/);
    const eager = nowhere({ enableOfflineQueue: false });
    const lock = lockOn(eager);
    await until(() => eager.status === "reconnecting");
    await expectTrouble(lock, REFUSED, /connect ECONNREFUSED/);
    const once = lockOn(nowhere({ retryStrategy: () => null }));
    await expectTrouble(
      once,
      /connection to Redis at 127\.0\.0\.1:1 was closed for good \(status end: connect ECONNREFUSED/,
      /ECONNREFUSED/,
    );
  });

  it("names each server for a multi-lock and for several masters", async () => {
    const redis = nowhere();
    redis.on("error", silent);
    const locks = createLockClient(redis);
    const masters = [1, 2, 3].map((port) => nowhere({ port }));
    for (const master of masters) master.on("error", silent);
    const quorum = createQuorumClient(masters);
    onTestFinished(async () => {
      await locks.close();
      await quorum.close();
      for (const one of [redis, ...masters]) one.disconnect();
    });
    const error = (await failure(locks.multiLock([freshName(), freshName()]).tryLock())) as Error;
    expect(error.message).toMatch(REFUSED);
    for (const call of [(lock: Lock) => lock.tryLock(), (lock: Lock) => lock.inspect()]) {
      const { message } = (await failure(call(quorum.lock(freshName())))) as Error;
      for (const node of [1, 2, 3])
        expect(message).toMatch(new RegExp(`node ${node}: .*127\\.0\\.0\\.1:${node}, status .*ECONNREFUSED`));
    }
  });

  it("reports an unknown host name, and a host with two addresses", async () => {
    await expectTrouble(
      lockOn(new Redis({ host: "no.such.host.invalid" })),
      /no\.such\.host\.invalid:6379.*(ENOTFOUND|EAI_AGAIN)/,
    );
    await expectTrouble(
      lockOn(new Redis({ host: "localhost", port: 1 })),
      /localhost:1 \(status .*ECONNREFUSED/,
    );
  });

  it("reports TLS to a port without TLS", async () => {
    const { port } = await server();
    await expectTrouble(lockOn(new Redis({ port, tls: {} })), /TLS/);
  });

  it("reports a Cluster of a single server, and one that does not exist", async () => {
    const { port } = await server();
    const cluster = new Cluster([{ host: "127.0.0.1", port }]);
    const wrong = lockOn(cluster);
    await new Promise((resolve) => cluster.once("node error", resolve));
    await expectTrouble(
      wrong,
      /no Cluster: connect to it as to a single server/,
      /cluster support disabled|Failed to refresh/,
    );
    const gone = lockOn(new Cluster(["redis://bob:hunter2@127.0.0.1:1"]));
    const error = await expectTrouble(gone, /Redis Cluster of 127\.0\.0\.1:1 \(status/, null);
    expect(inspect(error, { depth: 9 })).not.toMatch(/bob|hunter2/);
  });

  it("reports a server that refuses connections: full, or in protected mode", async () => {
    const denied = "DENIED Redis is running in protected mode because protected mode is enabled";
    await expectTrouble(
      lockOn(new Redis(await saying(`-${denied}. 1) Just disable it\r\n`))),
      /protected mode/,
    );
    await expectTrouble(
      lockOn(new Redis(await saying("-ERR max number of clients reached\r\n"))),
      /max number of clients/,
    );
  });

  it("reports NOAUTH and WRONGPASS without the user and the password", async () => {
    const { port } = await server("--requirepass", "hunter2");
    await expectTrouble(lockOn(new Redis(port, "127.0.0.1")), /NOAUTH.*127\.0\.0\.1/);
    for (const options of [{ username: "bob", password: "hunter3" }, { password: "hunter3" }]) {
      const error = await expectTrouble(
        lockOn(new Redis({ host: "127.0.0.1", port, ...options })),
        /WRONGPASS.*127\.0\.0\.1/,
      );
      expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/bob|hunter/);
    }
  });

  it("says what to do about a connection that a command blocks", async () => {
    const { port } = await server();
    const redis = new Redis(port);
    redis.blpop("nothing", 0).catch(silent);
    await expectTrouble(
      lockOn(redis),
      /a command such as BLPOP blocks the connection: then use \{ connection: "own" \}\.?$/,
    );
  });
});

describe("errors of the caller's connection", () => {
  /** How often ioredis, or the client in its place, printed an error. */
  async function printed(listen: (redis: Redis) => void, closes = false): Promise<number> {
    const print = vi.spyOn(console, "error").mockImplementation(silent);
    const redis = nowhere({ retryStrategy: () => null, lazyConnect: true });
    const locks = createLockClient(redis);
    listen(redis);
    if (closes) await locks.close();
    await redis.connect().catch(silent);
    await until(() => redis.status === "end");
    const count = print.mock.calls.filter(([text]) => text === "[ioredis] Unhandled error event:").length;
    print.mockRestore();
    await locks.close();
    return count;
  }

  it("are printed once if there is no listener, as without a client, and not if there is one", async () => {
    expect(await printed(silent)).toBe(1);
    expect(await printed(silent, true)).toBe(1);
    expect(await printed((redis) => redis.on("error", silent))).toBe(0);
    expect(await printed((redis) => void createLockClient(redis))).toBe(1);
  });

  it("are printed for a connection other than ioredis, without the words of ioredis", async () => {
    const print = vi.spyOn(console, "error").mockImplementation(silent);
    const redis = Object.assign(new EventEmitter(), {
      status: "ready",
      options: {},
      ...Object.fromEntries(
        ["evalsha", "eval", "callBuffer", "sendCommand", "duplicate", "disconnect"].map((method) => [
          method,
          silent,
        ]),
      ),
    });
    const locks = createLockClient(redis as unknown as Redis);
    redis.emit("error", new Error("theirs"));
    expect(print.mock.calls.map(([text]) => text)).toEqual(["[holdfast] Unhandled error event:"]);
    print.mockRestore();
    await locks.close();
  });
});
