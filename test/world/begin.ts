import { writeFileSync } from "node:fs";
import { afterAll } from "vitest";
import { makeTimeVirtual, story } from "./virtual-time.ts";

// Before a test file that runs in virtual time, and so before the modules that it tests.
makeTimeVirtual();

const { HOLDFAST_TRACE } = process.env;
if (HOLDFAST_TRACE !== undefined)
  afterAll(() => writeFileSync(HOLDFAST_TRACE, `${story.lines.join("\n")}\n`));
