import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { compiled } from "../support/compiled.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";

// A process whose locks are carried by node-redis ends when its own work does, and says what it
// could not write.

const own = new OwnServer();
const run = promisify(execFile);

const PROGRAM = compiled(`
  import { createLockClient } from "./src/index.ts";
  const [, , version, url, name, ending] = process.argv;
  const { createClient } = await (version === "5" ? import("redis5") : import("redis"));
  const client = createClient({ url });
  client.on("error", () => {});
  await client.connect();
  const locks = createLockClient(client, {
    connection: ending === "own" ? "own" : "shared",
    linger: ending === "cached" ? 1_000 : 0,
  });
  if (ending === "cached") {
    while (locks.stats().kept === 0) await (await locks.lock(name).lock()).unlock();
    process.exit();
  }
  const lease = await locks.lock(name).lock();
  // A call that waits opens the connection for messages.
  await locks.lock(name).lock({ wait: 20 }).catch(() => {});
  if (ending === "exit") {
    lease.unlock();
    process.exit();
  }
  await lease.unlock();
  if (ending === "close") await locks.close();
  await client.close();
  console.log("over");
`);

describe.each(["6", "5"])("node-redis %s", (version) => {
  it.each(["shared", "own", "close"])("the process ends with its client (%s)", async (ending) => {
    const { stdout } = await run(process.execPath, [PROGRAM, version, own.url, freshName(), ending], {
      timeout: 30_000,
    });
    expect(stdout).toBe("over\n");
  });

  it.each([
    ["right after an unlock: the lock stays until its lease ends", "exit", 30_000],
    ["with a cached lock: it stays for at most 3 s", "cached", 3_000],
  ])("process.exit() %s, and stderr says so", async (_, ending, most) => {
    const name = freshName();
    const { stderr } = await run(process.execPath, [PROGRAM, version, own.url, name, ending]);
    expect(stderr).toMatch(
      /^\[holdfast\] The process ended before Redis at 127\.0\.0\.1:\d+ took all commands/,
    );
    const left = await own.admin.pttl(`holdfast:{${name}}`);
    // The time of a cached lock may be over where the machine is busy.
    if (ending === "exit") expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(most);
  });
});
