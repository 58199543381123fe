import { visible } from "../../util/visible.ts";
import { showDuration } from "./durations.ts";
import { EXIT, ExitError } from "./exit-codes.ts";

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** No Redis accepts this program. */
export class NotReached extends ExitError {
  constructor(
    message: string,
    /** May it work soon, as while Redis restarts? */
    readonly mayPass: boolean,
  ) {
    super(EXIT.unavailable, message);
  }
}

/** Node.js's code for an answer that is not TLS. */
export const NO_TLS = "EPROTO";
/** The code, or the beginning of the code, of an error of TLS. */
const OF_TLS = /^(EPROTO$|ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

export const showAddress = ({ host, port }: Address): string =>
  `${host.includes(":") ? `[${visible(host)}]` : visible(host)}:${port}`;

/**
 * Why a connection to `where` ended, for people. `patience`: ms. Null: Redis answers, and the next
 * command will report what it lacks.
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
    // Whatever the reason: ioredis does not report it, and continues in database 0.
    if (command?.name === "select")
      return new NotReached(`Redis at ${where} refuses database ${db}: ${message}.`, false);
    return null;
  }
  const isSilent = code === "ETIMEDOUT" || message === "Command timed out";
  const known = isSilent ? `no answer in ${showDuration(patience)}` : (ofTls(error) ?? WORDS[code ?? ""]);
  const shown = code === undefined ? "" : ` (${code})`;
  const hint = isGuess ? "; --redis or HOLDFAST_REDIS says where Redis is" : "";
  return new NotReached(
    `Redis at ${where} cannot be reached: ${known ?? words ?? message}${shown}${hint}.`,
    known === undefined ? mayPass : !OF_TLS.test(code ?? ""),
  );
}

/** What is wrong with the certificates, and what to do; undefined: they are not the cause. */
function ofTls(error: unknown): string | undefined {
  const { code = "", message, reason } = error as NodeJS.ErrnoException & { reason?: string };
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `its certificate is for another host (${visible(reason ?? "").replace(/\.$/, "")}): give the host that the certificate names`;
  // The server speaks TLS if it ends the handshake with an alert.
  if (code === NO_TLS && /\balert\b/.test(message))
    return "the server ended the TLS handshake: it may want a certificate of its clients, or another version of TLS";
  if (!UNTRUSTED.test(code)) return;
  const { NODE_EXTRA_CA_CERTS: file } = process.env;
  return `Node.js does not know the authority of its certificate: ${
    file
      ? `the file of NODE_EXTRA_CA_CERTS, ${visible(file)}, lacks it, or cannot be read`
      : "NODE_EXTRA_CA_CERTS=<file> names a private one"
  }`;
}

/** Codes for a certificate of no known authority. */
const UNTRUSTED = /^(SELF_SIGNED_CERT_|DEPTH_ZERO_SELF_|UNABLE_TO_(VERIFY_LEAF|GET_ISSUER)|CERT_UNTRUSTED)/;

const CLOSED = "the server closed the connection, as it may want TLS (rediss://)";

const REPLIES: readonly (readonly [pattern: RegExp, words: string, mayPass?: true])[] = [
  [/^NOAUTH/, "wants a password, in the address: redis://user:password@host (NOAUTH)"],
  [/^(WRONGPASS|ERR AUTH|ERR invalid password)/, "refuses the user or the password (WRONGPASS)"],
  [/^DENIED/, "is in protected mode, and accepts only programs of its own machine (DENIED)"],
  [/^LOADING/, "loads its data, as after each start (LOADING)", true],
  [/^BUSY /, "is busy with a script (BUSY)", true],
  [/max number of clients/, "has reached its limit of clients (maxclients)", true],
  [/cluster support disabled/, "is no Cluster: leave out --cluster"],
  [/unknown command .?sentinel/i, "is no sentinel: leave out --sentinel"],
  [/^Connection is closed|connection close$/, CLOSED, true],
];

const WANTS_CERTIFICATE =
  "the server wants a certificate of its clients (tls-auth-clients), and holdfast has none to give";

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  // A container has no name before it runs.
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "the name of the host cannot be looked up now",
  EHOSTUNREACH: "there is no route to this host",
  ENETUNREACH: "there is no route to its network",
  ECONNRESET: CLOSED,
  EPIPE: CLOSED,
  CERT_HAS_EXPIRED: "its certificate has expired",
  CERT_NOT_YET_VALID: "its certificate is not valid yet, by the clock of this machine",
  // The alert for a missing certificate, in TLS 1.3 and in earlier versions.
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: WANTS_CERTIFICATE,
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: WANTS_CERTIFICATE,
  [NO_TLS]: "the server does not speak TLS there, so give redis://, or another port",
};
