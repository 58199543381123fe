import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLockUI } from "../../src/tools/ui/index.ts";
import { createOwnUI } from "../../src/tools/ui/own-ui.ts";
import { act, ask, cookieOf, forward, OWN, statusOf, type Way } from "../support/ask-page.ts";
import { temporary } from "../support/cli.ts";
import { Parties } from "../support/fixture.ts";
import { Nginx } from "./nginx.ts";

// The table of docs/security.md, "The page": each of its rows, over HTTP, through a real nginx
// where one stands in it.

const parties = new Parties();
afterAll(parties.close);

const text = readFileSync(new URL("../../docs/security.md", import.meta.url), "utf8");
/** The cells of each row: what asks, and what becomes of it in each set-up. */
const rows = text
  .slice(text.indexOf("## The page"))
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| request"))
  .map((line) => line.slice(2, -2).split(" | ") as [string, ...string[]]);

const WORD = "a-word-that-nobody-guesses";
const KINDS = ["alone", "authorized", "own"] as const;
type Kind = (typeof KINDS)[number];

/** A page of each kind, on a port and on a Unix socket. */
interface Stage {
  readonly port: number;
  readonly socketPath: string;
  /** Where requests seem to come from; null: where they come from. */
  from: string | null;
}
const stages = {} as Record<Kind, Stage>;
const servers: Server[] = [];

/** What stands before each page: an nginx with one of these lines in its `location`. */
const PROXIES: Record<string, readonly string[]> = {
  "nginx with `proxy_pass` alone, which speaks HTTP/1.0, and HTTP/1.1 since 1.29.7": [
    "",
    "proxy_http_version 1.0;",
    "proxy_http_version 1.1;",
    'proxy_http_version 1.1; proxy_set_header Connection "";',
  ],
  "nginx with HTTP/1.1 and `proxy_set_header Connection keep-alive`": [
    "proxy_http_version 1.1; proxy_set_header Connection keep-alive;",
  ],
  "nginx with `proxy_set_header Host $http_host`": [
    "proxy_http_version 1.1; proxy_set_header Host $http_host;",
    "proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Connection keep-alive;",
  ],
  "nginx with `X-Real-IP`, `Forwarded`, `Via` or an `X-Forwarded-` header": [
    "X-Real-IP 127.0.0.1",
    "Forwarded for=127.0.0.1",
    "Via '1.1 x'",
    "X-Forwarded-Port 443",
  ].map(
    (header) => `proxy_http_version 1.1; proxy_set_header Connection keep-alive; proxy_set_header ${header};`,
  ),
};
const withoutNginx = await Nginx.missing();
if (withoutNginx !== null) process.stderr.write(`skipped: the rows with nginx: ${withoutNginx}\n`);
let nginx: Nginx | undefined;
/** By kind and line. */
const proxied = new Map<string, number>();

async function listen(handler: RequestListener, kind: Kind): Promise<void> {
  const stage = { port: 0, socketPath: join(temporary(), "page.sock"), from: null as string | null };
  for (const where of [0, stage.socketPath]) {
    const server = createServer(handler);
    servers.push(server);
    server.on("connection", (socket) => {
      if (stage.from !== null) Object.defineProperty(socket, "remoteAddress", { value: stage.from });
    });
    if (where === 0) server.listen(0, "127.0.0.1");
    else server.listen(where);
    await once(server, "listening");
    if (where === 0) stage.port = (server.address() as AddressInfo).port;
  }
  stages[kind] = stage;
}

