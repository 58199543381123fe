import { afterAll, afterEach, expect } from "vitest";

// Before each test file. A test that provokes a warning of this package must catch it with its own
// listener, and judge it; an unexpected one fails the test. Node prints none of these; it prints
// the others.

const unasked: string[] = [];
const printers = process.listeners("warning");

process.removeAllListeners("warning");
process.on("warning", judge);

function judge(warning: Error & { code?: string }): void {
  if (warning.name !== "HoldfastWarning") for (const print of printers) print.call(process, warning);
  // These come at any time, all but the first one if the machine is suspended: the test that runs
  // then did not cause it. The last one is a renewal of a lease that has less than a second left.
  else if (/was garbage collected/.test(warning.message) || warning.code === "LOCK_RECALLED_LATE") return;
  else if (/a renewal, .* did not answer within \d+ ms/.test(warning.message)) return;
  else if (process.listenerCount("warning") === 1) unasked.push(`${warning.code}: ${warning.message}`);
}

afterEach(() => {
  expect(unasked.splice(0), "warnings that no test has asked for").toEqual([]);
});

// The next file may run in this process.
afterAll(() => {
  process.off("warning", judge);
  for (const print of printers) process.on("warning", print);
});
