import { setTimeout as delay } from "node:timers/promises";
import { describe } from "vitest";
import { present } from "../support/present.ts";
import type { Fault } from "./faults/fault.ts";
import { networkFaults } from "./faults/network.ts";
import { finds, type Ill } from "./planted.ts";

/** Stops one of some workers for longer than the shorter leases. */
const longStop = (who: number): Fault => ({
  kind: "stop a worker for long",
  weight: 1,
  async run({ fleet }, begin) {
    const victim = fleet.members[who];
    begin(`${victim?.by}`);
    victim?.suspend();
    await delay(2_000);
    victim?.resume();
  },
});

/** Of all that can happen to a connection, this alone. */
const twice = present(networkFaults.find(({ kind }) => kind === "execute a command twice"));

const ills: readonly Ill[] = [
  {
    plant: "grant unchecked",
    needs: { seconds: 3, only: [] },
    rules: ["one holder", "monotonic register"],
    isJudged: true,
  },
  { plant: "release unowned", needs: { seconds: 8, only: ["drop replies"] }, rules: ["one holder"] },
  {
    plant: "release unowned",
    needs: { seconds: 8, faults: () => [twice, twice, twice] },
    rules: ["one holder"],
  },
  {
    plant: "deadline late",
    needs: { seconds: 14, faults: () => [longStop(0), longStop(1), longStop(2)] },
    rules: ["one holder"],
  },
  {
    plant: "tokens counted",
    needs: { seconds: 5, only: ["crash and restart empty"] },
    rules: ["growing tokens"],
  },
  { plant: "kept after a recall", needs: { seconds: 10, only: [] }, rules: ["one holder"] },
  {
    plant: "no refusals",
    needs: { seconds: 8, only: ["no network", "stop the server"] },
    rules: ["answers in time"],
  },
];

describe("the checker finds a planted bug", () => {
  finds("standalone", ills);
});
