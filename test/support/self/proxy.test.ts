import { randomBytes } from "node:crypto";
import { Redis as Redis6 } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { countCommands } from "../command-count.ts";
import { activeResources, keysWithoutTtl, trackUnhandled } from "../leaks.ts";
import { OwnServer } from "../own-server.ts";
import { ReplyPairing } from "../reply-pairing.ts";
import { decodeCommand, FrameReader } from "../resp.ts";
import { named, TcpProxy } from "../tcp-proxy.ts";
import { until } from "../until.ts";

const own = new OwnServer();
let proxy: TcpProxy;

beforeEach(async () => {
  await own.admin.flushall();
  proxy = await TcpProxy.start(own.server);
});
afterEach(() => proxy.stop());

function connect(options: { protocol?: 2 | 3; replyMapping?: "legacy" | "resp3" } = {}): Redis6 {
  const redis = new Redis6(proxy.url, { retryStrategy: () => 1, ...options });
  redis.on("error", () => {}); // a refused connection
  onTestFinished(() => redis.disconnect());
  return redis;
}

function connect5(): Redis6 {
  const redis = new Redis5(proxy.url, { retryStrategy: () => 1 });
  redis.on("error", () => {});
  onTestFinished(() => redis.disconnect());
  return redis as unknown as Redis6; // the methods used here are the same
}

const clients = [
  ["ioredis 6, RESP3", () => connect()],
  ["ioredis 6, RESP2", () => connect({ protocol: 2 })],
  ["ioredis 5, RESP2", connect5],
] as const;

describe.each(clients)("TcpProxy with %s", (_, open) => {
  it("forwards a long pipeline of binary values", async () => {
    const redis = open();
    const values = Array.from({ length: 1_000 }, (_, n) => randomBytes(n));
    const pipeline = redis.pipeline();
    for (const [n, value] of values.entries()) pipeline.setBuffer(`k${n}`, value, "GET").getBuffer(`k${n}`);
    const results = (await pipeline.exec()) ?? [];
    const found = results.filter((_, n) => n % 2 === 1).map(([, value]) => value as Buffer);
    expect(found.length).toBe(values.length);
    expect(Buffer.concat(found).equals(Buffer.concat(values))).toBe(true);
  });

  it("dropReply: executed, reply lost, sent again", async () => {
    const redis = open();
    const dropped = proxy.dropReply(named("incr"));
    expect(await redis.incr("n")).toBe(2);
    expect(await dropped).toEqual(["incr", "n"]);
  });

  it("dropCommand: not executed, sent again", async () => {
    const redis = open();
    const dropped = proxy.dropCommand(([name, key]) => name === "incr" && key === "n");
    proxy.record();
    const results = await Promise.all([redis.incr("before"), redis.incr("n"), redis.incr("after")]);
    expect([...results, await dropped]).toEqual([1, 1, 1, ["incr", "n"]]);
    const sent = proxy.commands.map(({ command }) => command).filter(named("incr"));
    expect(sent.map(([, key]) => key)).toEqual(["before", "n", "n", "after"]); // no other one
  });

  it("holdCommand: sent again, and the first copy arrives late", async () => {
    const redis = open();
    const holding = proxy.holdCommand(named("incr"));
    expect(await redis.incr("n")).toBe(1);
    const held = await holding;
    expect(await own.admin.get("n")).toBe("1");
    await held.deliver();
    expect(await own.admin.get("n")).toBe("2");
    await expect(held.deliver()).rejects.toThrow("old connection");
  });

  it("copyCommand: answered at once, and executed once more from another connection", async () => {
    const redis = open();
    const copying = proxy.copyCommand(named("incr"));
    expect(await Promise.all([redis.incr("n"), redis.incr("n")])).toEqual([1, 2]);
    const copy = await copying;
    expect([copy.command, await own.admin.get("n")]).toEqual([["incr", "n"], "2"]);
    redis.disconnect();
    await copy.deliver();
    expect(await own.admin.get("n")).toBe("3");
  });

  it("forwards messages, and pairs replies on a subscribed connection", async () => {
    const redis = open();
    const messages: string[] = [];
    redis.on("message", (channel, message) => messages.push(`${channel} ${message}`));
    const lost = proxy.dropReply(named("subscribe"));
    await redis.subscribe("a", "b");
    expect(await lost).toEqual(["subscribe", "a", "b"]);
    expect(await own.admin.publish("b", "1")).toBe(1);
    await until(() => messages.includes("b 1"));
    expect([proxy.cut("commands"), proxy.cut("subscribers")]).toEqual([0, 1]);
    await until(async () => (await own.admin.publish("a", "2")) === 1, {
      what: "ioredis to subscribe again",
    });
    await until(() => messages.includes("a 2"));
    const dropped = proxy.dropReply(named("unsubscribe"));
    await redis.unsubscribe();
    expect(await dropped).toEqual(["unsubscribe"]);
    expect(await redis.incr("n")).toBe(1);
  });
});

