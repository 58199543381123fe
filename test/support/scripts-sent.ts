import { onTestFinished, vi } from "vitest";
import type { Call } from "../../src/redis/driver.ts";
import { linkOf } from "./link.ts";

/** A script on its way. `args`: hash or text, the number of keys, keys and arguments. */
export interface SentScript {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Is told the reply, when the driver has read it. */
  resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const scripts = new WeakMap<Call, SentScript>();

/** The same of a call that is sent a second time, as text. */
function scriptOf(call: Call): SentScript {
  const known = scripts.get(call);
  if (known) return known;
  const { owner } = call;
  const script: SentScript = {
    get name() {
      return call.name;
    },
    get args() {
      const { full } = call.keys;
      return [call.script[call.name === "eval" ? "lua" : "sha"], `${full.length}`, ...full, ...call.argv];
    },
    resolve: (reply) => owner.replied(call, reply),
    reject: (error) => owner.refused(call, error),
  };
  const between: Call["owner"] = {
    unanswered: owner.unanswered,
    replied: (_, reply) => script.resolve(reply),
    refused: (_, error) => owner.refused(call, error),
  };
  scripts.set(call, script);
  Object.assign(call, { owner: between });
  return script;
}

/**
 * Until the test ends, what lock clients on this connection send as a script goes through `see`,
 * which calls `send` for it. A test that runs beside others says by `onFinished` which one it is.
 */
export function onScript(
  connection: object,
  see: (script: SentScript, send: () => void) => void,
  onFinished: (restore: () => void) => void = onTestFinished,
): () => void {
  const link = linkOf(connection);
  const send = link.send.bind(link);
  const spy = vi.spyOn(link, "send");
  spy.mockImplementation((call) => see(scriptOf(call), () => send(call)));
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
