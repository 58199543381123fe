import { Member, type MemberSettings } from "./member.ts";

/** All workers. */
export class Fleet {
  readonly members: readonly Member[];
  /** Those that faults may end: all but the first ones. */
  readonly mortal: readonly Member[];

  constructor(settings: readonly MemberSettings[], steady = 0) {
    this.members = settings.map((one) => new Member(one));
    this.mortal = this.members.slice(steady);
  }

  get grants(): number {
    return this.members.reduce((sum, { grants }) => sum + grants, 0);
  }

  async start(): Promise<void> {
    await Promise.all(this.members.map((member) => member.start()));
  }

  /** No more calls. Resolves when all workers have ended, or after so many ms; answers who has not. */
  async drain(ms: number): Promise<string[]> {
    for (const member of this.members) member.order({ do: "drain" });
    await Promise.all(this.members.map((member) => member.ended(ms)));
    return this.members.filter(({ lives }) => lives).map(({ by }) => by);
  }

  /** Ends what is left. */
  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.kill()));
  }
}
