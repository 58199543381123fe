import { connect as connectSocket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type * as Ioredis from "ioredis";
import { visible } from "../../util/visible.ts";
import { showDuration } from "./durations.ts";
import type { ExitError } from "./exit-codes.ts";
import { type Address, NO_TLS, NotReached, showAddress, whyNot } from "./why-not.ts";

/** What the command line says of Redis. */
export interface Target {
  readonly addresses: readonly Address[];
  /** Has nobody named the address? */
  readonly isGuess: boolean;
  readonly login: Pick<Ioredis.RedisOptions, "username" | "password" | "tls">;
  readonly db: number;
  readonly isCluster: boolean;
  /** The name of the primary, where the addresses are those of sentinels. */
  readonly sentinel: string | undefined;
}

/** How long it is tried. */
export interface Patience {
  /** Ends it: its reason is thrown. */
  readonly signal?: AbortSignal;
  /**
   * For so many ms it is tried again, where Redis may come back by itself, as while it restarts.
   * Default: 0.
   */
  readonly wait?: number;
  /** Is told why it is tried again. */
  readonly say?: (sentence: string) => void;
  /**
   * Is told each time that Redis lets this program in no more, when it is connected again: what
   * would have ended the beginning.
   */
  readonly refused?: (why: ExitError) => void;
}

/** For what does not answer, in ms, and the least where less is left. */
const [PATIENCE, LEAST] = [5_000, 1_000] as const;
/** Between two tries, in ms. */
const AGAIN = 250;
/**
 * A TLS handshake that has not ended by then, in ms, may be with a server that waits for the end of
 * a command.
 */
const HANDSHAKE = 300;

/**
 * Looks whether there is a Redis that lets this program in, and says why not: a client that tries
 * again and again tells it late, and in other words. Resolves with the address that has answered.
 *
 * @throws ExitError; the signal's reason
 */
export async function reach(
  Redis: typeof Ioredis.Redis,
  target: Target,
  { signal = new AbortController().signal, wait = 0, say = () => {} }: Patience,
): Promise<Address> {
  const end = performance.now() + wait;
  let said = "";
  for (;;) {
    const left = end - performance.now();
    try {
      signal.throwIfAborted();
      return await lookAtAll(
        Redis,
        target,
        signal,
        wait > 0 ? Math.max(LEAST, Math.min(PATIENCE, left)) : PATIENCE,
      );
    } catch (error) {
      const pausing = Math.min(AGAIN, end - performance.now());
      if (!(error instanceof NotReached && error.mayPass) || pausing <= 0) throw error;
      if (error.message !== said) say(`${error.message}; trying again${limit(left)}.`.replace(".;", ";"));
      said = error.message;
      await pause(pausing, undefined, { signal }).catch(() => {}); // Its reason is thrown above.
    }
  }
}

const limit = (left: number): string =>
  left === Number.POSITIVE_INFINITY ? "" : ` for ${showDuration(left)}`;

/** Of several addresses one is enough. */
async function lookAtAll(
  Redis: typeof Ioredis.Redis,
  target: Target,
  signal: AbortSignal,
  patience: number,
): Promise<Address> {
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal]);
  try {
    return await Promise.any(target.addresses.map((address) => look(Redis, address, target, ends, patience)));
  } catch (error) {
    const { errors } = error as AggregateError;
    throw errors.find((one) => !(one instanceof NotReached && one.mayPass)) ?? errors[0];
  } finally {
    // What is silent would keep this program from its end.
    over.abort();
  }
}

async function look(
  Redis: typeof Ioredis.Redis,
  address: Address,
  target: Target,
  ends: AbortSignal,
  patience: number,
): Promise<Address> {
  const { sentinel, login } = target;
  const probe = new Redis({
    ...address,
    ...(sentinel === undefined ? login : {}),
    lazyConnect: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
    connectTimeout: patience,
    commandTimeout: patience,
    disconnectTimeout: 1,
  });
  // What `connect()` rejects with only says that the connection is closed.
  let last: unknown = null;
  probe.on("error", (error) => {
    last = error;
  });
  const over = new AbortController();
  const isOver = AbortSignal.any([ends, over.signal]);
  let primary: Address | null = null;
  try {
    const connected = probe.connect();
    connected.catch(() => {}); // Where TLS is refused first.
    await Promise.race([
      connected,
      aborted(ends),
      ...(probe.options.tls ? [refusesTls(address, isOver)] : []),
    ]);
    primary = await Promise.race([ask(probe, target), aborted(ends)]);
  } catch (error) {
    ends.throwIfAborted();
    const why = whyNot(last ?? error, showAddress(address), target, patience);
    if (why !== null) throw why;
  } finally {
    over.abort();
    probe.disconnect();
  }
  if (primary !== null) await look(Redis, primary, { ...target, sentinel: undefined }, ends, patience);
  return address;
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Resolves with where the primary is, where it asks a sentinel for that. */
async function ask(probe: Ioredis.Redis, { isCluster, sentinel, db }: Target): Promise<Address | null> {
  if (sentinel !== undefined) {
    const found = await probe.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel);
    if (!Array.isArray(found))
      throw new Error(`the sentinel knows no primary of the name "${visible(sentinel)}"`);
    return { host: String(found[0]), port: Number(found[1]) };
  }
  // Before what a user may lack the right of: a lock in another database would keep nobody out.
  if (db !== 0) await probe.select(db);
  if (isCluster) await probe.cluster("SLOTS");
  else await probe.ping();
  return null;
}

/**
 * Rejects where the server answers without TLS, as it never does where it speaks TLS; else it stays
 * pending.
 */
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
