import type { HoldingParty, Listed, LockClient } from "../../index.ts";
import { redissonLock } from "../../redisson.ts";
import { quoteWhole } from "../../util/quote.ts";
import { visible } from "../../util/visible.ts";
import { count, ESCAPED, flag, nameOf, text } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { printOne } from "./inspect.ts";
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
  const { locks, close } = await connect(values);
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
          : `No process holds ${quoteWhole(name)}.`,
      );
      return lock ? EXIT.busy : EXIT.ok;
    }
    if (!values.yes) {
      if (!output.isJson) printOne(lock, output);
      const typed = await prompt(
        "Type the name to force-release it, whose holder goes on until it notices: ",
      );
      if (typed === null)
        throw new UsageError("The question cannot be asked, because stdin is no terminal: give --yes.");
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
        ? `Force-released ${quoteWhole(name)}.`
        : `The holder of ${quoteWhole(name)} changed meanwhile: nothing was done.`,
    );
    return broken > 0 ? EXIT.ok : EXIT.busy;
  } finally {
    await close();
  }
}

/** Ends that holder, and none that has come since it was seen. */
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
      "The holder is notified at once if it is subscribed, otherwise at its next renewal. Until then it works on: only fencing tokens keep out what it writes. Exit code 75: nothing was done, because a holder that came later has the lock.",
    ],
    flags: FLAGS,
  },
  breakLock,
);
