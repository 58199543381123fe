// A process that campaigns, and leads until it is killed: `node candidate.js <url> <lease>`.
import { createLockClient } from "../../src/index.ts";
import { connect } from "../contenders/connect.ts";
import { micros } from "../workers/clock.ts";

/** `at`: µs of the clock of all processes. */
export type Campaigned =
  | { readonly is: "waits" }
  | { readonly is: "leads"; readonly token: number; readonly at: number }
  | { readonly is: "failed"; readonly why: string };

const tell = (what: Campaigned): void => void process.send?.(what);

const [url = "", lease] = process.argv.slice(2);
const locks = createLockClient(await connect(url));
process.once("disconnect", () => process.exit());
locks.once("wait", () => tell({ is: "waits" }));
try {
  const term = await locks.election("bench", { lease: Number(lease) }).campaign();
  tell({ is: "leads", token: term.token, at: micros() });
  term.signal.addEventListener("abort", () => tell({ is: "failed", why: String(term.lost) }));
} catch (error) {
  tell({ is: "failed", why: String(error) });
}
