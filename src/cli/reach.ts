import { connect as connectSocket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type * as Ioredis from "ioredis";
import { showDuration } from "./durations.ts";
import { EXIT, ExitError } from "./exit-codes.ts";

/** What the command line says of Redis. */
export interface Target {
  readonly addresses: readonly Address[];
  readonly login: Pick<Ioredis.RedisOptions, "username" | "password" | "tls">;
  readonly db: number;
  readonly isCluster: boolean;
  /** The name of the primary, where the addresses are those of sentinels. */
  readonly sentinel: string | undefined;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** For what does not answer, in ms. */
const PATIENCE = 5_000;
/** A TLS handshake that has not ended by then, in ms, may be with a server that waits for the end of a command. */
const HANDSHAKE = 300;

/**
 * Looks whether there is a Redis that lets this program in, and says why not: a client that tries again and again tells it late, and
 * in other words. Of several addresses one is enough.
 *
 * @throws ExitError
 */
export async function reach(Redis: typeof Ioredis.Redis, target: Target): Promise<void> {
  try {
    await Promise.any(target.addresses.map((address) => look(Redis, address, target)));
  } catch (error) {
    throw (error as AggregateError).errors[0];
  }
}

async function look(Redis: typeof Ioredis.Redis, address: Address, target: Target): Promise<void> {
  const probe = new Redis({
    ...address,
    ...(target.sentinel === undefined ? target.login : {}),
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: PATIENCE,
    commandTimeout: PATIENCE,
  });
  // What `connect()` rejects with only says that the connection is closed.
  let last: unknown = null;
  probe.on("error", (error) => {
    last = error;
  });
  const over = new AbortController();
  try {
    const connected = probe.connect();
    await (probe.options.tls ? Promise.race([connected, refusesTls(address, over.signal)]) : connected);
    await ask(probe, target);
  } catch (error) {
    const why = whyNot(last ?? error, address, target);
    if (why !== null) throw new ExitError(EXIT.unavailable, why);
  } finally {
    over.abort();
    // One that has ended by itself would keep this program for 2 s.
    if (probe.status !== "end") probe.disconnect();
  }
}

async function ask(probe: Ioredis.Redis, { isCluster, sentinel, db }: Target): Promise<void> {
  if (isCluster) await probe.cluster("SLOTS");
  else if (sentinel === undefined) await probe.ping();
  else if ((await probe.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel)) === null)
    throw new Error(`the sentinel knows no primary of the name "${sentinel}"`);
  // ioredis says nothing where Redis refuses the database, and goes on in database 0.
  if (db !== 0 && sentinel === undefined) await probe.select(db);
}

/** Null: it answers, and the command that needs more says what is missing. A user may lack the right of PING. */
function whyNot(error: unknown, { host, port }: Address, { db }: Target): string | null {
  const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const { name, code, message } = error as NodeJS.ErrnoException;
  const [, reply = message] = REPLIES.find(([pattern]) => pattern.test(message)) ?? [];
  if (name === "ReplyError") {
    if (/DB index|database/i.test(message)) return `Redis at ${where} refuses database ${db}: ${message}`;
    return reply === message ? null : `Redis at ${where} ${reply}.`;
  }
  const words = WORDS[code ?? ""] ?? reply;
  return `cannot connect to ${where}: ${words}${code === undefined ? "" : ` (${code})`}`;
}

/** What Node.js has for an answer that is no TLS. */
const NO_TLS = "EPROTO";
const CLOSED = "the server has closed the connection; does it want TLS (rediss://)?";

const REPLIES: readonly (readonly [RegExp, string])[] = [
  [/^NOAUTH/, "wants a password, in the address: redis://user:password@host (NOAUTH)"],
  [/^(WRONGPASS|ERR AUTH|ERR invalid password)/, "refuses the user or the password (WRONGPASS)"],
  [/^DENIED/, "is in protected mode, and lets in programs of its own machine alone (DENIED)"],
  [/max number of clients/, "has as many clients as it takes (maxclients)"],
  [/cluster support disabled/, "is no Cluster: leave out --cluster"],
  [/unknown command .?sentinel/i, "is no sentinel: leave out --sentinel"],
  [/^Connection is closed|connection close$/, CLOSED],
];

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  ETIMEDOUT: `no answer in ${showDuration(PATIENCE)}`,
  EHOSTUNREACH: "there is no way to this host",
  ENETUNREACH: "there is no way to its network",
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  [NO_TLS]: "no TLS is spoken there; redis:// instead of rediss://, or another port?",
};

/** Rejects where the server answers without TLS, as it never does where it speaks TLS; else it stays pending. */
async function refusesTls({ host, port }: Address, signal: AbortSignal): Promise<never> {
  await pause(HANDSHAKE, undefined, { signal }).catch(() => {});
  return new Promise((_, reject) => {
    if (signal.aborted) return;
    const socket = connectSocket(port, host, () => socket.write("PING\r\n"));
    signal.addEventListener("abort", () => socket.destroy());
    socket.on("error", () => {});
    socket.once("data", (data) => {
      if (/^[+-]/.test(String(data))) reject(Object.assign(new Error("no TLS"), { code: NO_TLS }));
    });
  });
}
