import { once } from "node:events";
import { type IncomingMessage, type RequestOptions, request } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { pipeline } from "node:stream";
import { text } from "node:stream/consumers";

/** How requests reach a page, and their headers from a browser. */
export interface Way {
  /** Where to connect to. */
  readonly to: Pick<RequestOptions, "port" | "socketPath">;
  /** The text of the address bar: a name, and a port. */
  readonly host: string;
}

/** The headers that a browser sends with requests of the page's own script. */
export const OWN = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };

type Headers = Record<string, string>;

/** One request with any headers: `fetch` would not send all of these. */
export async function ask(
  { to, host }: Way,
  path: string,
  headers: Headers = {},
  method = "GET",
  body = "",
): Promise<IncomingMessage> {
  const sent = request({
    host: "127.0.0.1",
    ...to,
    agent: false,
    path,
    method,
    headers: { host, connection: "keep-alive", ...headers },
  });
  const [answer] = (await Promise.race([
    once(sent.end(body), "response"),
    once(sent, "upgrade").then(([upgraded, socket]) => {
      socket.destroy();
      return [upgraded];
    }),
  ])) as [IncomingMessage];
  return answer;
}

/** Only the status, for an answer that may never end. */
export async function statusOf(answer: Promise<IncomingMessage>): Promise<number> {
  const got = await answer;
  got.destroy();
  return got.statusCode ?? 0;
}

/**
 * An action, requested as the page's script does it, with these headers of the browser. The lock
 * has no holder, so nothing is done.
 */
export async function act(way: Way, headers: Headers = {}): Promise<number> {
  const wanted = { action: "break", kind: "lock", name: "nobody's", holder: "x", mode: null };
  const own = {
    ...OWN,
    "content-type": "application/json",
    "x-holdfast": "page",
    origin: `http://${way.host}`,
  };
  return statusOf(ask(way, "/?part=act", { ...own, ...headers }, "POST", JSON.stringify(wanted)));
}

/**
 * Opens the address with the word, as a browser does: resolves with the cookie that it then has;
 * "": none.
 */
export async function cookieOf(way: Way, word: string): Promise<string> {
  const answer = await ask(way, `/?word=${word}`, { "sec-fetch-site": "none", "sec-fetch-mode": "navigate" });
  await text(answer);
  return answer.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}

/**
 * Forwards bytes to a port, as `ssh -L` does, and sends nothing of its own. `freeze`: from then on
 * no byte passes, and no connection is closed.
 */
export async function forward(port: number): Promise<{ port: number; freeze: () => void; stop: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const further = connect(port, "127.0.0.1");
    sockets.add(socket).add(further);
    pipeline(socket, further, socket, () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  const stop = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port: (server.address() as AddressInfo).port, freeze, stop };
}
