import { type LocalServer, launchServer } from "../../../tools/redis/index.ts";
import { launchWithClock, type ServerClock } from "../../support/server-clock.ts";

/** A server, with a clock of its own, of this rate, where that is wanted and can be had. */
export async function launch(
  rate: number | null,
  args: string[] = [],
): Promise<{ server: LocalServer; clock: ServerClock | null }> {
  if (rate === null) return { server: await launchServer({ args }), clock: null };
  return launchWithClock({ args, rate }).catch(async (error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The server's clock is the machine's, and will not be turned: ${why}\n`);
    return { server: await launchServer({ args }), clock: null };
  });
}
