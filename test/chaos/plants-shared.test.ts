import { setTimeout as delay } from "node:timers/promises";
import { describe } from "vitest";
import { openConnection } from "../support/servers/connection.ts";
import type { Match } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { KEY_PREFIX, PERMITS } from "./arenas/arena.ts";
import type { Fault } from "./faults/fault.ts";
import type { LockKind } from "./history/events.ts";
import type { Member } from "./member.ts";
import { finds, type Ill } from "./planted.ts";
import type { Taste } from "./worker/orders.ts";

/**
 * A worker that has what others want dies while so many of them wait, and stays away until what it had is over, and others
 * have had their turns.
 */
const deaths = (key: string, has: RegExp, waiting: number): Fault => ({
  kind: "kill a worker for long",
  weight: 1,
  async run({ fleet, wires }, begin) {
    const redis = openConnection(wires.address(0), { keyPrefix: KEY_PREFIX });
    const victim = async (): Promise<Member | undefined> => {
      if ((await redis.zcard(`${key}:queue`)) < waiting) return undefined;
      const holds = Object.entries(await redis.hgetall(key));
      const [hold = ""] = holds.find(([, text]) => has.test(text)) ?? [];
      const pid = Number(/:(\d+):[0-9a-f]{16}:/.exec(hold)?.[1]);
      return fleet.members.find((member) => member.pid === pid);
    };
    const one = await until(victim, { timeout: 60_000 });
    redis.disconnect();
    begin(one.by);
    await one.kill();
    await delay(3_000);
    await one.start();
  },
});

/** Stops a worker for longer than a grant by message may live. */
const longStop: Fault = {
  kind: "stop a worker for long",
  weight: 1,
  async run({ fleet, dice }, begin) {
    const victim = dice.pick(fleet.members);
    begin(victim.by);
    victim.suspend();
    await delay(3_500);
    victim.resume();
  },
};

/** The reply to a release that leaves a unit. The client sends it again. */
const lostShrink: Fault = {
  kind: "lose the reply to a shrink",
  weight: 1,
  async run({ wires }, begin) {
    begin("");
    const isShrink: Match = (command) =>
      command[0] === "evalsha" && command.length === 10 && command[8] === "1";
    await Promise.race([...wires.all().map((proxy) => proxy.dropReply(isShrink)), delay(4_000)]);
  },
};

/** Nobody tells the leader that it is none any more. */
const deposed: Fault = {
  kind: "delete the key of the leader",
  weight: 1,
  async run({ wires }, begin) {
    const redis = openConnection(wires.address(0), { keyPrefix: KEY_PREFIX });
    const key = "holdfast:election:{throne}";
    const before = await redis.get(key);
    // A term that has just begun, and lasts for long.
    const term = await until(async () => [await redis.get(key)].find((now) => now && now !== before));
    await delay(200); // it has proclaimed itself by then
    begin(`${term}`);
    await redis.del(key);
    redis.disconnect();
    await delay(1_800);
  },
};

const only = (names: Taste["names"] & object): Taste => ({ shared: 1, names });
const patient = { isPatient: true } as const;

const ills: readonly Ill[] = [
  {
    plant: "a reap that tells nobody",
    needs: {
      seconds: 5,
      drain: 1_000,
      faults: () => [deaths("holdfast:semaphore:{slots}", /^1p/, 1)],
      taste: { ...only(["slots"]), ...patient, particular: { units: PERMITS } },
      workers: 2,
      callers: 1,
    },
    rules: ["what fits is given"],
  },
  {
    plant: "a run that ends at the caller's own place",
    needs: {
      seconds: 5,
      drain: 1_000,
      faults: () => [deaths("holdfast:rw:{shared}", /^1w/, 16)],
      taste: {
        ...only(["shared"]),
        ...patient,
        kinds: [...Array<LockKind>(14).fill("readLock"), "writeLock"],
        particular: { fair: true, downgrade: false },
      },
      workers: 2,
      callers: 16,
    },
    rules: ["what fits is given"],
  },
  {
    plant: "a late shrink",
    needs: {
      seconds: 6,
      drain: 1_000,
      faults: () => [lostShrink],
      taste: { ...only(["shared"]), ...patient, kinds: ["readLock", "writeLock"] },
    },
    rules: ["one holder"],
    isJudged: true,
  },
  {
    plant: "a revived hold",
    needs: {
      seconds: 6,
      drain: 1_000,
      faults: () => [longStop],
      taste: { ...only(["slots"]), ...patient, particular: { units: PERMITS } },
    },
    rules: ["enough permits"],
    isJudged: true,
  },
  {
    plant: "a number that is never lowered",
    needs: { seconds: 4, only: [], taste: only(["slots"]) },
    rules: ["enough permits"],
  },
  {
    plant: "an observer that is shown the past",
    needs: { seconds: 6, only: [], taste: only(["throne"]), workers: 1, callers: 2 },
    rules: ["leaders in time"],
  },
  {
    plant: "a loss that no signal tells",
    needs: {
      seconds: 2,
      drain: 1_000,
      faults: () => [deposed],
      taste: { ...only(["throne"]), ...patient, particular: { leads: true } },
      workers: 2,
      callers: 1,
    },
    rules: ["signals tell losses"],
  },
  {
    plant: "a turn that ends with its run",
    needs: { seconds: 2, only: [], taste: only(["tick", "slot"]) },
    rules: ["once per interval"],
  },
];

describe("the checker finds a planted bug of what is shared", () => {
  finds("standalone", ills, true);
});
