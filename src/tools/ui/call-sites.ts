import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { fileURLToPath, pathToFileURL } from "node:url";
import { HOME } from "../../util/home.ts";
import { stackOf } from "../../util/stack.ts";
import { harmless } from "../../util/visible.ts";
import { LONGEST_SITE } from "./observed.ts";

/** Published while the method that the application has called is on the stack. */
const BEGINS = "tracing:holdfast:acquire:start";
/** Frames that are searched for one of the application. */
const FRAMES = 20;
/** The limit for calls: some end without an event. */
const CALLS = 10_000;

/** The stack of a call. */
export type Stack = ReturnType<typeof stackOf>;

/** Where the calls of one client come from. */
export class CallSites {
  readonly #client: string;
  readonly #stacks = new Map<number, Stack>();

  /** `client`: its id. */
  constructor(client: string) {
    this.#client = client;
    subscribe(BEGINS, this.#begins);
  }

  /** Null: the call began before this was made. */
  of(call: number): Stack | null {
    return this.#stacks.get(call) ?? null;
  }

  ended(call: number): void {
    this.#stacks.delete(call);
  }

  close(): void {
    unsubscribe(BEGINS, this.#begins);
    this.#stacks.clear();
  }

  readonly #begins = (message: unknown): void => {
    const { client, call } = message as { readonly client: string; readonly call: number };
    if (client !== this.#client) return;
    this.#stacks.set(call, stackOf(this.#begins, FRAMES));
    const [oldest] = this.#stacks.size > CALLS ? this.#stacks.keys() : [];
    if (oldest !== undefined) this.ended(oldest);
  };
}

/** Without a folder of its own everything is inside. */
const INSIDE = HOME ? [HOME.href, fileURLToPath(HOME), "node:"] : [""];

/**
 * The line of the application, such as "Payments.pay (src/payments.ts:42:17)": the first one outside of
 * this package, and outside of all packages if there is one. Null: there is none.
 */
export function siteIn(taken: Stack | null): string | null {
  let stack = "";
  try {
    stack = String(taken?.stack ?? "");
  } catch {
    // The application's own `Error.prepareStackTrace` has thrown.
  }
  const frames = stack
    .split("\n")
    .flatMap((line) => /^\s*at (?:async )?(.+)$/.exec(line)?.[1] ?? [])
    .filter((frame) => !INSIDE.some((folder) => frame.includes(folder)));
  const site = frames.find((frame) => !frame.includes("/node_modules/")) ?? frames[0];
  if (site === undefined) return null;
  const short = beginnings().reduce((text, beginning) => text.replace(beginning, ""), site);
  return harmless(short).slice(0, LONGEST_SITE);
}

/** What is left out of a file's name: the working folder. */
function beginnings(): string[] {
  try {
    const folder = process.cwd();
    return folder === "/" ? ["file://"] : [pathToFileURL(`${folder}/`).href, `${folder}/`, "file://"];
  } catch {
    // The folder is gone, or may not be read.
    return ["file://"];
  }
}