beforeAll(async () => {
  const { locks, redis } = await parties.join();
  const actions = ["break" as const];
  await listen(createLockUI({ locks, redis }).node, "alone");
  await listen(createLockUI({ locks, redis, actions, authorize: () => true }).node, "authorized");
  await listen(createOwnUI({ locks, redis, actions }, { word: WORD, label: "me" }).node, "own");
  if (withoutNginx !== null) return;
  const wanted = Object.values(PROXIES)
    .flat()
    .flatMap((line) =>
      KINDS.map(
        (kind) => [`${kind} ${line}`, `proxy_pass http://127.0.0.1:${stages[kind].port}; ${line}`] as const,
      ),
    );
  const started = await Nginx.start(wanted.map(([, location]) => location));
  nginx = started.nginx;
  for (const [i, [key]] of wanted.entries()) proxied.set(key, started.ports[i] ?? 0);
});
afterAll(async () => {
  await nginx?.stop();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

/** What becomes of a look and of an action, by statuses. */
function said(read: number, acted: number): string {
  for (const status of [read, acted]) expect([200, 403]).toContain(status);
  return read !== 200 ? (acted === 200 ? "acts" : "refused") : acted === 200 ? "reads, acts" : "reads";
}

/**
 * The page's own script, in a browser that goes this way; it opens the address with the word first,
 * where there is one.
 */
async function browse(way: Way, kind: Kind, word = WORD): Promise<string> {
  const cookie = kind === "own" ? await cookieOf(way, word) : "";
  const read = await statusOf(ask(way, "/?part=state", { ...OWN, cookie }));
  return said(read, await act(way, { cookie }));
}

const here = (kind: Kind, name = "localhost"): Way => {
  const { port } = stages[kind];
  return { to: { port }, host: `${name}:${port}` };
};

/** What another site has a browser send that knows the word: what it gets to see, and what it gets done. */
function foreign(
  path: string,
  told: Record<string, string>,
  { origin = "http://evil.example", site = "cross-site", cookies = true } = {},
) {
  return async (kind: Kind): Promise<string> => {
    const way = here(kind);
    const cookie = kind === "own" && cookies ? await cookieOf(way, WORD) : "";
    const answers: string[] = [];
    // Browsers of some years ago send an Origin, and nothing of the site.
    for (const isOld of [false, true]) {
      if (isOld && origin === "") continue;
      const words = {
        cookie,
        ...(isOld ? {} : { "sec-fetch-site": site, ...told }),
        ...(origin && { origin }),
      };
      const read = await statusOf(ask(way, path, { ...told, ...words }));
      const acted = await act(way, { origin: "http://evil.example", ...words });
      const plain = { ...words, origin: "http://evil.example", "content-type": "text/plain" };
      answers.push(said(read, acted), said(403, await act(way, plain)));
    }
    const [first = ""] = answers;
    expect(new Set(answers.filter((_, i) => i % 2 === 0))).toEqual(new Set([first]));
    expect(answers.filter((_, i) => i % 2 === 1)).not.toContain("acts");
    return first;
  };
}

type Check = (kind: Kind) => Promise<string>;

const through =
  (line: string): Check =>
  (kind) => {
    const port = proxied.get(`${kind} ${line}`);
    return browse({ to: { port }, host: "locks.example" }, kind);
  };

/** What all of these find. */
const alike =
  (checks: readonly Check[]): Check =>
  async (kind) => {
    const found: string[] = [];
    for (const check of checks) found.push(await check(kind));
    expect(new Set(found)).toEqual(new Set(found.slice(0, 1)));
    return found[0] ?? "";
  };

/** By the first cell of a row. */
const CHECKS: Record<string, Check> = {
  "a browser of this machine, at `localhost`, `127.0.0.1` or `[::1]`": async (kind) => {
    const seen = new Set<string>();
    for (const name of ["localhost", "127.0.0.1", "[::1]"]) seen.add(await browse(here(kind, name), kind));
    expect(seen.size).toBe(1);
    return [...seen][0] ?? "";
  },
  "the same, before it has opened the address that `holdfast ui` printed": async (kind) => {
    const wrong = await browse(here(kind), kind, `${WORD}x`);
    expect(await browse(here(kind), kind, "")).toBe(wrong);
    return wrong;
  },
  "a browser of another machine": async (kind) => {
    const seen = new Set<string>();
    for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "0127.0.0.1", "::1%eth0x"]) {
      stages[kind].from = address;
      seen.add(await browse(here(kind), kind).finally(() => (stages[kind].from = null)));
    }
    expect(seen.size).toBe(1);
    return [...seen][0] ?? "";
  },
  "a Unix socket": (kind) => browse({ to: { socketPath: stages[kind].socketPath }, host: "localhost" }, kind),
  ...Object.fromEntries(Object.entries(PROXIES).map(([row, lines]) => [row, alike(lines.map(through))])),
  "a forwarded port (`ssh -L`, `kubectl port-forward`, `socat`)": async (kind) => {
    const { port, stop } = await forward(stages[kind].port);
    return browse({ to: { port }, host: `localhost:${port}` }, kind).finally(stop);
  },
  "a foreign name that leads to this machine (DNS rebinding)": (kind) =>
    browse(here(kind, "evil.example"), kind),
  "another site's script, form, frame, `EventSource` or `WebSocket`; a page at another port of this machine":
    alike([
      foreign("/?part=state", { "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty" }, { origin: "" }),
      foreign("/?part=act", { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" }),
      foreign("/", { "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" }, { origin: "" }),
      foreign("/?part=events", {
        accept: "text/event-stream",
        "sec-fetch-mode": "cors",
        "sec-fetch-dest": "empty",
      }),
      foreign("/?part=events", {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      }),
      foreign(
        "/?part=state",
        { "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" },
        { origin: "http://localhost:1", site: "same-site" },
      ),
    ]),
  // A browser keeps the cookie back, as it is one of "SameSite=Strict".
  "a link of another site": foreign(
    "/",
    { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    { origin: "", cookies: false },
  ),
};

it("each row of the table is tested, and each test is a row", () => {
  expect(rows.map(([row]) => row).sort()).toEqual(Object.keys(CHECKS).sort());
});

describe.each(rows)("%s", (row, ...cells) => {
  const isSkipped = row in PROXIES && withoutNginx !== null;
  it.skipIf(isSkipped).each(KINDS.map((kind, i) => [kind, cells[i] ?? ""] as const))(
    "%s: %s",
    async (kind, cell) => {
      expect(await CHECKS[row]?.(kind)).toBe(cell);
    },
  );
});
