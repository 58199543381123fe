import { Onlooker } from "../support/onlooker.ts";
import { Stage } from "../support/stage.ts";

/**
 * What faults of several locks need: a stage whose near client passes nothing on, and what Redis
 * knows of the locks.
 */
export class MultiLockStage extends Stage {
  constructor(replyTimeout: number) {
    super({ near: { client: { localHandoffs: 0, replyTimeout } } });
  }

  readonly look = (name: string): Onlooker => new Onlooker(this.far.redis, name);

  readonly gone = (names: readonly string[]): Promise<unknown> =>
    Promise.all(names.map((name) => this.look(name).gone()));

  readonly holders = (names: readonly string[]): Promise<string[]> =>
    Promise.all(names.map((name) => this.look(name).holder()));
}