describe("TcpProxy", () => {
  it("freeze: connections stay open and carry nothing until thaw", async () => {
    const redis = connect();
    await redis.ping();
    proxy.freeze();
    let isAnswered = false;
    const reply = redis.incr("n").finally(() => {
      isAnswered = true;
    });
    const late = connect().incr("n");
    for (let n = 0; n < 20; n++) await own.admin.ping(); // round trips past the proxy
    expect([isAnswered, await own.admin.exists("n"), redis.status]).toEqual([false, 0, "ready"]);
    proxy.thaw();
    expect((await Promise.all([reply, late])).sort()).toEqual([1, 2]);
  });

  it("freeze then client gone: its bytes arrive after thaw", async () => {
    const redis = connect();
    await redis.ping();
    proxy.record();
    proxy.freeze("commands");
    redis.incr("n").catch(() => {});
    await new Promise(setImmediate); // ioredis has written it
    redis.disconnect();
    expect(await connect().incr("other")).toBe(1); // only existing connections are frozen
    proxy.thaw();
    await until(async () => (await own.admin.get("n")) === "1", { what: "the late INCR" });
    expect(
      proxy.commands.filter(({ command }) => command[0] === "incr").map(({ connection }) => connection),
    ).toEqual([2, 1]);
  });

  it("refuse: new connections are closed at once", async () => {
    const redis = connect();
    await redis.ping();
    proxy.refuse(true);
    let refused = 0;
    redis.on("close", () => {
      refused += 1;
    });
    proxy.cut();
    await until(() => refused > 3);
    proxy.refuse(false);
    expect(await redis.incr("n")).toBe(1);
  });

  it("pairs a refused SUBSCRIBE and nested RESP3 replies", async () => {
    const redis = connect({ replyMapping: "resp3" });
    const sha = await redis.script("LOAD", "redis.setresp(3); return redis.call('HGETALL', KEYS[1])");
    await own.admin.hset("h", "field", "value");
    const dropped = proxy.dropReply(named("incr"));
    const [refused, map, , double, number] = await Promise.allSettled([
      redis.call("SUBSCRIBE"),
      redis.evalsha(String(sha), 1, "h"),
      redis.zadd("z", "1.5", "m"),
      redis.zscore("z", "m"),
      redis.incr("n"),
    ]);
    expect(refused.status).toBe("rejected");
    expect(map).toMatchObject({ value: { field: "value" } });
    expect(double).toMatchObject({ value: 1.5 });
    expect(number).toMatchObject({ value: 2 });
    await dropped;
  });
});

it("FrameReader finds the same frames wherever the stream is cut", () => {
  const frames = [
    "*2\r\n$4\r\nECHO\r\n$3\r\n\r\n\xff\r\n",
    "%1\r\n+a\r\n*2\r\n~1\r\n:1\r\n_\r\n",
    "*-1\r\n",
    "$-1\r\n",
    "|1\r\n+ttl\r\n:5\r\n#t\r\n",
    ",1.5\r\n",
    "=5\r\ntxt:x\r\n",
    "!3\r\nERR\r\n",
    ">2\r\n+message\r\n*0\r\n",
    "PING inline\r\n",
  ];
  const stream = Buffer.from(frames.join(""), "latin1");
  for (let cut = 0; cut < stream.length; cut++) {
    const reader = new FrameReader();
    const found = [...reader.read(stream.subarray(0, cut)), ...reader.read(stream.subarray(cut))];
    expect(found.map((frame) => frame.toString("latin1"))).toEqual(frames);
    expect(found[0] && decodeCommand(found[0])).toEqual(["echo", "\r\n\xff"]);
  }
});

