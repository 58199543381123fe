import { describe, expect, it } from "vitest";
import { type Exemption, exemptionOf, idlePatterns, testsIn } from "../exemption.ts";

const EXEMPTIONS: readonly Exemption[] = [
  { theme: /^waiting$/, tests: [/^serves/, /^counts/], why: "it serves nobody" },
  { tests: [/twice$/], why: "once is enough" },
];

describe("an exemption", () => {
  it("applies to tests of its theme by their titles", () => {
    expect(exemptionOf(EXEMPTIONS, { theme: "waiting", title: "serves all" })).toBe("it serves nobody");
    expect(exemptionOf(EXEMPTIONS, { theme: "closing", title: "serves all" })).toBeUndefined();
    expect(exemptionOf(EXEMPTIONS, { theme: "closing", title: "ends twice" })).toBe("once is enough");
  });

  it("is idle by each pattern that matches no test", () => {
    const tests = [
      { theme: "waiting", title: "serves all" },
      { theme: "closing", title: "counts all" },
    ];
    expect(idlePatterns(EXEMPTIONS, tests)).toEqual(["/^waiting$/: /^counts/", "any theme: /twice$/"]);
  });

  it.skip("sees tests that do not run", () => {});

  it("is compared with all tests of a describe", ({ task }) => {
    const titles = testsIn(task.suite).map(({ theme, title }) => `${theme} ${title}`);
    expect(titles).toContain("an exemption sees tests that do not run");
    expect(titles).toHaveLength(4);
  });
});
