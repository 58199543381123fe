import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import config from "../../vitest.config.ts";

// vitest says nothing of a file that it does not find among others.

it("every test file that a suite names is there", () => {
  const { projects = [] } = config.test ?? {};
  const named = projects.flatMap((project) => {
    const { test } = project as { test: { include: string[] } };
    return test.include.filter((pattern) => !pattern.includes("*"));
  });
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((file) => !existsSync(file))).toEqual([]);
});
