import { afterEach, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { serverIs } from "../support/server-version.ts";

// Each command with exactly the rights that docs/operating.md names for it: nothing is refused, not even what nobody would see.

const own = new OwnServer();
afterEach(() => Cli.endAll());

const { handoff, list, counted, once, election } = rights;
const and = (rules: readonly string[], more: readonly string[]) => [
  ...rules,
  ...more.filter((rule) => !/^(reset|-)/.test(rule)),
];

describe.skipIf(!serverIs("7.0"))("a user with the documented rights", () => {
  it.each<[string, string, readonly string[]]>([
    ["run", "run NAME OTHER -- true", handoff],
    ["run --shared", "run --shared NAME -- true", counted],
    ["run --slots", "run --slots 2 NAME -- true", counted],
    ["run --every", "run --every 1h NAME -- true", once],
    ["elect", "elect NAME -- true", election],
    ["ask", "ask NAME", handoff],
    ["ask --kind readWrite", "ask --kind readWrite NAME", counted],
    ["ls", "ls", list],
    ["top", "top --json", list],
    ["inspect", "inspect HELD", list],
    ["break", "break --yes HELD", and(handoff, list)],
    ["doctor", "doctor", and(handoff, list)],
  ])("may use %s", async (_, line, rules) => {
    const { locks } = await own.parties.join({ url: own.url });
    const held = await locks.lock(freshName()).lock();
    const user = ["reset", "on", ">change-me", ...and(rules, rights.commandLine)];
    await own.admin.call("ACL", "SETUSER", "holdfast", ...user);
    await own.admin.call("ACL", "LOG", "RESET");
    const names: Record<string, string> = { NAME: freshName(), OTHER: freshName(), HELD: held.name };
    const args = line.split(" ").map((word) => names[word] ?? word);
    const url = own.url.replace("://", "://holdfast:change-me@");
    const { code, stdout, stderr } = await new Cli(url, args).finished;
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.not.stringMatching(/✘|^\?/m) });
    expect(await own.admin.call("ACL", "LOG")).toEqual([]);
    await held.unlock().catch(() => {}); // broken
  });
});
