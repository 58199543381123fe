import type { ReadWriteLock, Recalled, RecallOptions } from "../../index.ts";
import { visible } from "../../util/visible.ts";
import { choice, duration, ESCAPED, escapedHint, nameOf } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT } from "./exit-codes.ts";

const FLAGS = {
  wait: duration("w", "how long to wait for the holder's answer. Default: 1s"),
  kind: choice("which kind; for readWrite, the cached reads. Default: lock", "lock", "readWrite"),
  escaped: ESCAPED,
};

const SENTENCES = {
  free: "is free",
  released: "was not in use, and its holder has released it",
  busy: "is in use",
  silent: "is still held: the client that caches it did not answer in time",
} as const;

async function recall({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const name = nameOf(positionals, rest, values, "holdfast recall takes one name.");
  const { locks, where, close } = await connect(values);
  try {
    const options = values.wait === undefined ? {} : { wait: values.wait };
    const answer =
      values.kind === "readWrite"
        ? await recallBoth(locks.readWriteLock(name), options)
        : await locks.lock(name).recall(options);
    if (output.isJson) output.printJson({ name, answer });
    else {
      const [at, hint] = answer === "free" ? [` ${where}`, escapedHint(name, values)] : ["", ""];
      output.say(`${visible(name)} ${SENTENCES[answer]}${at}.${hint}`);
    }
    return answer === "free" || answer === "released" ? EXIT.ok : EXIT.busy;
  } finally {
    await close();
  }
}

/** Readers may cache it, a writer never does. */
async function recallBoth({ read, write }: ReadWriteLock, options: RecallOptions): Promise<Recalled> {
  const answer = await read.recall(options);
  return answer === "free" ? write.recall(options) : answer;
}

export const RECALL = command(
  {
    name: "recall",
    summary: "asks the holder to release a cached lock that is not in use",
    usage: ["recall [flags] <name>"],
    examples: [
      [
        "holdfast recall report && echo free",
        "exit code 0: the lock is free now; 75: it is in use, or its holder did not answer",
      ],
    ],
    flags: FLAGS,
  },
  recall,
);
