import { onTestFinished, vi } from "vitest";

/**
 * A script on its way: a command as ioredis has it. `args`: hash or text, the number of keys, keys
 * and arguments.
 */
export interface SentScript {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Is told the reply, when ioredis has read it. */
  resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

interface Sender {
  sendCommand(command: never, ...rest: never[]): unknown;
}

/**
 * Until the test ends, what a connection is given to send as a script goes through `see`, which
 * calls `send` for it. A test that runs beside others says by `onFinished` which one it is.
 */
export function onScript(
  redis: Sender,
  see: (script: SentScript, send: () => void) => void,
  onFinished: (restore: () => void) => void = onTestFinished,
): () => void {
  const send = redis.sendCommand.bind(redis) as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(redis as { sendCommand(...args: unknown[]): unknown }, "sendCommand");
  spy.mockImplementation((...args) => {
    const script = args[0] as SentScript;
    if (!/^eval/.test(script.name)) return send(...args);
    see(script, () => void send(...args));
    return undefined;
  });
  const restore = (): void => void spy.mockRestore();
  onFinished(restore);
  return restore;
}

const held = new WeakSet<SentScript>();

/**
 * The reply is told when what `until` returns is resolved. A script that the server does not know
 * is sent twice, the second time as text: it is one command with one reply, which `until` sees
 * once.
 */
export function holdReply(script: SentScript, until: (reply: unknown) => unknown): void {
  if (held.has(script)) return;
  held.add(script);
  const { resolve } = script;
  script.resolve = async (reply) => {
    await until(reply);
    resolve(reply);
  };
}
