import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createOwnUI } from "../ui/own-ui.ts";
import { count, flag, text } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT, ExitError, UsageError } from "./exit-codes.ts";
import { parentEnded } from "./parent.ts";
import { operator } from "./people.ts";
import { codeOf, Signals } from "./run/signals.ts";

const FLAGS = {
  port: count(null, "port of the page. Default: 4990; 0: any free port", 0, 65_535),
  actions: flag(null, "viewers may recall and force-release locks; without it they can only look"),
  demo: flag(
    null,
    "no Redis: a small fleet works in the memory of this program, and buttons crash, pause and cut off its processes",
  ),
  host: text(
    null,
    "<address>",
    "127.0.0.1 (default) or ::1; to serve other machines, mount holdfast/ui in a server of your own",
  ),
};

/**
 * The page accepts only browsers of this machine, whatever its address: others would only be
 * refused.
 */
const LOCAL = ["127.0.0.1", "::1", "localhost"];

async function ui({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  if (positionals.length > 0 || rest !== null) throw new UsageError("holdfast ui takes no names.");
  const { host = "127.0.0.1", port = 4_990 } = values;
  if (!LOCAL.includes(host))
    throw new UsageError(
      "holdfast ui serves only this machine: for others, mount createLockUI() of holdfast/ui, with authorize.",
    );
  const over = new AbortController();
  // RACE: that process may end while this one connects, and is then not known any more.
  const orphaned = parentEnded(over.signal);
  const fleet = values.demo ? await demo(values) : null;
  const { locks, redis, close } = fleet ?? (await connect(values));
  const signals = new Signals();
  // Before any further await, or a signal that comes meanwhile would be lost.
  const stopping = new Promise<NodeJS.Signals>((resolve) => signals.to(resolve));
  const word = randomBytes(16).toString("base64url");
  const acts = values.actions || fleet !== null;
  const actions = acts ? (["recall", "break"] as const) : [];
  // A holder that a viewer force-releases learns whose page it was.
  const page = createOwnUI({ locks, redis, actions }, { word, label: operator() }, fleet);
  const server = createServer((request, response) => void page.node(request, response));
  try {
    await listen(server, port, host);
    const { port: actual } = server.address() as AddressInfo;
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${actual}/?word=${word}`;
    if (output.isJson) output.printJson({ url });
    else
      output.print(
        `The locks ${fleet ? "of a demo " : ""}are shown at ${url} until Ctrl-C. This address lets a browser look${acts ? ", and act" : ""}: keep it to yourself.`,
      );
    const received = await Promise.race([stopping, orphaned]);
    if (received) return codeOf(received);
    output.say("The process that started the page has ended, so the page ends too.");
    return EXIT.ok;
  } finally {
    over.abort();
    // No lock is held that a second Ctrl-C could leave behind while this waits for a silent Redis.
    signals.stop();
    page.close();
    server.close();
    server.closeAllConnections();
    await close();
  }
}

/** Flags about a Redis. */
const OF_REDIS = ["redis", "cluster", "sentinel", "prefix"] as const;

/** The fleet of the demo. Its code is loaded for it only. @throws UsageError for flags about a Redis. */
async function demo(values: Call<typeof FLAGS>["values"]) {
  const given = OF_REDIS.find((name) => values[name] !== undefined);
  if (given !== undefined)
    throw new UsageError(`The demo has a Redis of its own, in memory: leave out --${given}.`);
  const { Fleet } = await import("../demo/fleet.ts");
  return new Fleet();
}

/** @throws ExitError if the port is in use, or not allowed. */
async function listen(server: Server, port: number, host: string): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ExitError(
      EXIT.unavailable,
      code === "EADDRINUSE"
        ? `Port ${port} is in use: --port 0 takes any free one.`
        : `The page cannot be served at port ${port}: ${code}.`,
    );
  }
}

export const UI = command(
  {
    name: "ui",
    summary: "shows the locks on a web page, for this machine only",
    usage: ["ui [flags]"],
    examples: [
      ["holdfast ui", "prints a local address with a secret word, without which nothing is shown"],
      [
        "holdfast ui --demo",
        "a page to play with, without a Redis: what a dead holder, a lost lease and a deadlock look like",
      ],
      [
        "holdfast ui --actions --port 0",
        "on any free port, with buttons to recall and to force-release a lock",
      ],
    ],
    flags: FLAGS,
  },
  ui,
);
