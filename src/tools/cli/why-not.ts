import { visible } from "../../util/visible.ts";
import { showDuration } from "./durations.ts";
import { EXIT, ExitError } from "./exit-codes.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** There is no Redis that lets this program in. */
export class NotReached extends ExitError {
  constructor(
    message: string,
    /** May it be otherwise soon, as while Redis restarts? */
    readonly mayPass: boolean,
  ) {
    super(EXIT.unavailable, message);
  }
}

/** What Node.js has for an answer that is no TLS. */
export const NO_TLS = "EPROTO";

export const showAddress = ({ host, port }: Address): string =>
  `${host.includes(":") ? `[${visible(host)}]` : visible(host)}:${port}`;

/**
 * What a connection `where` ended with, for people. `patience`: ms. Null: Redis answers, and the
 * command that needs more says what is missing.
 */
export function whyNot(
  error: unknown,
  where: string,
  { db, isGuess }: { readonly db: number; readonly isGuess: boolean },
  patience: number,
): NotReached | null {
  const { name, code, message, command } = error as NodeJS.ErrnoException & { command?: { name: string } };
  const [, words, mayPass = false] = REPLIES.find(([pattern]) => pattern.test(message)) ?? [];
  if (name === "ReplyError") {
    if (words !== undefined) return new NotReached(`Redis at ${where} ${words}.`, mayPass);
    // Whatever the reason is: ioredis says nothing of it, and goes on in database 0.
    if (command?.name === "select")
      return new NotReached(`Redis at ${where} refuses database ${db}: ${message}.`, false);
    return null;
  }
  const isSilent = code === "ETIMEDOUT" || message === "Command timed out";
  const known = isSilent ? `no answer in ${showDuration(patience)}` : WORDS[code ?? ""];
  const shown = code === undefined ? "" : ` (${code})`;
  const hint = isGuess ? "; --redis or HOLDFAST_REDIS says where Redis is" : "";
  return new NotReached(
    `Redis at ${where} cannot be reached: ${known ?? words ?? message}${shown}${hint}.`,
    known === undefined ? mayPass : code !== NO_TLS,
  );
}

const CLOSED = "the server closed the connection, as it may want TLS (rediss://)";

const REPLIES: readonly (readonly [pattern: RegExp, words: string, mayPass?: true])[] = [
  [/^NOAUTH/, "wants a password, in the address: redis://user:password@host (NOAUTH)"],
  [/^(WRONGPASS|ERR AUTH|ERR invalid password)/, "refuses the user or the password (WRONGPASS)"],
  [/^DENIED/, "is in protected mode, and lets in programs of its own machine alone (DENIED)"],
  [/^LOADING/, "loads its data, as after each start (LOADING)", true],
  [/^BUSY /, "is busy with a script (BUSY)", true],
  [/max number of clients/, "has as many clients as it takes (maxclients)", true],
  [/cluster support disabled/, "is no Cluster: leave out --cluster"],
  [/unknown command .?sentinel/i, "is no sentinel: leave out --sentinel"],
  [/^Connection is closed|connection close$/, CLOSED, true],
];

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  // A container has no name before it runs.
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  EHOSTUNREACH: "there is no way to this host",
  ENETUNREACH: "there is no way to its network",
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  [NO_TLS]: "the server does not speak TLS there, so give redis://, or another port",
};
