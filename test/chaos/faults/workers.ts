import { setTimeout as delay } from "node:timers/promises";
import type { Fault } from "./fault.ts";

/** What can happen to a process. */
export const workerFaults: readonly Fault[] = [
  {
    kind: "kill a worker",
    weight: 4,
    async run({ fleet, dice }, begin) {
      const victim = dice.pick(fleet.mortal);
      const how = dice.pick(["SIGKILL", "SIGKILL", "SIGTERM", "exit"] as const);
      begin(`${victim.by} by ${how}`);
      if (how === "exit") await victim.quit();
      else await victim.kill(how);
      await delay(dice.int(0, 1_500));
      await victim.start();
    },
  },
  {
    kind: "stop a worker",
    weight: 4,
    async run({ fleet, dice }, begin) {
      const victim = dice.pick(fleet.members);
      const ms = dice.pick([dice.int(20, 500), dice.int(500, 2_500), dice.int(2_500, 7_000)]);
      begin(`${victim.by} for ${ms} ms`);
      victim.suspend();
      await delay(ms);
      victim.resume();
    },
  },
  {
    kind: "block an event loop",
    weight: 3,
    async run({ fleet, dice }, begin) {
      const victim = dice.pick(fleet.members);
      const ms = dice.pick([dice.int(20, 300), dice.int(300, 4_000)]);
      begin(`${victim.by} for ${ms} ms`);
      victim.order({ do: "block", ms });
      await delay(ms);
    },
  },
  {
    kind: "close a client",
    weight: 1,
    async run({ fleet, dice }, begin) {
      const victim = dice.pick(fleet.mortal);
      const grace = dice.int(0, 800);
      begin(`${victim.by} with grace ${grace} ms`);
      await victim.close(grace);
      await victim.start();
    },
  },
  {
    kind: "reconnect",
    weight: 2,
    async run({ fleet, dice }, begin) {
      const victim = dice.pick(fleet.members);
      begin(victim.by);
      victim.order({ do: "reconnect" });
    },
  },
];
