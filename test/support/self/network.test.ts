import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { launchServer } from "../../../tools/redis/index.ts";
import { DelayLine } from "../delay-line.ts";
import { OwnServer } from "../own-server.ts";
import { named, nth, TcpProxy } from "../tcp-proxy.ts";
import { until } from "../until.ts";

// The proxy's effects on whole connections; proxy.test.ts tests its faults of single commands.

const own = new OwnServer();
let proxy: TcpProxy;
let redis: Redis;
let reader: Redis;
let heard: string[];

beforeEach(async () => {
  await own.admin.flushall();
  proxy = await TcpProxy.start(own.server);
  redis = connect();
  reader = connect();
  heard = await listen(reader);
});
afterEach(() => proxy.stop());

function connect(): Redis {
  const connection = new Redis(proxy.url, { retryStrategy: () => 1 });
  connection.on("error", () => {});
  onTestFinished(() => connection.disconnect());
  return connection;
}

async function listen(connection: Redis): Promise<string[]> {
  const messages: string[] = [];
  connection.on("message", (_, message) => messages.push(message));
  await connection.subscribe("news");
  return messages;
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return performance.now() - start;
};
/** Enough round trips past the proxy for any message that passes it at all. */
const meanwhile = async (): Promise<void> => {
  for (let n = 0; n < 30; n++) await own.admin.ping();
};

describe("delay", () => {
  it("delays both directions, and ends", async () => {
    await redis.ping();
    proxy.delay(60);
    expect(await timed(() => redis.ping())).toBeGreaterThanOrEqual(119);
    expect(await timed(() => connect().ping())).toBeGreaterThanOrEqual(119); // a later connection
    proxy.delay(0);
    await until(async () => (await timed(() => redis.ping())) < 100, { what: "the end of the delay" });
  });

  it("delays commands to Redis, or only the answers to the client", async () => {
    await redis.ping();
    proxy.delay(600, { direction: "to server" });
    const late = redis.incr("n");
    await meanwhile();
    expect(await own.admin.get("n")).toBeNull();
    expect(await late).toBe(1);

    proxy.delay(600, { direction: "to client" });
    let isAnswered = false;
    const answered = redis.incr("n").then(() => {
      isAnswered = true;
    });
    await until(async () => (await own.admin.get("n")) === "2");
    expect(isAnswered).toBe(false);
    await answered;
  });

  it("delays messages alone, in order", async () => {
    await redis.ping();
    proxy.delay(600, { which: "subscribers" });
    await redis.publish("news", "1");
    proxy.delay(1, { which: "subscribers" });
    await redis.publish("news", "2");
    expect(heard).toEqual([]); // both commands were quicker than the first message
    await until(() => heard.length === 2);
    expect(heard).toEqual(["1", "2"]);
  });

  it("outlasts the client, whose commands arrive", async () => {
    await redis.ping();
    proxy.delay(600);
    redis.incr("n").catch(() => {});
    await new Promise(setImmediate); // ioredis has written it
    redis.disconnect();
    expect(await own.admin.exists("n")).toBe(0);
    await until(() => own.admin.exists("n"), { what: "the late INCR" });
  });
});

describe("partition", () => {
  it("cuts subscribers off from Redis, later ones too, while commands get through", async () => {
    proxy.partition("subscribers");
    const later = connect();
    let isSubscribed = false;
    const hearing = listen(later).then((messages) => {
      isSubscribed = true;
      return messages;
    });
    expect(await redis.publish("news", "1")).toBe(1); // the old one is still counted
    await meanwhile();
    expect([heard, isSubscribed, await own.admin.pubsub("NUMSUB", "news")]).toEqual([[], false, ["news", 1]]);
    proxy.thaw();
    await until(() => heard.includes("1"));
    const hears = await hearing;
    await redis.publish("news", "2");
    await until(() => hears.includes("2") && heard.includes("2"));
  });

  it("cuts commands off from Redis, later ones too, while messages get through", async () => {
    await redis.ping();
    proxy.partition("commands");
    const late = Promise.all([redis.incr("n"), connect().incr("n")]);
    const laterNews = await listen(connect());
    await own.admin.publish("news", "1");
    await until(() => heard.includes("1") && laterNews.includes("1"));
    await meanwhile();
    expect(await own.admin.exists("n")).toBe(0);
    proxy.thaw();
    expect((await late).sort()).toEqual([1, 2]);
  });

  it("keeps the order of what was pipelined after the first held command", async () => {
    await redis.ping();
    const fresh = connect();
    proxy.partition("commands");
    const all = Promise.all([fresh.rpush("l", "1"), fresh.rpush("l", "2"), fresh.rpush("l", "3")]);
    await until(() => fresh.status === "ready");
    const fourth = fresh.rpush("l", "4");
    await meanwhile();
    proxy.thaw();
    await Promise.all([all, fourth]);
    expect(await own.admin.lrange("l", 0, -1)).toEqual(["1", "2", "3", "4"]);
  });
});

describe("stall", () => {
  it("freezes the connection that sends the command, from that command on, and no other", async () => {
    await redis.ping();
    const other = connect();
    const stalled = proxy.stall(named("incr"));
    const late = Promise.all([redis.incr("n"), redis.incr("n")]);
    await stalled;
    expect(await other.incr("n")).toBe(1);
    await meanwhile();
    expect(await own.admin.get("n")).toBe("1");
    proxy.thaw();
    expect(await late).toEqual([2, 3]);
  });
});

describe("strand", () => {
  it("delivers an old connection's bytes after the client has gone on without it", async () => {
    await redis.ping();
    proxy.freeze("commands");
    const first = redis.incr("n");
    redis.rpush("l", "1").catch(() => {});
    await new Promise(setImmediate);
    const old = proxy.strand("commands");
    expect(await first).toBe(1); // sent again, on a new connection
    await redis.set("n", "10");
    expect(await old.deliver()).toBe(1);
    expect([await own.admin.get("n"), await own.admin.lrange("l", 0, -1)]).toEqual(["11", ["1", "1"]]);
  });

  it("reports that Redis is gone", async () => {
    const doomed = await launchServer();
    const other = await TcpProxy.start(doomed);
    const client = new Redis(other.url, { retryStrategy: () => null });
    client.on("error", () => {});
    await client.ping();
    other.freeze();
    client.incr("n").catch(() => {});
    await new Promise(setImmediate);
    const old = other.strand();
    await doomed.stop();
    await expect(old.deliver()).rejects.toThrow("Redis closed");
    client.disconnect();
    await other.stop();
  });
});

it("nth chooses the n-th command that matches", async () => {
  const dropped = proxy.dropReply(nth(3, named("incr")));
  const counts = [await redis.incr("n"), await redis.incr("n"), await redis.incr("n"), await redis.incr("n")];
  expect(counts).toEqual([1, 2, 4, 5]);
  await dropped;
});

it("DelayLine: cleared entries do not happen, and later ones do", async () => {
  const line = new DelayLine();
  const happened: number[] = [];
  line.push(() => happened.push(1), 5);
  line.clear();
  line.push(() => happened.push(2), 20);
  line.push(() => happened.push(3), 0);
  expect(happened).toEqual([]);
  await until(() => happened.length === 2);
  line.push(() => happened.push(4), 0);
  expect(happened).toEqual([2, 3, 4]);
});
