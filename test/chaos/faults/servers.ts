import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { pauseClients } from "../../support/server-pauses.ts";
import type { Fault } from "./fault.ts";

/** What can happen to any server that keeps its data. `admin` names the one that it happens to. */
export function serverFaults(admin: () => Promise<Redis>): readonly Fault[] {
  const configured = async (setting: string, ill: string, sound: string, ms: number): Promise<void> => {
    const redis = await admin();
    await redis.config("SET", setting, ill);
    await delay(ms);
    await redis.config("SET", setting, sound);
  };
  return [
    {
      kind: "pause clients",
      weight: 2,
      async run({ dice }, begin) {
        const ms = dice.int(50, 2_500);
        const mode = dice.pick(["ALL", "WRITE"] as const);
        begin(`${mode} for ${ms} ms`);
        await pauseClients(await admin(), ms, mode);
        await delay(ms);
      },
    },
    {
      kind: "full memory",
      weight: 1,
      async run({ dice }, begin) {
        const ms = dice.int(200, 3_000);
        begin(`for ${ms} ms`);
        await configured("maxmemory", "1", "0", ms);
      },
    },
    {
      kind: "no replicas",
      weight: 1,
      async run({ dice }, begin) {
        const ms = dice.int(200, 2_000);
        begin(`writes are refused for ${ms} ms`);
        await configured("min-replicas-to-write", "9", "0", ms);
      },
    },
    {
      kind: "forget the scripts",
      weight: 1,
      async run(_, begin) {
        begin("");
        await (await admin()).script("FLUSH", "SYNC");
      },
    },
    {
      kind: "hang up on clients",
      weight: 2,
      async run({ dice }, begin) {
        const type = dice.pick(["normal", "pubsub"]);
        begin(type);
        await (await admin()).call("CLIENT", "KILL", "TYPE", type);
      },
    },
  ];
}
