import type { HoldingParty, Listed, LockClient } from "../../index.ts";
import { showParty } from "../../inside.ts";
import { redissonLock } from "../../redisson.ts";
import { quoteWhole } from "../../util/quote.ts";
import { visible } from "../../util/visible.ts";
import { count, ESCAPED, escapedHint, flag, nameOf, text } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { linesOf } from "./inspect.ts";
import { LISTING } from "./listing.ts";
import { lookAt } from "./look.ts";
import { operator, prompt } from "./people.ts";

const FLAGS = {
  token: count(null, "only the holder with this token", 1, Number.MAX_SAFE_INTEGER),
  yes: flag("y", "do not prompt: for scripts"),
  label: text(
    null,
    "<text>",
    "shown to the holder as the one that force-released its lock. Default: user@host",
  ),
  kind: LISTING.kind,
  escaped: ESCAPED,
};

async function breakLock({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const name = nameOf(positionals, rest, values, "holdfast break takes one name.");
  const { locks, where, close } = await connect(values);
  try {
    const found = (await lookAt(locks, name, values.kind)).filter(({ holder }) => holder !== null);
    const [lock, other] = found;
    if (lock && other)
      throw new UsageError(
        `${quoteWhole(name)} is a lock of several kinds: say which with --kind ${lock.kind} or --kind ${other.kind}.`,
      );
    const holders =
      lock?.holders.filter(({ token }) => values.token === undefined || token === values.token) ?? [];
    if (!lock || holders.length === 0) {
      if (output.isJson) output.printJson({ name, broken: 0 });
      output.say(
        lock
          ? `${quoteWhole(name)} is held, but not with the token ${values.token}: nothing was done.`
          : `No process holds ${quoteWhole(name)} ${where}: nothing was done.${escapedHint(name, values)}`,
      );
      return EXIT.busy;
    }
    if (!values.yes) {
      if (!output.isJson) for (const line of linesOf(lock)) output.print(line);
      const effect =
        holders.length > 1
          ? `This ends all ${holders.length} holds, whose holders work on until they notice`
          : "Its holder works on until it notices";
      const typed = await prompt(`${effect}. Type the name to force-release it: `);
      if (typed === null)
        throw new UsageError(
          "The question cannot be asked, because stdin is no terminal: give --yes, and --token for this holder alone.",
        );
      if (typed !== name && typed !== visible(name)) {
        output.fail("That is not the name: nothing was done.");
        return EXIT.busy;
      }
    }
    const label = values.label ?? operator();
    let broken = 0;
    for (const holder of holders) if (await end(locks, lock, holder, label)) broken++;
    if (output.isJson) output.printJson({ name, broken });
    output.say(
      broken > 0
        ? `Force-released ${quoteWhole(name)}.${await whatCameNext(locks, lock)}`
        : `The holder of ${quoteWhole(name)} changed meanwhile: nothing was done.`,
    );
    return broken > 0 ? EXIT.ok : EXIT.busy;
  } finally {
    await close();
  }
}

/** Names the next holder after a force-release; "": Redis shows none yet, or others still hold it. */
async function whatCameNext(locks: LockClient, { kind, name, holders }: Listed): Promise<string> {
  const found = await lookAt(locks, name, kind).catch(() => null); // The release itself went well.
  if (found?.length === 0) return " It is free.";
  const now = found?.flatMap((one) => one.holders) ?? [];
  const [next, ...more] = now.filter(({ id }) => !holders.some((one) => one.id === id));
  return next ? ` Next: ${showParty(next)}${more.length > 0 ? ` and ${more.length} more` : ""}.` : "";
}

/** Force-releases that holder, and none that came later. */
export async function end(
  locks: LockClient,
  { kind, name }: Listed,
  { id, mode }: HoldingParty,
  label: string,
): Promise<boolean> {
  const options = { holder: id, label };
  if (kind === "semaphore") return (await locks.semaphore(name).forceUnlock(options)) > 0;
  if (kind === "readWrite") return locks.readWriteLock(name)[mode ?? "write"].forceUnlock(options);
  if (kind === "election") return locks.election(name).forceResign(options);
  if (kind === "remember") return locks.stopRun(name, options);
  if (kind === "redisson") return redissonLock(locks, name).forceUnlock(options);
  return locks.lock(name).forceUnlock(options);
}

export const BREAK = command(
  {
    name: "break",
    summary: "force-releases a lock, and hands it to the next waiter",
    usage: ["break [flags] <name>"],
    examples: [
      ["holdfast break order:42", "shows the holder, and prompts for the name of the lock"],
      ["holdfast break order:42 --token 1795372576565599 --yes", "only that holder, without a prompt"],
    ],
    notes: [
      "The holder is notified at once if it is subscribed, otherwise at its next renewal. Until then it works on: only fencing tokens keep out what it writes. Exit code 75: nothing was done, because no process holds the lock, or not the one that was meant, or another name was typed.",
    ],
    flags: FLAGS,
  },
  breakLock,
);
