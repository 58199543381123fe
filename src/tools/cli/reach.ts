import { connect as connectSocket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { visible } from "../../util/visible.ts";
import { ask } from "./ask.ts";
import { showDuration } from "./durations.ts";
import type { ExitError } from "./exit-codes.ts";
import { type Address, NO_TLS, NotReached, showAddress, whyNot } from "./why-not.ts";

/** How a server admits this program. "": none is given. Sentinels ask for neither. */
interface Login {
  readonly username: string;
  readonly password: string;
  readonly isTls: boolean;
}

/** The version of IP in use; 0: either. */
export type Family = 0 | 4 | 6;

/** The Redis that the command line names. */
export interface Target {
  readonly addresses: readonly Address[];
  /** Was no address given? */
  readonly isGuess: boolean;
  readonly login: Login;
  readonly db: number;
  readonly isCluster: boolean;
  /** The name of the primary, if the addresses are those of sentinels. */
  readonly sentinel: string | undefined;
  readonly family: Family;
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
  target: Target,
  { signal = new AbortController().signal, wait = 0, say = () => {} }: Patience,
): Promise<Address> {
  const end = performance.now() + wait;
  let said = "";
  for (;;) {
    const left = end - performance.now();
    try {
      signal.throwIfAborted();
      return await lookAtAll(target, signal, wait > 0 ? Math.max(LEAST, Math.min(PATIENCE, left)) : PATIENCE);
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
async function lookAtAll(target: Target, signal: AbortSignal, patience: number): Promise<Address> {
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal]);
  try {
    return await Promise.any(target.addresses.map((address) => look(address, target, ends, patience)));
  } catch (error) {
    const { errors } = error as AggregateError;
    throw errors.find((one) => !(one instanceof NotReached && one.mayPass)) ?? errors[0];
  } finally {
    // A silent address would keep this program from ending.
    over.abort();
  }
}

async function look(address: Address, target: Target, ends: AbortSignal, patience: number): Promise<Address> {
  const { sentinel, login, family } = target;
  const isTls = sentinel === undefined && login.isTls;
  const over = new AbortController();
  const signal = AbortSignal.any([ends, over.signal]);
  let primary: Address | null = null;
  try {
    const asked = ask(address, questions(target), { isTls, family, signal, patience });
    asked.catch(() => {}); // In case TLS is refused first.
    const reply = await Promise.race([asked, ...(isTls ? [refusesTls(address, family, signal)] : [])]);
    if (sentinel !== undefined) primary = primaryOf(reply, sentinel);
  } catch (error) {
    ends.throwIfAborted();
    const why = whyNot(error, showAddress(address), target, patience);
    if (why !== null) throw why;
  } finally {
    over.abort();
  }
  if (primary !== null) await look(primary, { ...target, sentinel: undefined }, ends, patience);
  return address;
}

function questions({ sentinel, login, db, isCluster }: Target): string[][] {
  // PING is refused if it wants a password.
  if (sentinel !== undefined) return [["PING"], ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel]];
  const { username, password } = login;
  return [
    // With a user's name, also where a password is given that Redis does not ask for.
    ...(username || password ? [["AUTH", username || "default", password]] : []),
    // Before commands for which a user may lack the right: a lock in another database would exclude
    // no other process.
    ...(db === 0 ? [] : [["SELECT", String(db)]]),
    isCluster ? ["CLUSTER", "SLOTS"] : ["PING"],
  ];
}

function primaryOf(reply: unknown, sentinel: string): Address {
  if (!Array.isArray(reply))
    throw new Error(`the sentinel knows no primary of the name "${visible(sentinel)}"`);
  return { host: String(reply[0]), port: Number(reply[1]) };
}

/**
 * Rejects if the server answers without TLS, as a TLS server never does; otherwise it stays
 * pending.
 */
async function refusesTls({ host, port }: Address, family: Family, signal: AbortSignal): Promise<never> {
  await pause(HANDSHAKE, undefined, { signal }).catch(() => {});
  return new Promise((_, reject) => {
    if (signal.aborted) return;
    const socket = connectSocket({ host, port, family }, () => socket.write("PING\r\n"));
    signal.addEventListener("abort", () => socket.destroy());
    socket.on("error", () => {});
    socket.once("data", (data) => {
      if (/^[+-]/.test(String(data))) reject(Object.assign(new Error("no TLS"), { code: NO_TLS }));
    });
  });
}
