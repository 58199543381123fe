import { expect, it } from "vitest";
import { callgrindTotal, perfCount } from "../../../benchmarks/micro/counters.ts";

// What the benchmarks read from perf and valgrind.

it.each([
  ["counted", "1234567,,instructions:u,1000,100.00,1.2,insn per cycle\n", 1_234_567],
  ["counted, after a warning", "Some events were limited\n42,,instructions:u,1000,100.00,,\n", 42],
  ["no counter in this processor", "<not supported>,,instructions:u,0,100.00,,\n", null],
  ["never on a core", "<not counted>,,instructions:u,0,0.00,,\n", null],
  ["not permitted", "Error:\nAccess to performance monitoring is limited.\n", null],
])("what perf says: %s", (_, output, count) => {
  expect(perfCount(output)).toBe(count);
});

it("the instructions of a valgrind dump are its total, and a dump without any is refused", () => {
  const dump = (total: string): string => `events: Ir\nfn=(1) call\n12 5\nsummary: 0\n${total}\n`;
  expect(callgrindTotal(dump("totals: 27429087"))).toBe(27_429_087);
  expect(() => callgrindTotal(dump("totals: 0"))).toThrow("no instructions");
  expect(() => callgrindTotal(dump(""))).toThrow("no instructions");
});
