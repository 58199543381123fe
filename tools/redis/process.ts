import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { answers } from "./probe.ts";
import { endWithProcess } from "./reaper.ts";

/** What a server is started with in addition to its arguments, the same at each start. */
export interface Prepared {
  /** A configuration file, which the server may rewrite; the arguments override it. */
  configFile?: string;
  /** Environment variables in addition to those of this process. */
  env?: Record<string, string>;
  tls?: TlsFiles;
  /** Called before each start. */
  starting?(): void;
}

/** Paths of PEM files. With them the server speaks TLS only. */
export interface TlsFiles {
  /** The certificate of the authority: a client needs it to trust the server. */
  ca: string;
  /** The server's. */
  cert: string;
  key: string;
}

/** One run of a server; a restart begins another. */
export interface ServerProcess {
  readonly pid: number;
  /** Does the process exist, even if it is stopped? */
  readonly lives: boolean;
  /** Sends a signal that does not end it. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
  /** Sends the signal, if the process still runs, and waits until it is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** The port is taken: worth another try on another port. */
export class AddressInUse extends Error {}

/** A cold start takes about 20 ms; a busy machine may take a hundred times as long. */
const READY_WITHIN_MS = 10_000;
const BETWEEN_PROBES_MS = 10;

/**
 * Starts a server on the loopback interface and waits until it answers. It does not keep this
 * process alive, and ends with it.
 *
 * @throws AddressInUse; Error with the end of the server's log if it ends or does not answer within
 * 10 s
 */
export async function startProcess(
  options: Prepared & { command: string; args: string[]; port: number; dir: string },
): Promise<ServerProcess> {
  const { command, port, dir, configFile, tls } = options;
  const log = join(dir, "server.log");
  const args = [
    ...(configFile === undefined ? [] : [configFile]),
    ...["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir],
    ...listening(port, tls),
    ...options.args,
  ];

  // A file, not a pipe: a pipe would have to be read, and would keep this process alive.
  const output = openSync(log, "w");
  options.starting?.();
  const child = spawn(command, args, {
    stdio: ["ignore", output, output],
    env: { ...process.env, ...options.env },
  });
  closeSync(output);
  await once(child, "spawn");

  const running = () => child.exitCode === null && child.signalCode === null;
  const forget = endWithProcess(() => void child.kill("SIGKILL"));
  child.once("exit", forget);
  child.unref();

  const kill = async (signal: NodeJS.Signals) => {
    if (!running()) return;
    // While a caller waits for the end, the child must keep this process alive, or the wait would
    // be cut short.
    child.ref();
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  };
  const pid = child.pid ?? 0;

  const giveUpAt = performance.now() + READY_WITHIN_MS;
  const ca = tls && (await readFile(tls.ca));
  while (!(await answers(port, pid, ca))) {
    const late = performance.now() > giveUpAt;
    if (running() && !late) {
      await delay(BETWEEN_PROBES_MS);
      continue;
    }
    await kill("SIGKILL");
    const written = await readFile(log, "utf8");
    if (/address already in use/i.test(written)) throw new AddressInUse(`Port ${port} is already in use`);
    const what = late ? `did not answer within ${READY_WITHIN_MS / 1000} s` : "ended at once";
    throw new Error(`${command} ${what}. The end of its log:\n${tail(written)}`);
  }
  return {
    pid,
    get lives() {
      return running();
    },
    signal: (signal) => void child.kill(signal),
    kill,
  };
}

function listening(port: number, tls: TlsFiles | undefined): string[] {
  if (tls === undefined) return ["--port", `${port}`];
  const files = ["--tls-ca-cert-file", tls.ca, "--tls-cert-file", tls.cert, "--tls-key-file", tls.key];
  return ["--port", "0", "--tls-port", `${port}`, ...files, "--tls-auth-clients", "no"];
}

function tail(text: string): string {
  return text.trimEnd().split("\n").slice(-10).join("\n");
}
