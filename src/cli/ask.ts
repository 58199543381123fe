import { choice, duration } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { EXIT, UsageError } from "./exit-codes.ts";

const FLAGS = {
  wait: duration("w", "how long the holder may take to answer. Default: 1s"),
  kind: choice("of which kind. Default: lock", "lock", "readWrite"),
};

const SENTENCES = {
  free: "is free",
  released: "was kept by a client with nobody inside, which has given it up",
  busy: "is held: somebody is inside",
  silent: "is kept by a client that has not answered in time",
} as const;

async function ask({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const [name, further] = positionals;
  if (name === undefined || further !== undefined || rest !== null)
    throw new UsageError("holdfast ask takes one name.");
  const { locks, close } = await connect(values);
  try {
    const lock = values.kind === "readWrite" ? locks.readWriteLock(name).write : locks.lock(name);
    const answer = await lock.ask(values.wait === undefined ? {} : { wait: values.wait });
    if (output.isJson) output.printJson({ name, answer });
    else output.say(`${name} ${SENTENCES[answer]}.`);
    return answer === "free" || answer === "released" ? EXIT.ok : EXIT.busy;
  } finally {
    await close();
  }
}

export const ASK = command(
  {
    name: "ask",
    summary: "asks the client that keeps a lock with nobody inside to give it up",
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
