import type { Asked, AskOptions, ReadWriteLock } from "../index.ts";
import { visible } from "../util/visible.ts";
import { choice, duration } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT } from "./exit-codes.ts";
import { ESCAPED, nameOf } from "./names.ts";

const FLAGS = {
  wait: duration("w", "how long the holders may take to answer. Default: 1s"),
  kind: choice("of which kind; of readWrite, what readers keep. Default: lock", "lock", "readWrite"),
  escaped: ESCAPED,
};

const SENTENCES = {
  free: "is free",
  released: "was kept with nobody inside, and has been given up",
  busy: "is held: somebody is inside",
  silent: "is kept, and not given up: a client that keeps it has not answered in time",
} as const;

async function ask({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const name = nameOf(positionals, rest, values, "holdfast ask takes one name.");
  const { locks, close } = await connect(values);
  try {
    const options = values.wait === undefined ? {} : { wait: values.wait };
    const answer =
      values.kind === "readWrite"
        ? await askBoth(locks.readWriteLock(name), options)
        : await locks.lock(name).ask(options);
    if (output.isJson) output.printJson({ name, answer });
    else output.say(`${visible(name)} ${SENTENCES[answer]}.`);
    return answer === "free" || answer === "released" ? EXIT.ok : EXIT.busy;
  } finally {
    await close();
  }
}

/** Readers may keep it with nobody inside, a writer never does. */
async function askBoth({ read, write }: ReadWriteLock, options: AskOptions): Promise<Asked> {
  const answer = await read.ask(options);
  return answer === "free" ? write.ask(options) : answer;
}

export const ASK = command(
  {
    name: "ask",
    summary: "asks the clients that keep a lock with nobody inside to give it up",
    usage: ["ask [flags] <name>"],
    examples: [
      [
        "holdfast ask report && echo free",
        "exit code 0: nobody is inside, and now nobody keeps it; 75: somebody is, or did not answer",
      ],
    ],
    flags: FLAGS,
  },
  ask,
);
