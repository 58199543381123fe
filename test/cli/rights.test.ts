import { afterEach, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { serverIs } from "../support/server-version.ts";

// Each command with exactly the rights that docs/operating.md names for it: nothing is refused, not
// even what nobody would see.

const own = new OwnServer();
afterEach(() => Cli.endAll());

const { handoff, list, counted, once, election, page } = rights;
const and = (rules: readonly string[], more: readonly string[]) => [
  ...rules,
  ...more.filter((rule) => !/^(reset|-)/.test(rule)),
];

/** The address for a user with these rights, and those of every command. */
async function as(rules: readonly string[]): Promise<string> {
  const user = ["reset", "on", ">change-me", ...and(rules, rights.commandLine)];
  await own.admin.call("ACL", "SETUSER", "holdfast", ...user);
  await own.admin.call("ACL", "LOG", "RESET");
  return own.url.replace("://", "://holdfast:change-me@");
}

describe.skipIf(!serverIs("7.0"))("a user with the documented rights", () => {
  it.each<[string, string, readonly string[]]>([
    ["run", "run NAME OTHER -- true", handoff],
    ["run --shared", "run --shared NAME -- true", counted],
    ["run --slots", "run --slots 2 NAME -- true", counted],
    ["run --every", "run --every 1h NAME -- true", once],
    ["elect", "elect NAME -- true", election],
    ["recall", "recall NAME", handoff],
    ["recall --kind readWrite", "recall --kind readWrite NAME", counted],
    ["ls", "ls", list],
    ["top", "top --json", list],
    ["inspect", "inspect HELD", list],
    ["break", "break --yes HELD", and(handoff, list)],
    ["doctor", "doctor", and(handoff, list)],
  ])("may use %s", async (_, line, rules) => {
    const { locks } = await own.parties.join({ url: own.url });
    const held = await locks.lock(freshName()).lock();
    const url = await as(rules);
    const names: Record<string, string> = { NAME: freshName(), OTHER: freshName(), HELD: held.name };
    const args = line.split(" ").map((word) => names[word] ?? word);
    const { code, stdout, stderr } = await new Cli(url, args).finished;
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.not.stringMatching(/✘|^\?/m) });
    expect(await own.admin.call("ACL", "LOG")).toEqual([]);
    await held.unlock().catch(() => {}); // broken
  });

  it.each<[string, readonly string[], readonly string[], object]>([
    ["ui", [], page, { status: 403 }],
    ["ui --actions", ["--actions"], and(handoff, page), { status: 200, done: true }],
  ])("may use %s", async (_, flags, rules, broken) => {
    const { locks } = await own.parties.join({ url: own.url });
    const held = await locks.lock(freshName()).lock();
    const cli = new Cli(await as(rules), ["ui", "--port", "0", "--json", ...flags]);
    await cli.says("\n");
    const { url: opened } = JSON.parse(cli.stdout) as { url: string };
    // As a browser does: its word becomes a cookie.
    const { origin } = new URL(opened);
    const entered = await fetch(opened, { redirect: "manual" });
    const cookie = (entered.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    for (const view of ["now", "blocked", "wait-times"]) {
      const shown = (await (
        await fetch(`${origin}/?part=state&view=${view}`, { headers: { cookie } })
      ).json()) as object;
      expect(shown).toMatchObject({ trouble: null, unread: null, deadlocks: 0 });
      if (view === "now") expect(JSON.stringify(shown)).toContain(held.name);
    }
    const headers = {
      "content-type": "application/json",
      "x-holdfast": "page",
      "sec-fetch-site": "same-origin",
      origin,
      cookie,
    };
    const holder = (await locks.lock(held.name).inspect()).holder?.id;
    const wanted = { action: "break", kind: "lock", name: held.name, holder, mode: null };
    const answer = await fetch(`${origin}/?part=act`, {
      method: "POST",
      headers,
      body: JSON.stringify(wanted),
    });
    const done = answer.ok ? ((await answer.json()) as object) : {};
    expect({ status: answer.status, ...done }).toMatchObject(broken);
    cli.kill("SIGTERM");
    expect(await cli.finished).toMatchObject({ code: 143, stderr: "" });
    expect(await own.admin.call("ACL", "LOG")).toEqual([]);
    await held.unlock().catch(() => {}); // broken
  });
});
