import type { Redis } from "ioredis";
import { until } from "../until.ts";
import { type Expected, seesAll } from "./sentinel-health.ts";
import { GROUP } from "./sentinel-setup.ts";

/** The running sentinels as one. */
export class Watch {
  readonly #sentinels: () => Redis[];

  constructor(sentinels: () => Redis[]) {
    this.#sentinels = sentinels;
  }

  /** The port of the primary that most of them name. */
  async mostNamed(): Promise<number | undefined> {
    const named = await this.#named();
    const votes = (port: number) => named.filter((one) => one === port).length;
    return named.sort((one, other) => votes(other) - votes(one))[0];
  }

  /** The port of the primary that all of them name; undefined when they differ. */
  async agreedOn(): Promise<number | undefined> {
    const [port, ...others] = new Set(await this.#named());
    return others.length === 0 ? port : undefined;
  }

  async seesAll(expected: Expected): Promise<boolean> {
    const views = await Promise.all(this.#sentinels().map((sentinel) => seesAll(sentinel, expected)));
    return views.every(Boolean);
  }

  /**
   * Asks one of them to promote a replica. It refuses while no replica's last report is recent
   * enough, as on a busy machine. A failover that is under way already is what was asked for.
   */
  async failover(): Promise<void> {
    const order = () => this.order().then(() => true, isUnderWay);
    await until(order, { what: "a replica that is good enough to be promoted" });
  }

  /** The same once. Rejects if it is refused, as while a failover is under way. */
  async order(): Promise<void> {
    const [sentinel] = this.#sentinels();
    if (sentinel === undefined) throw new Error("No sentinel runs");
    await sentinel.call("SENTINEL", "FAILOVER", GROUP);
  }

  /**
   * Makes them check the servers every 100 ms, and publish to each other every `publishPeriod` ms.
   * By default they take up to 10 s; before version 7 that cannot be set, and everything is slow.
   *
   * A sentinel that has received no word of a failover for four periods demotes a server that
   * another one has just promoted, and that one checks only once a second. So a short period is for
   * a group in which nothing happens yet. And a replica is unsuitable if its last report is older
   * than five periods of PING, which therefore keep their default.
   */
  async hurry(publishPeriod: number): Promise<void> {
    const periods = { info: 100, ask: 100, publish: publishPeriod };
    const words = Object.entries(periods).flatMap(([what, ms]) => [`${what}-period`, `${ms}`]);
    const set = (sentinel: Redis) => sentinel.call("SENTINEL", "DEBUG", ...words).catch(() => {});
    await Promise.all(this.#sentinels().map(set));
  }

  #named(): Promise<number[]> {
    const nameOf = async (sentinel: Redis) => {
      const address = (await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", GROUP)) as string[];
      return Number(address[1]);
    };
    return Promise.all(this.#sentinels().map(nameOf));
  }
}

/** False: not yet. */
function isUnderWay(error: Error): boolean {
  if (error.message.startsWith("INPROG")) return true;
  if (error.message.startsWith("NOGOODSLAVE")) return false;
  throw error;
}