describe("ReplyPairing", () => {
  const answers = (pairing: ReplyPairing, ...frames: string[]) =>
    frames.map((frame) => pairing.answeredBy(Buffer.from(frame))?.command[0]);
  const list = (type: "*" | ">", kind: string) =>
    `${type}3\r\n$${kind.length}\r\n${kind}\r\n$1\r\na\r\n:1\r\n`;

  it("awaits an acknowledgement for each channel, or one error for all", () => {
    const pairing = new ReplyPairing();
    for (const command of ["subscribe a b", "subscribe a b", "ping"]) pairing.sent(command.split(" "));
    const acknowledged = list("*", "subscribe");
    expect(
      answers(pairing, acknowledged, list("*", "message"), acknowledged, "-NOPERM\r\n", "+PONG\r\n"),
    ).toEqual(["subscribe", undefined, "subscribe", "subscribe", "ping"]);
    expect(pairing.isEmpty).toBe(true);
  });

  it("takes an array for a reply, never for a message, in RESP3", () => {
    const pairing = new ReplyPairing();
    for (const command of ["hello 3", "subscribe a", "lrange l 0 -1"]) pairing.sent(command.split(" "));
    expect(
      answers(pairing, "%0\r\n", list(">", "subscribe"), list(">", "message"), list("*", "message")),
    ).toEqual(["hello", "subscribe", undefined, "lrange"]);
  });
});

describe("countCommands", () => {
  it("counts what clients send, exactly", async () => {
    const redis = connect();
    await redis.ping();
    const count = await countCommands(own.admin);
    expect(await count.since()).toEqual({});
    const script = "return redis.call('INCR', KEYS[1])";
    await expect(redis.evalsha("0".repeat(40), 0)).rejects.toThrow("NOSCRIPT");
    await redis.eval(script, 1, "n");
    const sha = String(await redis.script("LOAD", script));
    for (let n = 0; n < 10; n++) await redis.evalsha(sha, 1, "n");
    await expect(redis.call("GET")).rejects.toThrow("number of arguments");
    await redis.subscribe("a");
    await redis.unsubscribe("a");
    const counts = await count.since();
    expect(counts).toMatchObject({ evalsha: 11, eval: 1, subscribe: 1, unsubscribe: 1 });
    expect(counts).toMatchObject({ get: 1, incr: 11 }); // one refused; others in scripts
    expect([await count.scripts(), await count.waiting()]).toEqual([12, 13]);
    expect(await count.since()).not.toHaveProperty("info");
  });
});

describe("until", () => {
  it("names what it waited for, also when the condition hangs", async () => {
    await expect(until(() => 0, { timeout: 20, what: "the end of days" })).rejects.toThrow("the end of days");
    await expect(until(() => new Promise(() => {}), { timeout: 20 })).rejects.toThrow("new Promise");
  });
});

describe("leaks", () => {
  it("sees warnings and unhandled rejections", async () => {
    const others = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
    process.removeAllListeners("unhandledRejection"); // the test runner's own would fail this run
    const tracker = trackUnhandled();
    try {
      await tracker.assertNone();
      void Promise.reject(new Error("nobody listens"));
      await expect(tracker.assertNone()).rejects.toThrow("nobody listens");
    } finally {
      tracker.stop();
      for (const listener of others) process.on("unhandledRejection", listener);
    }
  });

  it("counts open connections and finds keys without TTL", async () => {
    const { TCPSocketWrap: before = 0 } = activeResources();
    const redis = connect();
    await redis.set("for ever", "1");
    await redis.set("for a while", "1", "PX", 60_000);
    const { TCPSocketWrap: after = 0 } = activeResources();
    expect(after - before).toBe(3); // ours and the proxy's two
    expect(await keysWithoutTtl(redis, "for *")).toEqual(["for ever"]);
  });
});
