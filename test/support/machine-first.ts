import type { TestProject } from "vitest/node";
import { describeMachine, isBusy, type Machine, measureMachine } from "../../tools/machine.ts";

const say = (line: string) => void process.stderr.write(`${line}\n`);
const BUSY =
  "Tests that wait for a time may fail here because of the machine: run them again when it is quiet.";

/**
 * Set by the first of the suites that run together: each of them has this setup, in its own module.
 */
const MARK = Symbol.for("holdfast.machine-first");

/**
 * Reports the machine's capacity in a line before the tests load it, and again after tests have
 * failed: so a reader of the failures knows whether the machine may be the cause.
 */
export async function setup({ vitest }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const ours = globalThis as { [MARK]?: true };
  if (ours[MARK]) return;
  ours[MARK] = true;
  const before = await measureMachine();
  say(beforeTests(before));
  return async () => {
    if (vitest.state.getCountOfFailedTests() > 0) say(afterFailures(before, await measureMachine()));
  };
}

export const beforeTests = (machine: Machine): string =>
  `Machine: ${describeMachine(machine)}.${isBusy(machine) ? ` Busy. ${BUSY}` : ""}`;

export function afterFailures(before: Machine, after: Machine): string {
  const is =
    isBusy(before) || isBusy(after)
      ? `Busy. ${BUSY}`
      : "It was quiet before and after them, so it is probably not why they failed.";
  return `Machine before the tests: ${describeMachine(before)}.\nMachine after the tests: ${describeMachine(after)}.\n${is}`;
}
