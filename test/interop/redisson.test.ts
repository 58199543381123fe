import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { channelOf } from "../contract/java.ts";
import { freshName } from "../support/fixture.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { standalone } from "../support/servers/kinds.ts";
import type { Topology } from "../support/servers/topology.ts";
import { until } from "../support/until.ts";
import { type Kind, type Language, Side } from "./side.ts";

// A real Redisson and Holdfast share locks, on a single server and in Cluster. What one of them
// does, the other does too.

const KINDS = ["redissonLock", "redissonFencedLock"] as const;
const PAIRS: [Language, Language][] = [
  ["java", "node"],
  ["node", "java"],
];
/**
 * The lease of the sides that are to lose it. While they keep it, the machine may stand still for
 * two thirds of it.
 */
const SHORT = 3_000;
/**
 * How long a try waits that is to be in vain, in ms. Redisson must subscribe within that time, or
 * it throws: in Java it does not wait at all.
 */
const IN_VAIN = { java: 0, node: 50 };
const HAMMER = 6_000;

/** Why there is no Java here. */
const { INTEROP_OBSTACLE: obstacle } = process.env;
if (obstacle) it.skip(`skipped: ${obstacle}`, () => {});
const TOPOLOGIES = [
  ["standalone", standalone.launch],
  ["Cluster", () => RedisCluster.launch()],
] as const;

