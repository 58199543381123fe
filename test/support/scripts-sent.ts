import { onTestFinished, vi } from "vitest";
import type { Call } from "../../src/redis/call.ts";
import { linkOf } from "./link.ts";

/** A script that is being sent. `args`: hash or text, the number of keys, keys and arguments. */
export interface SentScript {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Receives the reply, when the driver has read it. */
  resolve: (reply: unknown) => void;
  readonly reject: (error: Error) => void;
}

const scripts = new WeakMap<Call, SentScript>();

/** The same for a call that is sent a second time, as text. */
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
 * Until the test ends, scripts that lock clients send on this connection go through `see`, which
 * calls `send` for them. A test that runs in parallel with others identifies itself by
 * `onFinished`.
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
 * The reply is delivered when the promise of `until` is resolved. A script that the server does not
 * know is sent twice, the second time as text: it is one command with one reply, which `until` sees
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
