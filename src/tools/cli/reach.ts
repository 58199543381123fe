import { connect as connectSocket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type * as Ioredis from "ioredis";
import { visible } from "../../util/visible.ts";
import { showDuration } from "./durations.ts";
import type { ExitError } from "./exit-codes.ts";
import { type Address, NO_TLS, NotReached, showAddress, whyNot } from "./why-not.ts";

/** The Redis that the command line names. */
export interface Target {
  readonly addresses: readonly Address[];
  /** Was no address given? */
  readonly isGuess: boolean;
  readonly login: Pick<Ioredis.RedisOptions, "username" | "password" | "tls">;
  readonly db: number;
  readonly isCluster: boolean;
  /** The name of the primary, if the addresses are those of sentinels. */
  readonly sentinel: string | undefined;
}

/** How long to try. */
export interface Patience {
  /** Ends it: its reason is thrown. */
  readonly signal?: AbortSignal;
  /**
   * How many ms to try again if Redis may come back by itself, as while it restarts. Default: 0.
   */
  readonly wait?: number;
  /** Receives the reason for trying again. */
  readonly say?: (sentence: string) => void;
  /**
   * Called each time that Redis refuses this program at a reconnect, with the error that would have
   * ended the first connection.
   */
  readonly refused?: (why: ExitError) => void;
}

/** ms to wait for an answer, and the minimum if less time is left. */
const [PATIENCE, LEAST] = [5_000, 1_000] as const;
/** Between two tries, in ms. */
const AGAIN = 250;
/**
 * A TLS handshake that takes longer than this, in ms, may be with a server that waits for the end
 * of a command.
 */
const HANDSHAKE = 300;

/**
 * Checks whether there is a Redis that accepts this program, and throws why not: a client that
 * keeps trying would report it late, and in other words. Resolves with the address that answered.
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

/** Of several addresses, one that answers is enough. */
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
    // A silent address would keep this program from ending.
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
  // `connect()` itself only rejects with "connection is closed".
  let last: unknown = null;
  probe.on("error", (error) => {
    last = error;
  });
  const over = new AbortController();
  const isOver = AbortSignal.any([ends, over.signal]);
  let primary: Address | null = null;
  try {
    const connected = probe.connect();
    connected.catch(() => {}); // In case TLS is refused first.
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

/** Resolves with the primary's address if it asks a sentinel. */
async function ask(probe: Ioredis.Redis, { isCluster, sentinel, db }: Target): Promise<Address | null> {
  if (sentinel !== undefined) {
    const found = await probe.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel);
    if (!Array.isArray(found))
      throw new Error(`the sentinel knows no primary of the name "${visible(sentinel)}"`);
    return { host: String(found[0]), port: Number(found[1]) };
  }
  // Before commands for which a user may lack the right: a lock in another database would exclude
  // no other process.
  if (db !== 0) await probe.select(db);
  if (isCluster) await probe.cluster("SLOTS");
  else await probe.ping();
  return null;
}

/**
 * Rejects if the server answers without TLS, as a TLS server never does; otherwise it stays
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
