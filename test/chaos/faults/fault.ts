import type { Wires } from "../arenas/wires.ts";
import type { Dice } from "../dice.ts";
import type { Fleet } from "../fleet.ts";
import type { Told } from "../history/events.ts";

/** Where faults happen. */
export interface Field {
  readonly fleet: Fleet;
  readonly wires: Wires;
  readonly dice: Dice;
  tell(told: Told): void;
}

/** Something that goes wrong, and is put right again before `run` resolves. */
export interface Fault {
  readonly kind: string;
  /** How likely it is among the others. */
  readonly weight: number;
  /** `begin` tells that it begins now, and what it is exactly. */
  run(field: Field, begin: (detail: string) => void): Promise<void>;
}
