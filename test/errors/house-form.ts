import { deadlocksLua, handoffLua, onceLua } from "../../src/redis/lua.generated.ts";
import { quote } from "../../src/util/quote.ts";
import { spinLua } from "../../src/wires/spin-lua.generated.ts";

/** Names of scripts are nobody's business but this package's. */
const SCRIPTS = [handoffLua, onceLua, deadlocksLua, spinLua].flatMap((group) =>
  Object.values<{ readonly name: string }>(group).map(({ name }) => name),
);

/** Words that say neither who acts nor when. */
const VAGUE = /\b(nobody|somebody|whoever|behind|in vain|for ever)\b/i;

/**
 * What is wrong with the form of a message: it should be one sentence, which names the lock in
 * quotes. `name`: null where it is about no single lock.
 */
export function faultsOf(message: string, name: string | null): string[] {
  // Names, and what is code, may have anything in them.
  const bare = message.replace(/'(?:[^'\\]|\\.)*'|`[^`]*`/g, "_");
  const faults = {
    "does not begin as a sentence": !/^[A-Z]/.test(message),
    "does not end as a sentence": !/[^.][.?]$/.test(message),
    "has more than one sentence": /[.?!] \p{Lu}/u.test(bare),
    "has more than one line": message.includes("\n"),
    "does not name what it is about": name !== null && !message.includes(quote(name)),
    "has the name of a script": SCRIPTS.some((script) => message.includes(script)),
    "says neither who nor when": VAGUE.test(bare),
    "is too long": bare.length > 450,
  };
  return Object.entries(faults).flatMap(([fault, isSo]) => (isSo ? [`${fault}: ${message}`] : []));
}
