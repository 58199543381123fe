import { quoteWhole } from "../util/quote.ts";
import { readVisible } from "../util/visible.ts";
import { flag } from "./args.ts";
import { UsageError } from "./exit-codes.ts";

export const ESCAPED = flag(
  "e",
  "the name is as this program prints it, with \\\\ and \\u001b for what is escaped; also for one that begins with a dash: \\u002d",
);

/** The one name that a command takes. @throws UsageError, by that sentence where there is none, or more than one. */
export function nameOf(
  [name, further]: readonly string[],
  rest: readonly string[] | null,
  { escaped }: { readonly escaped: true | undefined },
  sentence: string,
): string {
  if (name === undefined || further !== undefined || rest !== null) throw new UsageError(sentence);
  const read = escaped ? readVisible(name) : name;
  if (read !== null) return read;
  throw new UsageError(
    `--escaped takes a name as it is printed, in which a backslash is \\\\, not ${quoteWhole(name)}.`,
  );
}
