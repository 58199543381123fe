import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { classpathOf } from "../../tools/build/maven.ts";
import { LINES } from "../recipes/programs/migrating/lines.ts";
import { freshName, testUrl } from "../support/fixture.ts";
import { PROJECT } from "./side.ts";

// The Redisson program of docs/migrating.md prints what its Holdfast program prints in test/recipes.

const { INTEROP_OBSTACLE: obstacle } = process.env;

/** What the shop prints, with its lock or without one. */
async function shop(how: "locked" | "bare"): Promise<string[]> {
  const args = [
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-cp",
    classpathOf(PROJECT),
    "holdfast.migrating.Shop",
  ];
  const { stdout } = await promisify(execFile)("java", [...args, testUrl(), freshName("shop"), how]);
  return stdout.trimEnd().split("\n");
}

it.skipIf(obstacle)(
  `Redisson's lock sells five shirts to eight customers${obstacle ? `: ${obstacle}` : ""}`,
  async () => {
    expect(await shop("locked")).toEqual(LINES);
  },
);

it.skipIf(obstacle)("without the lock the shop sells more than it has", async () => {
  expect(await shop("bare")).not.toEqual(LINES);
});
