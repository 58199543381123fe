import { type LaunchOptions, type LocalServer, launchServer } from "../../../tools/redis/index.ts";

/** Launches this many servers at once; if one fails, the others are stopped. */
export async function launchAll(count: number, options: LaunchOptions): Promise<LocalServer[]> {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, () => launchServer(options)));
  const servers = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failure = outcomes.find((one) => one.status === "rejected");
  if (failure === undefined) return servers;
  await Promise.all(servers.map((server) => server.stop()));
  throw failure.reason;
}
