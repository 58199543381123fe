import type { Listed } from "../../index.ts";
import { quoteWhole } from "../../util/quote.ts";
import { isWaited } from "../ui/survey.ts";
import { flag, onlyOf } from "./args.ts";
import { type Call, command } from "./command.ts";
import { connect } from "./connection.ts";
import { DeadlockReport, matching, sayDeadlocks } from "./deadlocks.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { healthReport } from "./health.ts";
import { COLUMNS, cellsOf, LISTING, listed, sorted } from "./listing.ts";
import type { Output } from "./output.ts";
import { table } from "./table.ts";

const FLAGS = {
  ...LISTING,
  plain: flag(null, "no titles, and tabs between the columns: for cut and awk"),
};

async function ls({ values, positionals, rest, output }: Call<typeof FLAGS>): Promise<number> {
  const match = onlyOf(
    positionals,
    rest,
    "holdfast ls takes one pattern: quote it, or the shell puts file names in its place.",
  );
  if (values.json && values.plain)
    throw new UsageError("--json and --plain are two formats: give one of them.");
  const connected = await connect(values);
  const { locks, where, close } = connected;
  const sayHealth = healthReport(connected, output);
  try {
    const deadlocks = new DeadlockReport(connected, matching(match, values.kind)).once();
    const found: Listed[] = [];
    for await (const lock of listed(locks, match, values)) {
      // Printed at once, however many there are; sorted only on request.
      if (values.json && values.sort === undefined) output.printJson(lock);
      else found.push(lock);
    }
    const rows = sorted(found, values.sort);
    if (values.json) for (const row of rows) output.printJson(row);
    else if (values.plain) for (const row of rows) output.printTabbed(cellsOf(row));
    else if (rows.length > 0) print(rows, output);
    else
      output.say(
        `No lock${match === undefined ? "" : ` like ${quoteWhole(match)}`} is held or waited for ${where}.`,
      );
    sayDeadlocks(await deadlocks, output);
    return EXIT.ok;
  } finally {
    // Also if the reading failed: it may be why.
    await sayHealth();
    await close();
  }
}

/** Lines for a file or another program are not cut. */
function print(rows: readonly Listed[], output: Output): void {
  const { isTTY, columns } = process.stdout;
  const [titles = "", ...lines] = table(
    COLUMNS,
    rows,
    isTTY && columns > 0 ? columns : Number.POSITIVE_INFINITY,
  );
  output.print({ style: "bold", text: titles });
  for (const [i, text] of lines.entries()) {
    const row = rows[i];
    output.print(row && isWaited(row) ? { style: "yellow", text } : text);
  }
}

export const LS = command(
  {
    name: "ls",
    summary: "lists the locks that are held or waited for",
    usage: ["ls [flags] [pattern]"],
    examples: [
      ["holdfast ls", "all of them, the longest wait first"],
      ["holdfast ls 'order:*' --waited", "only names that begin with order:, and only with waiters"],
      [
        "holdfast ls --json | jq -r 'select(.heldFor > 3600000).name'",
        "locks held for more than an hour; one line per lock, times in ms",
      ],
    ],
    notes: [
      "Turns of --every, spin locks and fences are not listed. In a pattern * matches any text, ? one character, [a-z] one character of these.",
    ],
    flags: FLAGS,
  },
  ls,
);
