import type { JoinAsk, Sharing } from "../core/lock-kind.ts";
import { CountedKind, type CountedServer } from "./counted.ts";

/**
 * The readers and the writers of one lock, and how they relate. `fair`: each caller has its own
 * place in the queue.
 */
export class ReadWriteKinds implements Sharing {
  readonly plain: { readonly read: CountedKind; readonly write: CountedKind };
  readonly fair: { readonly read: CountedKind; readonly write: CountedKind };

  /** `passes`: how many local hand-offs a writer's hold allows. */
  constructor(server: CountedServer, passes: number) {
    const kinds = (isFair: boolean) => ({
      read: new CountedKind(server, "read", 0, isFair, this),
      write: new CountedKind(server, "write", isFair ? 0 : passes, isFair, this),
    });
    this.plain = kinds(false);
    this.fair = kinds(true);
  }

  get readers(): CountedKind {
    return this.plain.read;
  }

  get writers(): readonly CountedKind[] {
    return [this.plain.write, this.fair.write];
  }

  join(ask: JoinAsk): void {
    this.readers.join(ask);
  }

  async readersOf(name: string, nonce?: string): Promise<{ readonly held: number; readonly kept: number }> {
    const { holders } = await this.readers.look(name, nonce);
    const readers = holders.filter(({ party }) => party.mode === "read");
    return { held: readers.length, kept: readers.filter(({ kept }) => kept).length };
  }

  answer(name: string, nonce: string, is: "busy" | "idle"): void {
    this.readers.tellAsker(name, nonce, is);
  }
}
