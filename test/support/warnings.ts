import { afterEach, expect } from "vitest";

// Before each test file. A warning of this package that a test provokes is its to catch, with a
// listener of its own, and to judge; one that nobody has asked for fails the test. Node prints none
// of these; it prints the others.

const unasked: string[] = [];
const printers = process.listeners("warning");

process.removeAllListeners("warning");
process.on("warning", (warning: Error & { code?: string }) => {
  if (warning.name !== "HoldfastWarning") for (const print of printers) print.call(process, warning);
  // These come whenever they like, the second one where the machine stands still: the test that
  // runs then is not to blame.
  else if (/was garbage collected/.test(warning.message) || warning.code === "LOCK_RECALLED_LATE") return;
  else if (process.listenerCount("warning") === 1) unasked.push(`${warning.code}: ${warning.message}`);
});

afterEach(() => {
  expect(unasked.splice(0), "warnings that no test has asked for").toEqual([]);
});
