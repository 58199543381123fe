import { describe } from "vitest";
import type { Fault } from "./faults/fault.ts";
import { finds, type Ill } from "./planted.ts";

/** All workers but one are stopped, whatever they hold, and then nodes forget it. */
const forgotten = (faults: readonly Fault[]): Fault => ({
  kind: "crash and restart of a majority beside one worker",
  weight: 1,
  async run(field, begin) {
    const crash = faults.find(({ kind }) => kind === "crash and restart of a majority");
    const [, ...others] = field.fleet.members;
    for (const other of others) other.suspend();
    await crash?.run(field, begin);
    for (const other of others) other.resume();
  },
});

const ills: readonly Ill[] = [
  { plant: "half is enough", needs: { seconds: 3, only: [] }, rules: ["one holder"] },
  {
    plant: "young nodes vote",
    needs: { seconds: 4, faults: ({ faults }) => [forgotten(faults)] },
    rules: ["one holder"],
  },
];

describe("the checker finds a planted bug of a quorum", () => {
  finds("quorum", ills);
});
