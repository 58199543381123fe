import { afterEach, describe, expect, it } from "vitest";
import { Cli } from "../support/cli.ts";
import { rights } from "../support/documented-rights.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { serverIs } from "../support/server-version.ts";

// With the rights of docs/operating.md for `lock` and `list`, and no more.

const own = new OwnServer();
afterEach(() => Cli.endAll());

describe.skipIf(!serverIs("7.0"))("a user that may only use and list locks", () => {
  it.each([
    ["run", ["run", "NAME", "--", "true"]],
    ["ls", ["ls"]],
    ["inspect", ["inspect", "NAME"]],
    ["break", ["break", "--yes", "NAME"]],
    ["ask", ["ask", "NAME"]],
    ["doctor", ["doctor"]],
  ])("may use %s", async (_, args) => {
    const list = rights.list.filter((rule) => !/^(reset|-)/.test(rule));
    await own.admin.call("ACL", "SETUSER", "holdfast", "on", ">change-me", ...rights.handoff, ...list);
    const name = freshName();
    const url = own.url.replace("://", "://holdfast:change-me@");
    const { code, stdout, stderr } = await new Cli(
      url,
      args.map((one) => one.replace("NAME", name)),
    ).finished;
    expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.not.stringContaining("✘") });
  });
});
