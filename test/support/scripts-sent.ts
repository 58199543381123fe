import { onTestFinished, vi } from "vitest";

/** A script on its way: a command as ioredis has it. `args`: hash or text, the number of keys, keys and arguments. */
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

/** Until the test ends, what a connection is given to send as a script goes through `see`, which calls `send` for it. */
export function onScript(redis: Sender, see: (script: SentScript, send: () => void) => void): () => void {
  const send = redis.sendCommand.bind(redis) as (...args: unknown[]) => unknown;
  const spy = vi.spyOn(redis as { sendCommand(...args: unknown[]): unknown }, "sendCommand");
  spy.mockImplementation((...args) => {
    const script = args[0] as SentScript;
    if (!/^eval/.test(script.name)) return send(...args);
    see(script, () => void send(...args));
    return undefined;
  });
  const restore = (): void => void spy.mockRestore();
  onTestFinished(restore);
  return restore;
}

/** The reply is told when what this returns is resolved. */
export function holdReply(script: SentScript, until: (reply: unknown) => unknown): void {
  const { resolve } = script;
  script.resolve = async (reply) => {
    await until(reply);
    resolve(reply);
  };
}