describe.each(obstacle ? [] : TOPOLOGIES)("on %s", (where, launch) => {
  let topology: Topology;
  let redis: Redis;
  const sides: Side[] = [];
  let long: Record<Language, Side>;

  async function start(language: Language, watchdog?: number): Promise<Side> {
    const side = await Side.start(language, topology.address, watchdog);
    sides.push(side);
    return side;
  }
  beforeAll(async () => {
    topology = await launch();
    redis = topology.connect() as Redis;
    const [java, node] = await Promise.all([start("java"), start("node")]);
    long = { java, node };
  });
  afterAll(async () => {
    await Promise.all(sides.map((side) => side.kill()));
    await topology?.stop();
  });

  /** The number of connections that hear of unlocks of this lock, as Redis sees them. */
  async function listeners(name: string): Promise<number> {
    const admin = await topology.adminOf(channelOf(name));
    const command = where === "Cluster" ? "SHARDNUMSUB" : "NUMSUB";
    const [, count] = (await admin.call("PUBSUB", command, channelOf(name))) as [string, number];
    return Number(count);
  }
  const untilListeners = (name: string, count: number) =>
    until(async () => (await listeners(name)) === count, { what: `${count} listeners` });

  it("all sides use one clock", async () => {
    for (const side of Object.values(long)) {
      const before = process.hrtime.bigint();
      const { began, ended } = await side.now();
      expect(before < began && began <= ended && ended < process.hrtime.bigint()).toBe(true);
    }
  });

  describe.each(KINDS)("%s", (kind: Kind) => {
    const isFenced = kind === "redissonFencedLock";
    let name: string;
    const thread = (side: Side, label = "main") => side.thread(label, kind, name);
    afterEach(async () => expect(await redis.exists(name)).toBe(0));

    describe.each(PAIRS)("%s holds, %s waits", (one, other) => {
      it("waits until the unlock, and is excluded before it", async () => {
        name = freshName(kind);
        const [holder, waiter] = [thread(long[one]), thread(long[other])];
        const { value: first } = await holder.lock();
        expect(await waiter.ask("tryLock", IN_VAIN[other], -1)).toBe("null");
        expect([await holder.ask("isLocked"), await waiter.ask("isLocked")]).toEqual(["true", "true"]);
        const waiting = waiter.lock();
        await untilListeners(name, 1);
        expect(await thread(long[other], "second").ask("tryLock", 0, -1)).toBe("null");
        const { began } = await holder.unlock();
        const { value: second, ended } = await waiting;
        expect(ended).toBeGreaterThan(began);
        expect([Number(first), Number(second)]).toEqual(isFenced ? [1, 2] : [0, 0]);
        if (isFenced) expect(await holder.ask("token")).toBe("2");
        await waiter.unlock();
        expect([await holder.ask("isLocked"), await waiter.ask("isLocked")]).toEqual(["false", "false"]);
      });

      it("is woken by the unlock", async ({ annotate }) => {
        name = freshName(kind);
        const [holder, waiter] = [thread(long[one]), thread(long[other])];
        const took: number[] = [];
        for (let round = 0; round < 15; round++) {
          await holder.lock();
          const waiting = waiter.lock();
          await untilListeners(name, 1);
          // From before the call of unlock() at one side until lock() has returned at the other, on
          // their common clock.
          const { began } = await holder.unlock();
          const { ended } = await waiting;
          took.push(Number(ended - began) / 1e6);
          await waiter.unlock();
          await untilListeners(name, 0);
        }
        took.sort((a, b) => a - b);
        const [median = 0, most = 0] = [took[7], took.at(-1)].map((ms = 0) => Math.round(ms * 10) / 10);
        await annotate(
          `${where}, ${kind}: ${one} unlocks, ${other} has it ${median} ms later (most ${most} ms)`,
        );
        // A process may have to wait for a processor; without the message all of them would wait for seconds.
        expect(took[0]).toBeLessThan(100);
        expect(median).toBeLessThan(1_000);
      });

      it("both read the same counts and the same TTL, and neither unlocks the other's lock", async () => {
        name = freshName(kind);
        const [holder, reader] = [thread(long[one]), thread(long[other])];
        const seen: string[][] = [];
        const look = async () =>
          void seen.push([await holder.ask("counts"), await reader.ask("counts"), await holder.ask("held")]);
        for (let entry = 0; entry < 3; entry++) await holder.lock(20_000).then(look);
        const ttls = [await holder.ask("ttl"), await reader.ask("ttl")].map(Number);
        for (const ttl of ttls) {
          expect(ttl).toBeGreaterThan(15_000);
          expect(ttl).toBeLessThanOrEqual(20_000);
        }
        expect(await reader.ask("held")).toBe("false");
        if (other === "java") await expect(reader.unlock()).rejects.toThrow(/IllegalMonitorState/);
        for (let entry = 0; entry < 3; entry++) await holder.unlock().then(look);
        expect(seen.map(([own, others, held]) => [own === others, own, held])).toEqual([
          [true, "1", "true"],
          [true, "2", "true"],
          [true, "3", "true"],
          [true, "2", "true"],
          [true, "1", "true"],
          [true, "", "false"],
        ]);
        expect([await holder.ask("ttl"), await reader.ask("ttl")]).toEqual(["-2", "-2"]);
      });

      it("force-releases it, and the waiter has it", async () => {
        name = freshName(kind);
        const [holder, waiter, forcer] = [
          thread(long[one]),
          thread(long[other]),
          thread(long[other], "force"),
        ];
        await holder.lock();
        const waiting = waiter.lock();
        await untilListeners(name, 1);
        expect(await forcer.ask("forceUnlock")).toBe("true");
        await waiting;
        await expect(holder.unlock()).rejects.toThrow(/IllegalMonitorState|LockLostError/);
        expect(await waiter.ask("held")).toBe("true");
        await waiter.unlock();
        expect(await forcer.ask("forceUnlock")).toBe("false");
      });
    });
  });

  it("each side's watchdog renews its lock for three leases, and a killed side's lock goes to the other", async () => {
    const short = await Promise.all(PAIRS.map(([one]) => start(one, SHORT)));
    const cases = KINDS.flatMap((kind) =>
      PAIRS.map(([, other], at) => ({
        kind,
        holder: short[at] as Side,
        other: long[other],
        name: freshName(kind),
      })),
    );
    const play = async ({ kind, holder, other, name }: (typeof cases)[0]): Promise<() => Promise<void>> => {
      const held = holder.thread(name, kind, name);
      const { ended } = await held.lock();
      const tries = other.thread(name, kind, name);
      while (process.hrtime.bigint() - ended < 3 * SHORT * 1e6) {
        expect(await tries.ask("tryLock", IN_VAIN[other.language], -1)).toBe("null");
        await delay(50);
      }
      expect([await held.ask("held"), Number(await tries.ask("ttl")) <= SHORT]).toEqual(["true", true]);
      const waiting = tries.lock();
      await untilListeners(name, 1);
      return async () => {
        const left = await redis.pttl(name);
        const killed = process.hrtime.bigint();
        const { ended } = await waiting;
        const took = Number(ended - killed) / 1e6;
        expect(took).toBeGreaterThan(left - 50); // Redis rounds, and the kill was a little earlier
        expect(took).toBeLessThan(3 * SHORT + 3_000);
        await tries.unlock();
      };
    };
    const orphans = await Promise.all(cases.map(play));
    await Promise.all(short.map((side) => side.kill()));
    await Promise.all(orphans.map((expectTaken) => expectTaken()));
    for (const { name } of cases) expect(await redis.exists(name)).toBe(0);
  }, 120_000);

  it("two processes of each side hammer one lock of each kind: no turns overlap, all get their turns", async ({
    annotate,
  }) => {
    const crew = { java: long.java, java2: await start("java"), node: long.node, node2: await start("node") };
    const hammers = KINDS.flatMap((kind) => {
      const name = freshName(kind);
      const witness = `${name}:witness`;
      const counts = Object.entries(crew).map(async ([who, side]) => {
        const visits = await side.thread(name, kind, name).ask("hammer", witness, who, 2, HAMMER);
        return [who, visits] as const;
      });
      return [{ kind, witness, counts: Promise.all(counts) }];
    });
    for (const { kind, witness, counts } of hammers) {
      const visits = Object.fromEntries(await counts);
      const { token, ...seen } = await redis.hgetall(witness);
      await annotate(`${where}, ${kind}, ${HAMMER / 1_000} s: ${JSON.stringify(visits)}`);
      expect(seen).toEqual({ inside: "0", ...visits }); // no overlaps, nothing backwards
      for (const count of Object.values(visits)) expect(Number(count)).toBeGreaterThan(20);
      const sum = Object.values(visits).reduce((sum, count) => sum + Number(count), 0);
      expect(token).toBe(kind === "redissonFencedLock" ? `${sum}` : undefined);
      await redis.del(witness);
    }
  }, 120_000);
});
